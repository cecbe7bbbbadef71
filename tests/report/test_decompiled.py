"""What was decompiled, on the page and as a figure."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from made_explanations import SETS, explanation, phase_found
from mechgap.decompiler.evidence import Weighted
from mechgap.decompiler.population import FILE, DecompiledRun
from mechgap.measures.results import load_results
from mechgap.programs.library import LIBRARY, mechanisms
from mechgap.report.attends_by import MOST_WORDS, attends_by_figure, caption, panels
from mechgap.report.figures import available_figures
from mechgap.report.page.charts import charts
from mechgap.report.page.decompiled import (
    clusters_named,
    decompiled,
    marked,
    nearest,
    selection,
)
from mechgap.report.page.page import write_page
from mechgap.report.style import save_in_both
from opened_pages import Opened

HEADING = "Then what is it running?"
RULE = "select=minimum(other.idx), mask=other.visit & ~self.start, otherwise=self.pi"
WORDS = (
    Weighted("other.visit", "all", 3.0),
    Weighted("other.visit", "being reached", 2.0),
    Weighted("where(other.visit & equal(self.pi, other.idx), other.level, 0)", "source", -1.0),
)
LONG = (
    "select=maximum(other.idx + 0.47 * other.level), mask=(other.grey & ~other.was_grey | "
    "other.black & ~other.was_black | other.white & self.saw_0_grey) & equal(self.met_0, "
    "other.idx) & ~edge.loop & ~equal(other.pi, self.idx), otherwise=where(self.s, self.pi, "
    "self.s_prev)"
)
EVIL = "<img src=x onerror=alert(1)>"


def a_run(*explanations):
    return DecompiledRun("bfs", "best", dict(enumerate(explanations)))


FOUND = a_run(
    explanation(phase_found(RULE, WORDS)),
    explanation(phase_found("select=minimum(other.idx), mask=other.visit", WORDS[:1]), rule=0.6),
)
IN_PHASES = a_run(
    explanation(
        *(phase_found(LONG, (*WORDS, Weighted("self.s", "all", k))) for k in (0.1, 1.0, 5.0))
    )
)


def test_every_head_is_told_by_itself():
    two = {"0": (phase_found("select=minimum(other.idx)"),), "1": (phase_found(EVIL),)}
    (one,) = a_run(explanation(phase_found(RULE))).seeds.values()
    shown = decompiled(a_run(replace(one, heads=two)), mechanisms("bfs"))
    assert "of the mean of its 2 heads" in shown
    assert "select=minimum(other.idx)" in shown
    assert EVIL not in shown
    assert "heads" not in decompiled(a_run(one), mechanisms("bfs"))


def test_a_network_that_strays_from_its_program_is_said_to():
    (kept,) = a_run(explanation(phase_found(RULE), own=0.98, rule=0.999)).seeds.values()
    (gains,) = a_run(explanation(phase_found(RULE), own=0.72, rule=0.89)).seeds.values()
    assert kept.in_short == "runs bfs_parent, softly"
    assert gains.in_short == "runs bfs_parent, softly, with slips"


def test_clusters_are_named_by_what_their_seeds_run(run):
    results = load_results(run)
    first, *others = results.seeds
    labels = np.array([2, *[1] * len(others)])
    apart = replace(results, solutions=replace(results.solutions, labels=labels))
    ours, theirs = FOUND.seeds.values()
    known = DecompiledRun("bfs", "best", {first: ours, **dict.fromkeys(others[:1], theirs)})
    shown = clusters_named(apart, known)
    assert f"cluster 1: 1 × {theirs.in_short}. cluster 2: 1 × {ours.in_short}" in shown
    assert clusters_named(apart, None) == clusters_named(apart, a_run()) == ""


@pytest.fixture(scope="module")
def page_of(run, tmp_path_factory):
    """Writes the page of a run about which something was found."""

    def written(found):
        folder = tmp_path_factory.mktemp("decompiled") / "run"
        shutil.copytree(run, folder)
        (folder / FILE).write_text(json.dumps(found.to_json()))
        return write_page(folder)

    return written


@pytest.fixture(scope="module")
def page(page_of):
    return page_of(FOUND)


def texts(opened, selector):
    return opened.tab.eval_on_selector_all(selector, "all => all.map(e => e.textContent)")


def test_only_if_something_was_found(run, tmp_path):
    text = write_page(run, None, tmp_path / "page.html").read_text()
    assert HEADING not in text
    assert 'id="attends"' not in text


def test_it_says_what_every_seed_runs(browser, page):
    opened = Opened(browser, page)
    opened.tab.wait_for_selector("html[data-charts=true]")
    assert opened.complaints == []
    section = opened.tab.locator("section", has=opened.tab.locator("h2", has_text=HEADING))
    assert section.locator("li").all_inner_texts() == [
        f"1 of 2 seeds: {found.in_short}" for found in FOUND.seeds.values()
    ]
    for found, told in zip(FOUND.seeds.values(), texts(opened, ".verdict"), strict=True):
        assert told.lower() == found.verdict.lower()
    assert "91.23 % (held out), 87.65 % (test) of the attention" in section.inner_text()
    heads = section.locator("thead tr").all_inner_texts()
    columns = ["own", "hardened", "rule", "rule, softly", "soft form", "uniform", "floor"]
    assert [head.split("\t") for head in heads] == [
        [which, *columns, "as bfs", "as bfs_parent"] for which in ("held out", "test")
    ]
    assert section.locator("tbody tr").first.inner_text().split("\t") == [
        *("seed 0", "98.00 %", "97.00 %", "98.12 %", "96.00 %", "97.50 %", "50.00 %", "30.00 %"),
        *("71.00 %", "99.00 %"),
    ]


def test_words_that_differ_are_marked(browser, page):
    opened = Opened(browser, page)
    assert texts(opened, ".beside h4")[:2] == ["seed 0", "bfs_parent, compiled"]
    assert texts(opened, ".seed:nth-of-type(1) ins") == ["& ~self.start", "otherwise=self.pi"]
    assert texts(opened, ".seed:nth-of-type(1) del") == ["+ other.level"]
    assert texts(opened, ".seed:nth-of-type(2) ins") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_are_legible(browser, page, scheme):
    opened = Opened(browser, page, color_scheme=scheme)
    for tag in ("ins", "del"):
        ink, ground = (
            opened.tab.eval_on_selector(
                f".rule {tag}",
                f"e => getComputedStyle(e).{colour}.match(/[0-9.]+/g).map(Number)",
            )
            for colour in ("color", "backgroundColor")
        )
        assert len(ground) == 3, "there is a background of its own"
        assert contrast(ink, ground) >= 4.5


def contrast(*colours):
    """WCAG's, of two colours."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
                  for c in (v / 255 for v in colour)]  # fmt: skip
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


