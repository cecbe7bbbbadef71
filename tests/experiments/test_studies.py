"""Tables of what is found out about trained networks beside their measures."""

from dataclasses import replace
from pathlib import Path

import pytest

from mechgap.experiments.replication import at_sizes as sized
from mechgap.experiments.replication import counterexamples as searching
from mechgap.experiments.replication.at_sizes import (
    AT_SIZES,
    AtSizesTable,
    keep_sizes,
    kept_sizes,
)
from mechgap.experiments.replication.carrying import ChannelsTable
from mechgap.experiments.replication.computing import InterchangeTable, TwoByTwoTable
from mechgap.experiments.replication.counterexamples import (
    COUNTEREXAMPLES,
    CounterexampleTable,
    keep_counterexamples,
    kept_counterexamples,
)
from mechgap.experiments.replication.failing import FailingTable
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Row
from mechgap.experiments.replication.library import BF, BFS
from mechgap.experiments.replication.numbers import load_numbers, save_numbers
from mechgap.measures.channels import Channels, Followed, Follows, Number
from mechgap.measures.counterexample import Counterexample, Searched, WrongAnswer
from mechgap.measures.counterexamples import SearchedRun
from mechgap.measures.failing import FIRSTS, Failing, OfKind
from mechgap.measures.interchange.agreement import Agreement, Share
from mechgap.measures.interchange.measure import Carried, Interchange
from mechgap.measures.interchange.reading import Reading
from untrained_runs import untrained_run

RESULTS = Path(__file__).parents[2] / "results"
ROWS = (Row("bfs", BFS), Row("bellman_ford", BF))


def rendered(table, results):
    return table.rendered("name", results, Judge.of([], results))


def agreeing(follows, cases=100):
    return Agreement(Share(cases, follows, 1 - follows), Share(cases, 1.0, 0.0))


def interchange(**variables):
    carried = {
        name: Carried(
            dimensions=2,
            curve={0: 0.1, 2: follows},
            small=agreeing(follows),
            large=agreeing(follows / 2),
            random=agreeing(0.03),
            shuffled=agreeing(0.2),
            whole=agreeing(1.0),
        )
        for name, follows in variables.items()
    }
    return {"bfs": Interchange(carried, ("level",))}


def carried(true, other):
    """A number that follows true weights, and others if attention was computed from these."""
    under = {"own": Follows(true, 0.1), "interchanged": Follows(0.1, other)}
    return Number(Followed(50, 0.3, under), Followed(50, 0.3, under))


def reading(found, first):
    """`visit` is read rightly and at times wrong first, `pi` cannot be read."""
    visit, pi = Reading(0.99, 4, first), Reading(0.1, 4, {})
    carried = {
        name: replace(found["bfs"].variables[name], reading=read)
        for name, read in (("visit", visit), ("pi", pi))
    }
    return {"bfs": replace(found["bfs"], variables=carried)}


@pytest.fixture
def kept(tmp_path):
    """The numbers of BFS as if three of its seeds had been studied."""
    numbers = load_numbers(RESULTS, "bfs")
    assert numbers is not None
    assert numbers.measures is not None
    wrong = Failing(
        "bfs", 3, 100, dict(zip(FIRSTS, (0.0, 1.0, 0.0, 0.0), strict=True)), 0.5,
        {"a tie": OfKind(0.75, 0.25)},
    )  # fmt: skip
    agreed = dict(numbers.measures.seeds[0].gaps)
    attends_not = {**agreed, "bfs": replace(agreed["bfs"], agreement=0.3)}
    first = dict(zip(("before", "together", "after", "never"), (0.25, 0.25, 0.5, 0.0), strict=True))
    carries = Channels(100, 0.85, 0.8, {"d": carried(0.9, 0.85)})
    studied = (
        {
            "interchange": reading(interchange(visit=0.9, pi=0.8), first),
            "failing": wrong,
            "channels": carries,
        },
        {"interchange": interchange(visit=0.5, pi=0.1), "failing": replace(wrong, nodes=0)},
        {"interchange": interchange(visit=0.9, pi=0.9), "gaps": attends_not},
    )
    seeds = [replace(s, interchange={}, failing=None) for s in numbers.measures.seeds]
    seeds = (*(replace(s, **m) for s, m in zip(seeds, studied, strict=False)), *seeds[3:])
    baselines = dict(numbers.measures.baselines)
    for name, follows in (("untrained", 0.06), ("compiled", 1.0)):
        baselines[name] = replace(
            baselines[name],
            interchange=interchange(visit=follows, pi=follows),
            channels=Channels(100, 0.2, 0.1, {"d": carried(0.0, 0.0)}),
        )
    measures = replace(numbers.measures, seeds=seeds, baselines=baselines)
    save_numbers(tmp_path, "bfs", replace(numbers, measures=measures))
    return tmp_path


def test_variables_stand_beside_their_baselines(kept):
    table = rendered(InterchangeTable("A table", ROWS), kept)
    visit, pi, missing = table.rows
    assert {len(row) for row in table.rows} == {len(table.head)}
    cells = dict(zip(table.head, visit, strict=True))
    assert cells["variable"] == "bfs: visit"
    assert cells["outputs follow"].startswith("76.67 ±")
    assert (cells["untrained"], cells["compiled"], cells["seeds"]) == ("6.00 %", "100.00 %", "3")
    assert cells["random directions"].startswith("3.00")
    assert pi[1] == "bfs: pi"
    assert missing[1].startswith("not run")
    assert table.data[0]["score"] == pytest.approx((0.9 + 0.5 + 0.9) / 3)


