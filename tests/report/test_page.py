"""The page in a real browser: it loads, it moves, and it shows the data."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from mechgap import InvalidInput
from mechgap.measures.results import load_results
from mechgap.measures.run import measure_run
from mechgap.report.answer import answer, beyond_the_answer
from mechgap.report.definitions import DEFINITIONS
from mechgap.report.figures import draw_figures
from mechgap.report.measures import show_measures
from mechgap.report.page.charts import charts
from mechgap.report.page.page import write_page
from mechgap.report.page.player import places
from mechgap.training.presets import make_recipe
from mechgap.training.rows import MetricRow
from mechgap.training.store import Store
from opened_pages import Opened
from untrained_runs import SMALL, untrained_run

PROJECT = Path(__file__).parents[2]


def a_run(folder, *arguments, **more):
    measure_run(untrained_run(folder, *arguments, **more))
    return folder


@pytest.fixture(scope="module")
def page(run):
    return write_page(run)


def drawable(attention):
    """Attention to others that is strong enough to be drawn."""
    return {
        (int(i), int(j)): float(attention[i, j])
        for i, j in np.argwhere(np.rint(1000 * attention) > 20)
        if i != j
    }


def test_it_loads_from_disk_in_silence(browser, page):
    opened = Opened(browser, page)
    opened.tab.wait_for_selector("html[data-charts=true]")
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert page.stat().st_size < 10e6
    for chart in ("internal", "external", "parts", "gap", "along", "trace", "solutions"):
        assert opened.tab.query_selector(f"#{chart} .main-svg"), chart


def test_the_answer_is_on_top(browser, page, run):
    opened = Opened(browser, page)
    assert opened.tab.inner_text(".answer") == answer(load_results(run))
    # Then the chart that shows it, then the player, all before any table.
    order = "document.querySelector('{}').compareDocumentPosition(document.querySelector('{}')) & 4"
    for first, then in ((".answer", "#internal"), ("#internal", ".panels"), (".panels", "table")):
        assert opened.tab.evaluate(order.format(first, then)), (first, then)
    drawn = opened.tab.inner_text("#internal") + opened.tab.text_content("#internal")
    for name in ("compiled", "uniform", "self", "untrained", "learned"):
        assert name in drawn


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1280])
def test_it_is_accessible(browser, page, scheme, width):
    """By axe: labels, contrast, what a keyboard can reach."""
    opened = Opened(browser, page, color_scheme=scheme, viewport={"width": width, "height": 900})
    opened.tab.wait_for_selector("html[data-charts=true]")
    found = Axe().run(opened.tab).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in found] == []


def test_the_tool_bar_covers_no_title_and_sends_nothing(browser, page):
    opened = Opened(browser, page)
    opened.tab.wait_for_selector("html[data-charts=true]")
    box = "const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]"
    boxes = f"all => all.map(e => {{ {box} }})"
    for name in ("internal", "parts", "gap", "along", "trace", "solutions"):
        chart = opened.tab.locator(f"#{name}")
        bar = chart.locator(".modebar")
        opened.tab.mouse.move(0, 0)
        opened.tab.wait_for_timeout(200)
        assert bar.evaluate("e => +getComputedStyle(e).opacity") == 0, name
        chart.hover()
        opened.tab.wait_for_timeout(200)
        assert bar.evaluate("e => +getComputedStyle(e).opacity") == 1, name
        buttons = chart.locator(".modebar-btn")
        assert buttons.count() == 4
        titles = chart.locator(".annotation-text, .gtitle, .xtitle, .ytitle").evaluate_all(boxes)
        for left, top, right, bottom in buttons.evaluate_all(boxes):
            for a, b, c, d in titles:
                assert right <= a or c <= left or bottom <= b or d <= top, name


def test_every_number_says_what_it_is(browser, page):
    opened = Opened(browser, page)
    table = opened.tab.locator(".summary table")
    said = (
        table.locator("tbody tr").first.locator("td").evaluate_all("all => all.map(e => e.title)")
    )
    assert all(said[1:])
    assert set(said[1:]) <= set(DEFINITIONS.values())


def test_definitions_are_those_of_the_glossary():
    glossary = (PROJECT / "docs" / "glossary.md").read_text()
    plain = " ".join(re.sub(r"[`*\\]", "", glossary).split())
    for word, meaning in DEFINITIONS.items():
        for sentence in re.split(r"(?<=\.) ", meaning.replace("*", "")):
            assert sentence.rstrip(".") in plain, word


def test_the_slider_shows_the_data(browser, page, run):
    opened = Opened(browser, page)
    results = load_results(run)
    steps = int(results.examples["lengths"][0]) - 1
    assert steps > 2
    seen = []
    for step in (0, 1, steps - 1):
        opened.tab.eval_on_selector(
            "#step", f"s => {{ s.value = {step}; s.dispatchEvent(new Event('input')) }}"
        )
        attention = results.seeds[0].examples["attention"][step, 0].astype(float)
        wanted = drawable(attention)
        drawn = opened.arrows("learned")
        assert drawn.keys() == wanted.keys()
        assert all(abs(drawn[k] - wanted[k]) < 2e-3 for k in wanted)
        senders = results.examples[f"senders/{_first_mechanism(opened)}"][step, 0]
        exact = {(i, int(j)): 1.0 for i, j in enumerate(senders) if i != j}
        assert opened.arrows("compiled") == exact
        seen.append(drawn)
        assert opened.tab.inner_text("#when") == f"step {step + 1} of {steps}"
    assert seen[0] != seen[1]


def _first_mechanism(opened):
    return opened.tab.eval_on_selector("#mechanism", "s => s.options[s.selectedIndex].text")


def test_wrong_predictions_are_marked(browser, page, run):
    opened = Opened(browser, page)
    results = load_results(run)
    wrong = np.zeros(results.examples["inputs/pos"].shape[1], bool)
    for hint in ("pi_h", "reach_h"):
        said = results.seeds[0].examples[f"hints/{hint}"][0, 0]
        wrong |= said != results.examples[f"hints/{hint}"][1, 0]
    marked = opened.tab.eval_on_selector_all(
        "#learned .node.wrong", "all => all.map(n => +n.dataset.node)"
    )
    assert sorted(marked) == np.flatnonzero(wrong).tolist()
    assert opened.tab.query_selector("#compiled .node.wrong") is None


def test_keys_and_choices(browser, page):
    opened = Opened(browser, page)
    tab = opened.tab
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#when").startswith("step 2")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    assert tab.inner_text("#when").startswith("step 1")
    before = opened.arrows("learned")
    tab.select_option("#seed", "1")
    assert opened.arrows("learned") != before
    tab.locator("h1").click()  # away from the menu, which has its own arrow keys
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#when").startswith("step 4")
    exact = opened.arrows("compiled")
    tab.select_option("#mechanism", "1")
    assert opened.arrows("compiled") != exact
    tab.select_option("#sample", "1")
    assert tab.inner_text("#when").startswith("step 1")
    tab.click("#play")
    assert tab.inner_text("#play") == "Pause"
    tab.wait_for_function("document.getElementById('when').textContent.startsWith('step 2')")
    assert opened.complaints == []


def test_dark_and_narrow(browser, page):
    light, dark = (
        Opened(browser, page, color_scheme=scheme, viewport={"width": 390, "height": 800})
        for scheme in ("light", "dark")
    )
    colour = "getComputedStyle(document.body).backgroundColor"
    assert light.tab.evaluate(colour) != dark.tab.evaluate(colour)
    # Nothing but tables, which scroll by themselves, is wider than the screen.
    light.tab.wait_for_selector("html[data-charts=true]")
    assert light.tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_names_are_not_markup(browser, page):
    opened = Opened(browser, page)
    assert opened.tab.query_selector("main b") is None
    assert "<b>bfs" in opened.tab.inner_text("section:last-of-type pre")


@pytest.mark.slow
def test_without_a_compiled_program(tmp_path, browser, capsys):
    simple = a_run(tmp_path / "dfs", "dfs_simplified", (0,))
    results = load_results(simple)
    assert results.networks[0].gaps["test"] == {}
    assert results.networks[0].external > 0
    assert results.correlations.tv == {}
    assert results.solutions.closest_to_compiled is None
    show_measures(load_results(simple))
    assert "no compiled program" in capsys.readouterr().out
    opened = Opened(browser, write_page(simple))
    assert opened.complaints == []
    assert "no compiled dfs_simplified" in opened.tab.inner_text(".answer")


@pytest.mark.slow
def test_without_traces(tmp_path, browser):
    silent = a_run(tmp_path / "none", "bellman_ford", (0,), hint_mode="none")
    results = load_results(silent)
    assert not results.has_traces
    assert results.correlations.external is None
    assert results.networks[0].gaps["test"]["bellman_ford"].tv > 0
    show_measures(load_results(silent))
    opened = Opened(browser, write_page(silent))
    assert opened.complaints == []
    assert opened.tab.query_selector("#learned .node")


def test_training_curves(run):
    rows = [MetricRow(0, 50 * k, 1.0 / k, 0.5, 0.4 if k == 2 else None, None) for k in (1, 2)]
    found = charts(load_results(run), rows)["training"]
    assert [list(line["y"]) for line in found["data"]] == [[1.0, 0.5], [50.0, 50.0], [40.0]]


def test_the_answer_says_what_was_found(run):
    results = load_results(run)
    text = f"{answer(results)} {beyond_the_answer(results)}"
    networks = results.networks
    accuracy = np.mean([network.accuracy for network in networks])
    assert text.startswith(f"3 learned networks get {100 * accuracy:.1f} % of outputs right")
    mechanism = max(("bfs", "bfs_parent"), key=[n.nearest for n in networks].count)
    chance = results.baselines["uniform"].gaps["test"][mechanism].agreement
    assert f"(by chance {100 * chance:.1f} %)" in text
    for measure in ("agreement", "misplaced", "tv"):
        value = np.mean([getattr(n.gaps["test"][mechanism], measure) for n in networks])
        assert f"{100 * value:.1f} %" in text, measure
    hardened = np.mean([n.causal.tempered["hardened"] for n in networks if n.causal])
    assert f"their own attention gives an accuracy of {100 * hardened:.1f} %" in text


def test_figures_are_drawn_from_the_files_alone(run, tmp_path, monkeypatch):
    monkeypatch.setattr("mechgap.network.trace.run", None)
    written = draw_figures(load_results(run), None, tmp_path / "figures")
    names = {path.stem for path in written}
    assert names == {
        *("faithfulness", "gap_parts", "internal_over_time", "attention_comparison"),
        *("attention_full", "traces_over_time", "solutions"),
    }
    for path in written:
        assert path.read_bytes().startswith(b"%PDF" if path.suffix == ".pdf" else b"\x89PNG")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="cannot make the folder"):
        draw_figures(load_results(run), None, tmp_path / "file" / "below")


def test_places_keep_neighbours_near():
    path = np.zeros((9, 9), bool)
    for i in range(8):
        path[i, i + 1] = path[i + 1, i] = True
    at = places(path)
    assert at.min() >= 0
    assert at.max() <= 1
    steps = np.linalg.norm(np.diff(at, axis=0), axis=1)
    assert steps.max() < 2 * steps.min()
    assert np.linalg.norm(at[0] - at[-1]) > 4 * steps.mean()
    for n in (1, 2, 3):
        assert np.isfinite(places(np.zeros((n, n), bool))).all()


def test_no_folders_are_made_for_a_page_elsewhere(run, tmp_path):
    with pytest.raises(InvalidInput, match=r"there is no folder '.*none' to write page\.html into"):
        write_page(run, None, tmp_path / "none" / "page.html")
    assert not (tmp_path / "none").exists()


def test_the_legend_has_the_tasks_own_words(browser, page):
    opened = Opened(browser, page)
    said = opened.tab.inner_text("#player .legend")
    assert "reach_h" in said
    assert "not reach_h" in said
    assert "←k: pi_h is k" in said


def test_no_page_without_measures(tmp_path):
    recipe = make_recipe("bfs", overrides=SMALL)
    with Store.writing(tmp_path / "run", recipe, 1):
        pass
    with pytest.raises(InvalidInput, match="has not been measured"):
        write_page(tmp_path / "run")


def test_nothing_in_the_data_can_end_its_script(page):
    text = page.read_text()
    begin = text.index('<script id="data" type="application/json">')
    data = text[begin:].split("</script>", 1)[0].split(">", 1)[1]
    assert "<" not in data
    assert json.loads(data)["player"]["mechanisms"]