def test_long_rules_fold_and_wrap(browser, page_of):
    opened = Opened(browser, page_of(IN_PHASES), viewport={"width": 390, "height": 800})
    tab = opened.tab
    tab.wait_for_selector("html[data-charts=true]")
    summaries = [text for text in texts(opened, ".phase summary") if text]
    assert summaries == [f"phase {k}: a rule of 3 words" for k in range(3)]
    assert not tab.is_visible(".phase .rule")
    assert "the rules below" in tab.inner_text(".verdict")
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert tab.is_visible(".phase .rule")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert len(tab.query_selector_all("#attends .subplot.xy, #attends .subplot[class*=x]")) == 3


def test_nothing_that_was_found_is_markup(browser, page_of):
    """Every text of the file could be anything."""
    phase = phase_found(
        f"select=minimum({EVIL}), mask={EVIL}",
        (Weighted(EVIL, EVIL, 1.0),),
        {EVIL: 1.0, "bfs": 0.5},
        agreement={EVIL: 0.9, **dict.fromkeys(SETS, 0.9)},
        soft_explains={EVIL: 0.9},
    )
    found = explanation(phase, mechanisms={EVIL: 0.5})
    evil = a_run(type(found)(**{**vars(found), "program": EVIL}))
    path = page_of(DecompiledRun(EVIL, EVIL, evil.seeds))
    assert EVIL not in path.read_text()
    opened = Opened(browser, path)
    opened.tab.wait_for_selector("html[data-charts=true]")
    assert opened.complaints == []
    assert opened.tab.query_selector("main img") is None
    shown = opened.tab.inner_text("main")
    assert f"runs {EVIL}" in shown
    assert f"mask={EVIL}" in shown
    assert EVIL in opened.tab.text_content("#attends").replace("\xa0", " ")


