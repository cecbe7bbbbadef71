"""What size does to networks, as it is shown: on the page, as a figure."""

import shutil
from pathlib import Path

import pytest

from mechgap.measures.at_sizes import AtSizes, load_sizes
from mechgap.measures.results import load_results
from mechgap.report.figures import draw_figures
from mechgap.report.page.page import write_page
from mechgap.report.sizes import BESIDE, LEARNED, MEASURES, lines_of
from opened_pages import Opened

KEPT = Path(__file__).parents[2] / "results" / "sizes" / "bfs.json"


@pytest.fixture
def looked_at(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    shutil.copy(KEPT, folder / "sizes.json")
    return folder


def test_lines_have_every_network_and_size():
    found = AtSizes.read(KEPT)
    assert found is not None
    told = lines_of(found)
    assert list(told) == list(MEASURES.values())
    matrices_last = sorted(found.graphs, key=lambda on: (not on.lists, on.count))
    largest = {(on.kind, on.nodes): on for on in matrices_last}
    assert len(largest) < len(found.graphs)  # some were looked at twice
    assert not any(on.lists for on in largest.values())
    for measure, label in list(MEASURES.items())[:2]:
        for on in largest.values():
            wanted = [getattr(seen, measure) for seen in on.seeds.values()]
            assert told[label][on.kind][LEARNED][on.nodes] == wanted
    agreed = told[MEASURES["agreement"]]
    assert {1.0} == {s for by in agreed.values() for v in by["compiled"].values() for s in v}
    for on in largest.values():
        mechanisms = [seen.mechanisms for seen in on.seeds.values()]
        possible = [[m[name].agreement for m in mechanisms] for name in ("bfs", "bfs_parent")]
        assert agreed[on.kind][LEARNED][on.nodes] in possible


def test_the_page_shows_it(browser, looked_at):
    opened = Opened(browser, write_page(looked_at))
    opened.tab.wait_for_selector("html[data-charts=true]")
    assert opened.complaints == []
    names = opened.tab.eval_on_selector_all(
        "#sizes .legendtext", "all => all.map(text => text.textContent)"
    )
    known = {name for lines in lines_of(load_sizes(looked_at)).values()
             for by_kind in lines.values() for name in by_kind}  # fmt: skip
    assert set(names) == known
    assert {LEARNED, BESIDE["compiled"]} <= known


def test_a_figure_shows_it(looked_at, tmp_path):
    results, found = load_results(looked_at), load_sizes(looked_at)
    written = draw_figures(results, None, tmp_path / "figures", sizes=found)
    assert "sizes" in {path.stem for path in written}
