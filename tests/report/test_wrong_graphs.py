"""The smallest wrong graph of every seed, on the page."""

import shutil
from xml.etree import ElementTree

import numpy as np

from mechgap.calls import counterexamples
from mechgap.measures.counterexample import Counterexample, Searched, WentWrong, WrongAnswer
from mechgap.measures.counterexamples import SearchedRun
from mechgap.report.page.page import write_page
from mechgap.report.page.wrong_graphs import wrong_graphs
from opened_pages import Opened

FOUND = Counterexample(
    nodes=4,
    edges=((0, 1, 1.0), (1, 2, 0.25), (3, 3, 1.0)),
    source=0,
    wrong=(WrongAnswer("pi", 2, 3.0, 1.0),),
    went_wrong=WentWrong(1, "pi_h", 2, (3,), (1,)),
)


def drawn(searched: Searched):
    return wrong_graphs(SearchedRun("bfs", "best", 4, {7: searched}))


def test_a_wrong_graph_is_drawn():
    page = drawn(Searched({1: 1, 2: 4, 3: 24, 4: 100}, {}, FOUND))
    start, end = page.index("<svg"), page.index("</svg>") + 6
    picture = ElementTree.fromstring(page[start:end])
    kinds = [each.get("class") for each in picture]
    assert kinds.count("edge") == 2  # and no line for a self-loop
    assert kinds.count("node source") == kinds.count("node wrong") == 1
    line = {each.get("class"): each for each in picture.iter("line")}
    nodes = {each[1].text: each[0] for each in picture.iter("g")}

    def ends_at(kind, node):
        return [line[kind].get("x2"), line[kind].get("y2")] == [
            nodes[node].get("cx"),
            nodes[node].get("cy"),
        ]

    assert ends_at("answered", "3")
    assert ends_at("right", "1")
    assert [text.text for text in picture.findall("text")] == ["0.25"]
    assert "none among the 128 graphs before it" in page
    assert "first wrong in step 2, in pi_h of node 2, which attended most to 3 (exactly: 1)" in page
    assert "0 of 1 seeds are right on all graphs up to 4 nodes" in page


def test_what_was_not_found_is_told_without_a_picture():
    page = drawn(Searched({1: 1, 2: 4, 3: 24, 4: 256}, {8: 640}, None))
    assert "<svg" not in page
    assert "none among all 285 graphs up to 4 nodes, nor among 640 larger ones" in page
    assert "1 of 1 seeds are right" in page
    assert wrong_graphs(None) == ""


def test_a_wrong_graph_opens_in_the_player(run, tmp_path, browser):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    found = counterexamples(folder, max_nodes=3)
    assert SearchedRun.load(folder) == found
    seed = next(seed for seed, each in found.seeds.items() if seed > 0 and each.found)
    wrong = found.seeds[seed].found
    assert wrong is not None
    opened = Opened(browser, write_page(folder))
    tab = opened.tab
    graphs = tab.locator("#sample option").count()
    tab.click(f"a[data-wrong-of='{seed}']")
    assert tab.input_value("#seed") == str(sorted(found.seeds).index(seed))
    assert "the smallest it is wrong on" in tab.inner_text("#sample option:checked")
    assert wrong.sentence in tab.inner_text("#tv")
    nodes = tab.eval_on_selector_all("#learned .node", "all => all.map(n => +n.dataset.node)")
    assert nodes == list(range(wrong.nodes))
    attention = wrong.run["attention"][0, 0].astype(float)
    strong = {(int(i), int(j)) for i, j in np.argwhere(attention > 0.025) if i != j}
    assert strong <= opened.arrows("learned").keys()
    senders = wrong.graph["senders/bfs"][0, 0]
    assert opened.arrows("compiled") == {(i, int(j)): 1.0 for i, j in enumerate(senders) if i != j}
    # Another seed has not been run on it: back to the graphs that all have.
    tab.select_option("#seed", "0")
    assert tab.input_value("#sample") == "0"
    assert tab.locator("#sample option").count() == graphs
    assert opened.complaints == []