def test_parts_that_commute_are_not_marked():
    bfs_parent, ours = LIBRARY["bfs_parent"], {"select": "minimum(other.idx + other.level)"}
    theirs = selection(bfs_parent.phases[0], ours)
    assert theirs == {**ours, "mask": "other.visit"}
    assert "ins" not in marked(ours, theirs, "ins")
    (choose,) = [p for p in LIBRARY["dfs"].phases if "self.active" in str(p.mask)]
    assert list(selection(choose, {})) == ["select", "mask"], "oneself goes without saying"
    turned = {"select": "minimum(other.idx)", "mask": "~self.visit & other.visit"}
    assert selection(LIBRARY["bfs"].phases[0], turned) == turned


def test_an_equation_is_one_word():
    ours = {"mask": "equal(self.pi, other.idx) & ~equal(other.pi, self.idx)"}
    theirs = {"mask": "~equal(other.pi, self.idx)"}
    assert marked(ours, theirs, "ins") == (
        "<code>mask=<ins>equal(self.pi, other.idx) &amp;</ins> ~equal(other.pi, self.idx)</code>"
    )
    assert "del" not in marked(theirs, ours, "del")


def test_the_nearest_mechanism_is_the_one_that_it_runs():
    known = mechanisms("bfs")
    of_bfs = phase_found(RULE, everywhere={"bfs": 0.3, "bfs_parent": 0.9},
                         like={"bfs": 1.0, "bfs_parent": 0.9})  # fmt: skip
    assert explanation(of_bfs).runs == "bfs"
    assert nearest(explanation(of_bfs), known) == LIBRARY["bfs"]
    own = phase_found(RULE, like={"bfs": 0.4, "bfs_parent": 0.9})
    assert nearest(explanation(own), known) == LIBRARY["bfs_parent"]
    assert nearest(explanation(own), mechanisms("dfs")) is None
    assert nearest(explanation(phase_found(RULE, like={})), known) is None


def test_three_phases_stand_beside_a_mechanism_of_three():
    phases = [phase_found(LONG, like={"dfs": 0.5, "dfs_parent": 0.4}) for _ in range(3)]
    text = decompiled(a_run(explanation(*phases)), mechanisms("dfs"))
    for k in range(3):
        assert f"<h4>dfs, compiled, phase {k}</h4>" in text
    assert "met_0 is whom a node attended to in phase 0" in text
    assert "<code><ins>otherwise=where(self.s, self.pi, self.s_prev)</ins></code>" in text


def test_weights_are_means_of_all_seeds():
    (panel,) = panels(FOUND)
    assert list(panel.words) == ["other.visit", WORDS[2].word]
    everybody, some = panel.words["other.visit"]
    assert (everybody.mean, dict(everybody.by_seed)) == (3.0, {0: 3.0, 1: 3.0})
    assert (some.receivers, some.mean, dict(some.by_seed)) == ("being reached", 1.0, {0: 2.0})
    assert panel.left_out == 0
    assert "not shown" not in caption([panel])


def test_words_beyond_the_most_are_counted():
    words = tuple(Weighted(f"other.w{k}", "all", 0.1 * (-1) ** k * k) for k in range(20))
    drawn = panels(a_run(explanation(phase_found(RULE, words))))
    assert list(drawn[0].words) == [f"other.w{19 - k}" for k in range(MOST_WORDS)]
    assert f"not shown: {20 - MOST_WORDS}." in caption(drawn)


def test_the_figure_is_drawn(run, tmp_path):
    draw = available_figures(load_results(run), None, FOUND)["attends_by"]
    pdf, png = save_in_both(draw(), tmp_path, "attends_by")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.read_bytes().startswith(b"\x89PNG")
    axes = attends_by_figure(panels(IN_PHASES)).axes
    assert [each.get_title() for each in axes] == ["phase 0", "phase 1", "phase 2"]
    assert [len(each.get_yticks()) for each in axes] == [3, 3, 3]


def test_no_figure_without_words(run):
    nothing = a_run(explanation(phase_found(RULE)))
    assert panels(nothing) == ()
    assert 'id="attends"' not in decompiled(nothing, mechanisms("bfs"))
    assert "attends" not in charts(load_results(run), [], decompiled=nothing)
    assert "attends_by" not in available_figures(load_results(run), None, nothing)