def test_seeds_stand_in_the_quarter_that_they_are_in(kept):
    table = TwoByTwoTable("A table", ROWS)
    row = dict(zip(*(lambda r: (r.head, r.rows[0]))(rendered(table, kept)), strict=True))
    # 0.3 is half of what an untrained network misses, or less; so is (0.5 + 0.1) / 2.
    quarters = ("both", "attend only", "compute only", "neither")
    assert [row[name] for name in quarters] == ["1", "1", "1", "0"]
    assert row["seeds"] == "3"
    figure = table.drawn(kept)
    assert figure is not None
    assert [axes.get_title() for axes in figure.axes] == ["bfs\nbeside bfs"]
    assert table.drawn(kept / "nothing") is None


def test_why_it_fails_is_told_of_seeds_that_are_wrong(kept):
    table = rendered(FailingTable("A table", ROWS), kept)
    row = dict(zip(table.head, table.rows[0], strict=True))
    assert row["nodes answered wrongly"] == "3.00 %"
    assert row["first wrong: a hint"] == "100.00 %"
    state = "bfs: visit 25.00 % (99.00 %); bfs: pi - (10.00 %)"
    assert row["the state, before either (read rightly)"] == state
    assert row["kinds of nodes: of the wrong ones (of all)"] == "a tie 75.00 % (25.00 %)"
    assert row["seeds"] == "1 of 2"


def test_channels_stand_beside_the_untrained(kept):
    """A number that follows the weights that attention was computed from comes by attention."""
    rows = (Row("weights in attention", BFS), Row("not run", BF))
    row, untrained, missing = rendered(ChannelsTable("A table", rows), kept).rows
    head = rendered(ChannelsTable("A table", rows), kept).head
    cells = dict(zip(head, row, strict=True))
    assert (cells["read from attention"], cells["number"], cells["seeds"]) == ("0.8500", "d", "1")
    assert cells["own attention"] == "0.90 / 0.10"
    assert cells["of other weights"] == "0.10 / 0.85"
    assert cells["comes by"].startswith("attention")
    assert untrained[1] == "untrained"
    assert missing[1].startswith("not run")


def test_counterexamples_are_kept_and_joined(tmp_path, monkeypatch):
    """Those of seeds whose networks are gone stay; another search begins anew."""
    found = Counterexample(4, ((0, 1, 1.0),), 0, (WrongAnswer("pi", 1, 3.0, 0.0),), None)
    all_of = {1: 1, 2: 4, 3: 24}
    wrong, right = Searched({**all_of, 4: 7}, {}, found), Searched({**all_of, 4: 256}, {8: 9}, None)
    gone = SearchedRun("bfs", "best", 4, {7: right})
    folder = tmp_path / "counterexamples"
    gone.write(folder / "bfs.json")
    untrained_run(tmp_path / "runs" / "bfs", seeds=(0,))
    now = SearchedRun("bfs", "best", 4, {0: wrong})
    monkeypatch.setattr(searching, "counterexamples", lambda *_, **__: now)
    for population in (BFS, BF):  # the second has no run
        keep_counterexamples(population, tmp_path / "runs", tmp_path, lambda *_: None)
    kept = kept_counterexamples(tmp_path, BFS)
    assert kept is not None
    assert kept.seeds == {0: wrong, 7: right}
    assert COUNTEREXAMPLES.is_known(BFS, tmp_path)
    assert not COUNTEREXAMPLES.is_known(BF, tmp_path)
    table = rendered(CounterexampleTable("A table", ROWS), tmp_path)
    assert table.rows[0][1:4] == ("4 nodes (285)", "1 of 2", "4 (1)")
    assert "pi(1) is answered 3 and is 0" in table.rows[0][4]
    assert table.rows[1][1].startswith("not run")
    replace(gone, max_nodes=3).write(folder / "bfs.json")
    keep_counterexamples(BFS, tmp_path / "runs", tmp_path, lambda *_: None)
    assert kept_counterexamples(tmp_path, BFS) == now


def test_sizes_are_kept_and_joined(tmp_path, monkeypatch):
    """Those of seeds whose networks are gone stay; what is known is not looked at again."""
    monkeypatch.setattr(sized, "KINDS", ("tree",))
    monkeypatch.setattr(sized, "COUNTS", {4: 2, 6: 2})
    monkeypatch.setattr(sized, "DECIDED", 6)
    untrained_run(tmp_path / "runs" / "bfs", seeds=(0,))
    for population in (BFS, BF):  # the second has no run
        keep_sizes(population, tmp_path / "runs", tmp_path, lambda *_: None)
    kept = kept_sizes(tmp_path, BFS)
    assert kept is not None
    assert [(on.nodes, on.lists, [*on.seeds]) for on in kept.graphs] == [
        (4, False, ["0"]), (6, False, ["0"]), (6, True, ["0"])
    ]  # fmt: skip
    other = {"7": kept.graphs[0].seeds["0"]}
    gone = kept.with_(replace(kept.graphs[0], seeds=other))
    gone.write(tmp_path / "sizes" / "bfs.json")
    keep_sizes(BFS, tmp_path / "runs", tmp_path, lambda *_: None)
    joined = kept_sizes(tmp_path, BFS)
    assert joined is not None
    assert {*joined.of("tree", 4, 2).seeds} == {"0", "7"}
    assert AT_SIZES.is_known(BFS, tmp_path)
    assert not AT_SIZES.is_known(BF, tmp_path)
    table = rendered(AtSizesTable("A table", ROWS), tmp_path)
    assert table.rows[1] == ("bfs, compiled", "tree", *["100.0 / 100.0 / 100.0"] * 2, "-", "-")
    assert table.rows[0][4].endswith("(1 seed)")
    assert table.rows[2][1].startswith("not run")
