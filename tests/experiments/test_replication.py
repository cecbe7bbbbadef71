"""The paper beside our runs: tables, plans, status, and the page in the docs."""

import json
import re
import shutil
from dataclasses import asdict, astuple, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from command_line import call
from mechgap.cli.reproduce import reproduce
from mechgap.errors import InvalidInput
from mechgap.experiments.replication import tables
from mechgap.experiments.replication.budget import Candidate, plan
from mechgap.experiments.replication.comparison import Spread, agree, correlations_agree
from mechgap.experiments.replication.figures import FIGURES, draw_paper_figures
from mechgap.experiments.replication.joining import joined
from mechgap.experiments.replication.kinds import AccuracyTable, Row
from mechgap.experiments.replication.numbers import load_numbers, numbers_of, save_numbers
from mechgap.experiments.replication.page import replication_page
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import FORMATS
from mechgap.experiments.replication.status import standing
from mechgap.experiments.replication.tables import BFS, TABLES, all_populations
from mechgap.measures.run import measure_run
from mechgap.measures.trajectory import Standpoint
from mechgap.report.paper import paper_number
from mechgap.training.store import Store
from untrained_runs import untrained_run

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "results"


@pytest.fixture
def mechgap(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return partial(call, monkeypatch, capsys, "reproduce")


def test_the_page_in_the_docs_is_made_from_the_results(tmp_path):
    made = replication_page(RESULTS, PROJECT / "docs" / "figures")
    assert made == (PROJECT / "docs" / "replication.md").read_text()
    assert replication_page(tmp_path) != made  # it does depend on them


def test_every_number_of_the_paper_has_a_row():
    """All printed accuracies are in some table, and every table of accuracies has them."""
    from mechgap.report import paper

    shown = {
        (p.task, p.preset)
        for table in TABLES.values()
        for p in table.populations
        if paper_number(p.full_recipe)
    }
    assert shown == set(paper._NUMBERS)


def test_populations_have_names_and_rates_of_their_own():
    populations = [p for table in TABLES.values() for p in table.populations]
    recipes = {}
    for p in populations:
        assert recipes.setdefault(p.name, p.recipe) == p.recipe
        assert p.rate > 0
    assert len({str(r) for r in recipes.values()}) == len(recipes)
    assert Population("bfs").shortened(500).name == "bfs_500_steps"
    assert Population("bfs").shortened(500).rate == Population("bfs").rate
    assert Population("bfs").shortened(10_000) == Population("bfs")


def test_agreement_is_students():
    ours, theirs = [90.1, 91.0, 92.2, 89.9], [92.0, 93.1, 92.4, 91.8, 92.9]
    p = float(stats.ttest_ind(ours, theirs)[1])  # pyright: ignore
    assert agree(Spread.of(ours), Spread.of(theirs)) == (p >= 0.05)
    assert agree(Spread.of([90.0]), Spread.of(theirs)) is None
    assert agree(Spread.of([100.0] * 3), Spread.of([100.0] * 4)) is True
    expected = stats.t.interval(0.95, 3, 90.8, stats.sem(ours))
    assert Spread.of(ours).interval == pytest.approx(expected)


def test_correlations_of_one_law_agree_nineteen_times_in_twenty():
    """8 and 108 seeds, drawn from the same normal distribution: the test errs as often as said."""
    rng = np.random.default_rng(0)

    def coefficient(count):
        x, noise = rng.standard_normal((2, count))
        return float(np.corrcoef(x, 0.6 * x + 0.8 * noise)[0, 1]), count

    verdicts = [correlations_agree(coefficient(8), coefficient(108)) for _ in range(4000)]
    assert np.mean([v is True for v in verdicts]) == pytest.approx(0.95, abs=0.015)
    assert correlations_agree((1.0, 8), (0.2, 108)) is False
    assert correlations_agree((None, 2), (0.2, 108)) is None
    assert correlations_agree((0.9, 3), (0.2, 108)) is None


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Runs and results of a small BFS population that is measured."""
    root = tmp_path_factory.mktemp("replication")
    measure_run(untrained_run(root / "runs" / "bfs"))
    numbers = numbers_of(root / "runs" / "bfs")
    assert numbers is not None
    save_numbers(root / "results", "bfs", numbers)
    return root


def test_numbers_are_the_runs(measured):
    kept = load_numbers(measured / "results", "bfs")
    assert kept is not None
    with Store.reading(measured / "runs" / "bfs") as store:
        rows = store.seeds()
    assert kept["seed"] == [row.seed for row in rows]
    assert kept["accuracy"] == pytest.approx([row.test_of_best for row in rows], rel=1e-5)
    assert kept["measures"]["seed"] == kept["seed"]
    (measured / "results" / "broken.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"broken\.json"):
        load_numbers(measured / "results", "broken")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", TABLES)
def test_tables_in_every_format(measured, name, format):
    with_numbers = TABLES[name].rendered(name, measured / "results")
    without = TABLES[name].rendered(name, measured / "nothing")
    shown = [FORMATS[format](table) for table in (with_numbers, without)]
    uses_it = BFS in TABLES[name].populations and name != "landscapes"  # it has files of its own
    assert (shown[0] != shown[1]) == uses_it
    if format == "json":
        assert len(json.loads(shown[0])["rows"]) == len(with_numbers.data)
    elif format == "latex":
        assert shown[0].count(r"\\") == 1 + len(with_numbers.rows)
        assert not re.search(r"(?<!\\)[%_&#](?! )", re.sub(r"\\label\{.*?\}", "", shown[0]))
    else:
        assert with_numbers.caption.split()[0] in shown[0]


def test_correlations_stand_beside_the_papers():
    """Those of a population that the paper has not are shown alone."""
    kept = load_numbers(RESULTS, "bfs")
    assert kept is not None
    table = TABLES["correlations"].rendered("correlations", RESULTS)
    assert {len(row) for row in table.rows} == {len(table.head)}
    for row in table.data:
        kind, test = row["row"].split(", ")
        x, y = (
            kept["measures"][key]
            for key in ("accuracy", {"external": "external", "internal": "internal_tv"}[kind])
        )
        expected = {"Pearson r": stats.pearsonr, "Spearman ρ": stats.spearmanr}[test](x, y)
        assert row["ours"]["value"] == pytest.approx(float(np.asarray(expected)[0]), abs=1e-4)
        assert row["paper"] is not None
    alone = TABLES["correlations_elsewhere"].rendered("correlations_elsewhere", RESULTS)
    assert "paper" not in alone.head
    assert {len(row) for row in alone.rows} == {len(alone.head)}
    assert len(alone.rows) == 4 * len(TABLES["correlations_elsewhere"].populations)


def test_seeds_that_diverged_are_not_trained_again(tmp_path, monkeypatch, capsys):
    """Their numbers cannot come: a run that is lost is not made anew for them."""
    kept = load_numbers(RESULTS, "bfs")
    assert kept is not None
    lost = {str(seed): 17 for seed in kept["seed"][2:]}
    first = {key: kept[key][:2] for key in ("seed", "accuracy", "accuracy_last")}
    save_numbers(tmp_path, "bfs", {**kept, **first, "measures": None, "diverged": lost})
    found = standing(BFS, None, tmp_path / "runs", tmp_path)
    assert (found.state, found.to_train) == ("partly", ())
    table = AccuracyTable("A table", (Row("bfs", BFS),))
    monkeypatch.setattr(tables, "TABLES", {"a_table": table})
    reproduce("a_table", format="markdown", runs=tmp_path / "runs", results=tmp_path)
    shown = capsys.readouterr()
    assert "to train" not in shown.err
    assert not (tmp_path / "runs").exists()
    assert f"seeds {', '.join(lost)} diverged and are not counted" in shown.out


def test_seeds_that_are_all_above_the_papers_are_said(tmp_path):
    kept = load_numbers(RESULTS, "bellman_ford_edge_info_mixed")
    assert kept is not None
    table = TABLES["edge_info_ablation"]
    for lowest, above in ((0.9273, True), (0.9271, False)):  # the paper's highest: 92.72
        numbers = {**kept, "accuracy": [lowest, 0.99]}
        save_numbers(tmp_path, "bellman_ford_edge_info_mixed", numbers)
        remarks = table.rendered("edge_info_ablation", tmp_path).remarks
        assert any("is above the paper's highest" in remark for remark in remarks) == above


def test_a_row_says_what_is_missing_and_what_it_costs(measured):
    (row, *_) = TABLES["disparity"].rendered("disparity", measured / "results").rows
    assert re.fullmatch(r"not run: 4 seeds take [\d.]+ (min|h)", row[3])


def test_standing(measured, tmp_path):
    found = standing(BFS, 3, measured / "runs", measured / "results")
    assert (found.state, found.finished, found.seconds) == ("done", 3, 0)
    found = standing(BFS, 6, measured / "nothing", measured / "results")
    assert (found.state, found.finished) == ("partly", 3)
    assert found.seconds == pytest.approx(3 * 10_000 / BFS.rate)
    found = standing(BFS, None, tmp_path, tmp_path)
    assert (found.state, found.finished) == ("missing", 0)
    recipe = replace(BFS.recipe, train_steps=10)
    with Store.writing(tmp_path / "bfs", recipe, 1):
        assert standing(BFS, None, tmp_path, tmp_path).state == "running"
    assert standing(BFS, None, tmp_path, tmp_path).state == "missing"


def candidates(**finished):
    return [
        Candidate.of(p, finished.get(name, 0), 128, 1, p.rate)
        for name, p in all_populations().items()
    ]


def test_a_budget_is_kept_and_spent_where_rows_are_empty():
    for hours in (0.5, 2.0, 24.0):
        found = plan(candidates(), hours * 3600)
        assert 0.5 * hours * 3600 < found.seconds <= hours * 3600
        assert all(count <= 128 for count in found.seeds.values())
    # With a day every row has a number; with half an hour the dear ones have none.
    assert plan(candidates(), 24 * 3600.0).without == ()
    assert "dfs_three_steps_2000_steps" in plan(candidates(), 1800.0).without
    # What has many seeds already waits for what has none.
    assert "bfs" not in plan(candidates(bfs=100), 1800.0).seeds
    assert plan(candidates(), 1.0).seeds == {}


def test_trajectories_are_drawn_for_each_task(tmp_path):
    for name, seeds in (("bfs_stability_paper", 2), ("bellman_ford_stability_paper", 1)):
        path = [asdict(Standpoint(seed, step, 1.0, 0.1, "bfs", 1.0, 1.0))
                for seed in range(seeds) for step in (0, 10)]  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "trajectory.json").write_text(json.dumps(path))
    written = {path.name for path in draw_paper_figures(tmp_path, tmp_path / "figures")}
    tasks = ("bfs", "bellman_ford")
    assert written == {f"stability_{task}.{e}" for task in tasks for e in ("pdf", "png")}


@pytest.mark.slow
def test_figures_are_drawn_from_measured_runs(measured, tmp_path):
    written = draw_paper_figures(measured / "runs", tmp_path / "figures")
    names = {path.name for path in written}
    wanted = {f"{figure.drawing}_bfs.png" for figure in FIGURES if BFS in figure.populations}
    assert {name for name in wanted if not name.startswith("landscape")} <= names
    assert all(path.stat().st_size > 1000 for path in written)


def test_a_table_is_trained_shown_and_not_trained_twice(tmp_path, monkeypatch, capsys):
    tiny = Population(
        "bfs",
        seeds=2,
        overrides={"hidden_size": 4, "train_lengths": (6,), "length_generalize": False},
        suffix="tiny",
        ends=True,
    )
    table = AccuracyTable("A small table", (Row("small", tiny),))
    monkeypatch.setattr(tables, "TABLES", {"tiny": table})
    places = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
    reproduce("tiny", steps=2, as_json=True, **places)
    shown = capsys.readouterr()
    (row,) = json.loads(shown.out)["rows"]
    assert (row["ours"]["seeds"], row["steps"], row["paper"]) == (2, 2, None)
    assert "to train: bfs_tiny_2_steps (2 seeds); about" in shown.err
    kept = load_numbers(tmp_path / "results", "bfs_tiny_2_steps")
    assert kept is not None
    assert kept["measures"]["seed"] == [0, 1]
    best, last = ([Standpoint(*row) for row in kept["ends"]][i::2] for i in (0, 1))
    assert [point.accuracy for point in best] == pytest.approx(kept["accuracy"], rel=1e-5)
    assert [point.accuracy for point in last] == pytest.approx(kept["accuracy_last"], rel=1e-5)
    assert [point.step for point in last] == [2, 2]
    for key in ("internal_tv", "top1_active", "external"):
        known = kept["measures"][key]
        assert [getattr(point, key) for point in best] == pytest.approx(known, rel=1e-5)
    reproduce("tiny", steps=2, **places)
    shown = capsys.readouterr()
    assert "to train" not in shown.err
    assert "95 % interval" in shown.out

    # The run is lost, its numbers are not: only further seeds are trained, and join them.
    shutil.rmtree(tmp_path / "runs")
    for _ in range(2):
        reproduce("tiny", steps=2, seeds=3, **places)
    assert "bfs_tiny_2_steps: 1 seeds" in capsys.readouterr().err
    more = load_numbers(tmp_path / "results", "bfs_tiny_2_steps")
    assert more is not None
    assert (more["seed"], more["measures"]["seed"]) == ([0, 1, 2], [0, 1, 2])
    assert more["accuracy"][:2] == kept["accuracy"]
    assert more["measures"]["external"][:2] == kept["measures"]["external"]
    assert more["measures"]["correlation"]["external"]["n"] == 3
    assert [row[0] for row in more["ends"]] == [0, 0, 1, 1, 2, 2]
    assert more["ends"][:4] == kept["ends"]
    assert more["measures"]["solutions"] == {**kept["measures"]["solutions"], "seeds": 2}
    assert [each["seed"] for each in more["earlier"]] == [[0, 1]]
    with Store.reading(tmp_path / "runs" / "bfs_tiny_2_steps") as store:
        assert [row.seed for row in store.seeds()] == [2]


def test_best_and_last_parameters_stand_side_by_side(tmp_path):
    table = TABLES["ends"]
    point = Standpoint(0, 50, 0.5, 0.4, "bfs", 0.25, 0.75, 1.0)
    kept = load_numbers(RESULTS, "bfs")
    assert kept is not None
    later = replace(point, step=100, accuracy=0.75)
    save_numbers(tmp_path, "bfs", {**kept, "ends": [list(astuple(p)) for p in (point, later)]})
    best, last, *missing = table.rendered("ends", tmp_path).rows
    assert best == ("bfs, best", "50", "50.00", "75.00", "40.00", "25.00", "100.00", "1")
    assert last[1:3] == ("100", "75.00")
    assert all(row[2].startswith("not run") for row in missing)


def test_numbers_of_another_recipe_are_not_joined(measured):
    kept = load_numbers(measured / "results", "bfs")
    assert kept is not None
    new = {**kept, "seed": [7], "recipe": {**kept["recipe"], "train_steps": 1}}
    with pytest.raises(InvalidInput, match="another recipe \\(it differs in train_steps\\)"):
        joined(kept, new)


@pytest.mark.slow
def test_a_budget_is_spent(tmp_path, monkeypatch, capsys):
    """Two seconds are enough for nothing but a lot of these; the deadline stops the rest."""
    small = {"hidden_size": 4, "train_lengths": (4,), "length_generalize": False}
    rows = tuple(
        Row(f"{steps}", Population("bfs", seeds=32, overrides={**small, "train_steps": steps},
                                   suffix=f"{steps}"))
        for steps in (50, 10**7)
    )  # fmt: skip
    monkeypatch.setattr(tables, "TABLES", {"tiny": AccuracyTable("A small table", rows)})
    places = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
    reproduce("all", budget="40s", **places)
    shown = capsys.readouterr()
    assert "to train, in this order: bfs_50 (32 seeds)" in shown.err
    assert "without any number still: bfs_10000000" in shown.err
    assert "All that is left takes about" in shown.out


def test_from_the_command_line(mechgap, tmp_path):
    status = mechgap("status", "--json")
    items = {item["name"]: item for item in json.loads(status.stdout)["items"]}
    assert items["baselines"]["state"] == "missing"
    assert items["baselines"]["estimated_seconds"] > 60
    assert items["minimal"]["populations"][0]["seeds"] == {"finished": 0, "wanted": 1024}
    # Trained populations are not yet landscapes.
    for name in ("bfs", "bellman_ford"):
        shutil.copy(RESULTS / f"{name}.json", tmp_path)
    for results, state in ((RESULTS, "done"), (tmp_path, "missing")):
        shown = mechgap("status", "--json", "--results", results)
        states = {item["name"]: item["state"] for item in json.loads(shown.stdout)["items"]}
        assert (states["landscapes"], states["Flatness"]) == (state, state)
    shown = mechgap("baselines", "--no-train", "--format", "markdown", "--results", RESULTS)
    assert "| bfs | 98.30 ± 0.97 (100.00) | 128 |" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["baseline"], "Did you mean 'baselines'?"),
        (["baselines", "--format", "html"], "unknown format 'html'"),
        (["baselines", "--seeds", "0"], "seeds must be at least 1"),
        (["baselines", "--budget", "2h"], "--budget is for"),
        (["all", "--budget", "soon"], "a budget is a time such as 90m"),
        (["all", "--budget", "1s"], "too short for any more seeds"),
        (["page", "--out", "/no/such/folder/page.md"], "cannot write"),
    ],
)
def test_what_cannot_be(mechgap, arguments, says):
    done = mechgap(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
