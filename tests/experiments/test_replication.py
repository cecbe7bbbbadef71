"""The paper beside our runs: tables, plans, status, and the page in the docs."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from command_line import call
from made_explanations import explanation, phase_found
from mechgap.cli.reproduce import reproduce
from mechgap.decompiler import population
from mechgap.decompiler.decompile import Decompiled
from mechgap.decompiler.population import DecompiledRun
from mechgap.errors import InvalidInput
from mechgap.experiments.replication import tables
from mechgap.experiments.replication.accuracies import AccuracyTable
from mechgap.experiments.replication.budget import Candidate, plan
from mechgap.experiments.replication.figures import FIGURES, draw_paper_figures
from mechgap.experiments.replication.findings import findings_page
from mechgap.experiments.replication.joining import joined
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.keeping import keep_numbers
from mechgap.experiments.replication.kinds import Row
from mechgap.experiments.replication.library import BF, BFS, DFS, DFS_TAUGHT
from mechgap.experiments.replication.numbers import load_numbers, numbers_of, save_numbers
from mechgap.experiments.replication.objectives import ObjectivesTable
from mechgap.experiments.replication.page import replication_page
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.programs import (
    ProgramsTable,
    keep_programs,
    kept_programs,
)
from mechgap.experiments.replication.rendering import FORMATS
from mechgap.experiments.replication.sizes import SizesTable
from mechgap.experiments.replication.snapshots import (
    kept_fingerprints,
    kept_snapshots,
    solutions_of,
)
from mechgap.experiments.replication.status import status_of
from mechgap.experiments.replication.tables import STABILITY_ROWS, TABLES, all_populations
from mechgap.measures.run import measure_run
from mechgap.measures.snapshot import MechanismSeen, Seen, Snapshot
from mechgap.report.paper import paper_number
from mechgap.tasks.specs import get_task
from mechgap.training.population import graphs_to_test, score
from mechgap.training.rows import Notes, Observation
from mechgap.training.store import Store
from mechgap.typed import plain
from untrained_runs import untrained_run

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "results"


@pytest.fixture
def mechgap(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return partial(call, monkeypatch, capsys, "reproduce")


@pytest.mark.parametrize(
    ("make", "name"), [(replication_page, "replication"), (findings_page, "findings")]
)
def test_pages_in_the_docs_are_made_from_the_results(make, name, tmp_path):
    made = make(RESULTS, PROJECT / "docs" / "figures")
    assert made == (PROJECT / "docs" / f"{name}.md").read_text()
    assert "not run" in make(tmp_path, tmp_path)  # it does depend on them


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
    assert kept.seed == tuple(row.seed for row in rows)
    assert kept.accuracy == pytest.approx([row.test_of_best for row in rows], rel=1e-5)
    assert kept.measures is not None
    assert tuple(row.seed for row in kept.measures.seeds) == kept.seed
    again = numbers_of(measured / "runs" / "bfs")
    assert again is not None
    assert again.measures is not None
    assert again.measures.seeds == kept.measures.seeds  # to the last digit that a file has
    (measured / "results" / "broken.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"broken\.json"):
        load_numbers(measured / "results", "broken")
    (measured / "results" / "old.json").write_text('{"seed": [0]}')
    with pytest.raises(InvalidInput, match=r"old\.json' is of another version"):
        load_numbers(measured / "results", "old")


def test_other_graphs_are_kept_and_looked_at_once(measured, tmp_path):
    population = replace(BFS, elsewhere=(("tree", 6),))
    told: list[str] = []

    def keep() -> dict[str, float]:
        told.clear()
        runs = measured / "runs"
        keep_numbers(population, runs, tmp_path, lambda what, *_: told.append(what))
        kept = load_numbers(tmp_path, "bfs")
        assert kept is not None
        return {seed: seen.accuracy or 0.0 for seed, seen in kept.elsewhere["tree-6"].items()}

    found = keep()
    assert "bfs on tree-6, graphs" in told
    trees = graphs_to_test(get_task("bfs"), "tree", 6, 32)
    with Store.reading(measured / "runs" / "bfs") as store:
        expected = {
            str(row.seed): float(score(store.network(row.seed, "best"), trees))
            for row in store.seeds()
        }
    assert found == pytest.approx(expected, abs=1e-6)
    assert keep() == found
    assert "bfs on tree-6, graphs" not in told
    table = SizesTable("trees", (Row("bfs", population), Row("bellman_ford", BF)))
    (first, second) = table.rendered("trees", tmp_path, Judge.of([], tmp_path)).rows
    assert first[1].startswith(f"{100 * np.mean([*expected.values()]):.1f} / ")
    assert second[1].startswith("not run")


@pytest.mark.parametrize("population", [BFS, BF, DFS, DFS_TAUGHT], ids=lambda p: p.name)
def test_what_is_seen_in_training_is_what_is_measured(population, tmp_path):
    """A population that is not measured in full has the same row in a table as one that is."""
    whole = load_numbers(RESULTS, population.name)
    assert whole is not None
    assert whole.measures is not None
    looked_at = {s.seed: s for s in kept_snapshots(RESULTS, population.name) if s.which == "best"}
    both = tuple(row for row in whole.measures.seeds if row.seed in looked_at and row.deep)
    measured, seen = tmp_path / "measured", tmp_path / "seen"
    save_numbers(
        measured, population.name, replace(whole, measures=replace(whole.measures, seeds=both))
    )
    save_numbers(seen, population.name, replace(whole, measures=None))
    lines = [json.dumps(looked_at[row.seed].data()) + "\n" for row in both]
    (seen / "snapshots").mkdir()
    (seen / "snapshots" / f"{population.name}.jsonl").write_text("".join(lines))
    table = ObjectivesTable("both", (Row(population.name, population),))
    (one,), (other,) = (
        table.rendered("both", folder, Judge.of([], folder)).rows for folder in (measured, seen)
    )
    assert one == other
    assert "-" not in one


def test_programs_are_counted_and_joined(tmp_path, monkeypatch):
    """What was found about seeds whose networks are gone stays beside that of others."""
    runs = explanation(phase_found("select=minimum(other.idx)", on_selected=0.95))
    fails = replace(
        runs, forced={n: replace(f, rule=0.1, soft=0.1) for n, f in runs.forced.items()}
    )
    DecompiledRun("bfs", "best", {0: fails, 7: runs}).write(tmp_path / "decompiled" / "bfs.json")
    untrained_run(tmp_path / "runs" / "bfs", seeds=(0, 1))
    monkeypatch.setattr(population, "decompile", lambda *_: Decompiled(runs, None))
    keep_programs(BFS, tmp_path / "runs", tmp_path, lambda *_: None)
    kept = kept_programs(tmp_path, BFS)
    assert kept is not None
    assert kept.programs == {runs.in_short: 3}
    keep_programs(BF, tmp_path / "runs", tmp_path, lambda *_: None)  # has no run
    DecompiledRun("bfs", "best", {0: fails, 7: runs}).write(tmp_path / "decompiled" / "bfs.json")
    table = ProgramsTable("A table", (Row("bfs", BFS), Row("bellman_ford", BF)))
    found = table.rendered("programs", tmp_path, Judge.of([], tmp_path))
    assert [row[:3] for row in found.rows[:2]] == [
        ("bfs", fails.in_short, "1 of 2"),
        ("bfs", runs.in_short, "1 of 2"),
    ]
    assert found.rows[2][1].startswith("not run")
    assert found.data[1]["rule"] == runs.forced["test"].rule


def shown_table(name: str, results: Path):
    return TABLES[name].rendered(name, results, Judge.of(TABLES.values(), results))


@pytest.mark.parametrize("name", TABLES)
def test_tables_in_every_format(measured, name):
    with_numbers, without = (shown_table(name, measured / f) for f in ("results", "nothing"))
    # Landscapes have files of their own, and so has what was seen along training.
    elsewhere = {"landscapes", "along", "along_test", "checkpoints", "sentences"}
    # How many seeds are needed stands beside how many there are, and nothing is trained for it.
    uses_it = name == "power" or (BFS in TABLES[name].populations and name not in elsewhere)
    for write in FORMATS.values():
        assert (write(with_numbers) != write(without)) == uses_it
    assert len(json.loads(FORMATS["json"](with_numbers))["rows"]) == len(with_numbers.data)
    latex = FORMATS["latex"](with_numbers)
    assert latex.count(r"\\") == 1 + len(with_numbers.rows)
    assert not re.search(r"(?<!\\)[%_&#](?! )", re.sub(r"\\label\{.*?\}", "", latex))
    for format in FORMATS.keys() - {"json", "latex"}:
        assert with_numbers.caption.split()[0] in FORMATS[format](with_numbers)


def test_correlations_stand_beside_the_papers():
    """Those of a population that the paper has not are shown alone."""
    kept = load_numbers(RESULTS, "bfs")
    assert kept is not None
    table = shown_table("correlations", RESULTS)
    assert {len(row) for row in table.rows} == {len(table.head)}
    assert kept.measures is not None
    rows = kept.measures.seeds
    accuracy = [row.accuracy for row in rows]
    values = {
        "external": [row.external for row in rows],
        "internal": [row.gaps["bfs"].tv for row in rows],
    }
    for row in table.data:
        kind, test = row["row"].split(", ")
        coefficient = {"Pearson r": stats.pearsonr, "Spearman ρ": stats.spearmanr}[test]
        expected = float(np.asarray(coefficient(accuracy, values[kind]))[0])
        assert row["ours"]["value"] == pytest.approx(expected, abs=1e-4)
        assert row["paper"] is not None
        assert row["verdict"] is not None
    alone = shown_table("correlations_elsewhere", RESULTS)
    assert "paper" not in alone.head
    assert {len(row) for row in alone.rows} == {len(alone.head)}


def test_seeds_that_diverged_are_not_trained_again(tmp_path, monkeypatch, capsys):
    """Their numbers cannot come: a run that is lost is not made anew for them."""
    kept = load_numbers(RESULTS, "bfs")
    assert kept is not None
    lost = {str(seed): 17 for seed in kept.seed[2:]}
    first = {key: getattr(kept, key)[:2] for key in ("seed", "accuracy", "accuracy_last")}
    save_numbers(tmp_path, "bfs", replace(kept, **first, measures=None, diverged=lost))
    found = status_of(BFS, None, tmp_path / "runs", tmp_path)
    assert (found.state, found.to_train) == ("partly", ())
    table = AccuracyTable("A table", (Row("bfs", BFS),))
    monkeypatch.setattr(tables, "TABLES", {"a_table": table})
    reproduce("a_table", format="markdown", runs=tmp_path / "runs", results=tmp_path)
    shown = capsys.readouterr()
    assert "to train" not in shown.err
    assert not (tmp_path / "runs").exists()
    assert f"seeds {', '.join(lost)} diverged and are not counted" in shown.out


def test_seeds_above_the_paper_s_maximum_are_a_rank_test(tmp_path):
    name = "bellman_ford_edge_info_mixed"
    kept = load_numbers(RESULTS, name)
    assert kept is not None
    for lowest, above in ((0.9273, 2), (0.9271, 1)):  # the paper's largest: 92.72
        save_numbers(tmp_path, name, replace(kept, accuracy=(lowest, 0.99)))
        table = shown_table("edge_info_ablation", tmp_path)
        (row,) = (r for r in table.data if r.get("population") == name)
        assert row["above_the_paper's_maximum"] == above
        assert any(f"{above} of our 2 seeds are above" in remark for remark in table.remarks)
    # One of two above 128: the largest of 130 is ours. The other test of the table says more.
    p = Judge.of([TABLES["edge_info_ablation"]], tmp_path).adjusted[f"maximum of {name}"]
    assert p == pytest.approx(2 / 130)


def test_a_contrast_is_what_an_ablation_asks(tmp_path):
    """Both rows lie above the paper's; what the change does is the same."""
    kept = load_numbers(RESULTS, "bellman_ford_edge_info")
    assert kept is not None
    rows = {"edge_info_default": (0.9308, 0.9259, 0.9357), "edge_info": (0.9716, 0.9705, 0.9725)}
    for preset, accuracy in rows.items():
        recipe = Population("bellman_ford", preset).recipe
        numbers = replace(kept, recipe=recipe, accuracy=accuracy, accuracy_last=accuracy)
        save_numbers(tmp_path, f"bellman_ford_{preset}", numbers)
    table = shown_table("edge_info_ablation", tmp_path)
    (found,) = (row for row in table.data if "contrast" in row)
    assert found["paper"] == pytest.approx({"effect": 4.08, "standard_error": 0.542}, abs=0.01)
    assert found["ours"]["effect"] == pytest.approx(4.07, abs=0.01)
    assert found["verdict"] == "equivalent"
    (alone,) = (r for r in table.data if r.get("population") == "bellman_ford_edge_info")
    assert alone["verdict"].startswith("differs")


def test_a_row_says_what_is_missing_and_what_it_costs(measured):
    (row, *_) = shown_table("disparity", measured / "results").rows
    assert re.fullmatch(r"not run: 4 seeds take [\d.]+ (min|h)", row[3])


def test_standing(measured, tmp_path):
    found = status_of(BFS, 3, measured / "runs", measured / "results")
    assert (found.state, found.finished, found.seconds) == ("done", 3, 0)
    found = status_of(BFS, 6, measured / "nothing", measured / "results")
    assert (found.state, found.finished) == ("partly", 3)
    assert found.seconds == pytest.approx(3 * 10_000 / BFS.rate)
    found = status_of(BFS, None, tmp_path, tmp_path)
    assert (found.state, found.finished) == ("missing", 0)
    recipe = replace(BFS.recipe, train_steps=10)
    with Store.writing(tmp_path / "bfs", recipe, 1):
        assert status_of(BFS, None, tmp_path, tmp_path).state == "running"
    assert status_of(BFS, None, tmp_path, tmp_path).state == "missing"


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


def a_snapshot(seed: int, step: int, which: str = "step", accuracy: float = 0.5) -> Snapshot:
    parts = {"updated": {"tie": 0.1, "soft": 0.2, "wrong": 0.1}}
    beside = MechanismSeen(0.75, 0.5, 0.25, 0.4, parts)
    seen = Seen(accuracy, 0.25, 0.75, {"bfs": beside})
    return Snapshot(seed, step, which, seen, seen, 0.9)


def write_snapshots(results: Path, name: str, snapshots: list[Snapshot]) -> None:
    (results / "snapshots").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(s.data()) + "\n" for s in snapshots)
    (results / "snapshots" / f"{name}.jsonl").write_text(lines)


def test_trajectories_are_drawn_for_each_task(tmp_path):
    for row in (r for r in STABILITY_ROWS if r.target == "paper"):
        seen = [a_snapshot(seed, step) for seed in (0, 1) for step in (0, 10)]
        with Store.writing(tmp_path / row.population.name, row.population.recipe, 1) as store:
            notes = Notes(
                [], [Observation(s.seed, s.step, s.which, json.dumps(s.data()), b"") for s in seen]
            )
            with store._db:
                store._save_notes(notes)
    written = {path.name for path in draw_paper_figures(tmp_path, tmp_path, tmp_path / "figures")}
    tasks = ("bfs", "bellman_ford")
    assert written == {f"stability_{task}.{e}" for task in tasks for e in ("pdf", "png")}


@pytest.mark.slow
def test_figures_are_drawn_from_measured_runs(measured, tmp_path):
    written = draw_paper_figures(measured / "runs", measured / "results", tmp_path / "figures")
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
        snapshots=(),
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
    assert kept.measures is not None
    assert [row.seed for row in kept.measures.seeds] == [0, 1]
    seen = kept_snapshots(tmp_path / "results", "bfs_tiny_2_steps")
    best, last = ([s for s in seen if s.which == which] for which in ("best", "step"))
    assert [s.test.accuracy for s in best] == pytest.approx(kept.accuracy, rel=1e-5)
    assert [s.test.accuracy for s in last] == pytest.approx(kept.accuracy_last, rel=1e-5)
    assert [s.step for s in last] == [2, 2]
    for snapshot, row in zip(best, kept.measures.seeds, strict=True):
        assert snapshot.test.hints == pytest.approx(row.external, rel=1e-4)
        assert row.causal is not None
        assert snapshot.hardened == pytest.approx(row.causal.tempered["hardened"], rel=1e-5)
        for name, gap in row.gaps.items():
            for key in ("agreement", "misplaced", "tv"):
                known = getattr(snapshot.test.mechanisms[name], key)
                assert known == pytest.approx(getattr(gap, key), rel=1e-4, abs=1e-6)
    between = kept.measures.solutions.mean_between.l1
    reproduce("tiny", steps=2, **places)
    shown = capsys.readouterr()
    assert "to train" not in shown.err
    assert "difference" in shown.out

    # The run is lost, its numbers are not: only further seeds are trained, and join them.
    shutil.rmtree(tmp_path / "runs")
    for _ in range(2):
        reproduce("tiny", steps=2, seeds=3, **places)
    assert "bfs_tiny_2_steps: 1 seeds" in capsys.readouterr().err
    more = load_numbers(tmp_path / "results", "bfs_tiny_2_steps")
    assert more is not None
    assert more.measures is not None
    assert more.seed == tuple(row.seed for row in more.measures.seeds) == (0, 1, 2)
    assert more.accuracy[:2] == kept.accuracy
    assert plain(more.measures.seeds[:2]) == plain(kept.measures.seeds)
    assert more.measures.correlation.external is not None
    assert more.measures.correlation.external.n == 3
    again = kept_snapshots(tmp_path / "results", "bfs_tiny_2_steps")
    assert [s.seed for s in again] == [0, 0, 1, 1, 2, 2]
    assert [s for s in again if s.seed < 2] == seen
    # Distances of all three, from fingerprints; of the first two they are what was measured.
    prints = kept_fingerprints(tmp_path / "results", "bfs_tiny_2_steps")["best"]
    assert more.measures.solutions.seeds == len(prints) == 3
    pair = solutions_of(tiny.shortened(2), {seed: prints[seed] for seed in (0, 1)}, None)
    assert pair.mean_between.l1 == pytest.approx(between, abs=0.05)
    assert [each.seed for each in more.earlier] == [(0, 1)]
    with Store.reading(tmp_path / "runs" / "bfs_tiny_2_steps") as store:
        assert [row.seed for row in store.seeds()] == [2]


def test_best_and_final_checkpoints_stand_side_by_side(tmp_path):
    seen = [a_snapshot(0, 50, "best"), a_snapshot(0, 10_000, accuracy=0.75), a_snapshot(0, 5000)]
    write_snapshots(tmp_path, "bfs", seen)
    best, last, *missing = shown_table("checkpoints", tmp_path).rows
    assert best == ("bfs, best", "50", "50.00", "25.00", "75.00", "90.00", "75.00", "25.00",
                    "40.00", "1")  # fmt: skip
    assert last[1:3] == ("10,000", "75.00")
    assert all(row[2].startswith("not run") for row in missing)


def test_along_training_at_every_step(tmp_path):
    seen = [a_snapshot(seed, step, accuracy=seed / 10 + step / 1e5)
            for seed in range(4) for step in (250, 500)]  # fmt: skip
    write_snapshots(tmp_path, "bfs", seen)
    for name in ("along", "along_test"):
        first, second, *missing = shown_table(name, tmp_path).rows
        assert first[:5] == ("bfs", "250", "4", "15.25", "25.00")
        assert second[1:4] == ("500", "4", "15.50")
        assert all(row[3].startswith("not run") for row in missing)
    (tmp_path / "snapshots" / "bfs.jsonl").write_text("{}\n")
    with pytest.raises(InvalidInput, match=r"bfs\.jsonl' cannot be read"):
        kept_snapshots(tmp_path, "bfs")


def test_numbers_of_another_recipe_are_not_joined(measured):
    kept = load_numbers(measured / "results", "bfs")
    assert kept is not None
    new = replace(kept, seed=(7,), recipe=replace(kept.recipe, train_steps=1))
    with pytest.raises(InvalidInput, match="another recipe \\(it differs in train_steps\\)"):
        joined(kept, new)


def test_baselines_keep_what_was_asked_before():
    """Further seeds that are measured without `--causal` do not take it from the baselines."""
    kept = load_numbers(RESULTS, "bellman_ford")
    assert kept is not None
    assert kept.measures is not None
    plainly = {
        name: replace(row, interchange={}, channels=None, external=0.5)
        for name, row in kept.measures.baselines.items()
    }
    seed = replace(kept.measures.seeds[0], seed=1000, interchange={})
    measures = replace(kept.measures, seeds=(seed,), baselines=plainly)
    columns = {name: getattr(kept, name)[:1] for name in ("accuracy", "accuracy_last", "best_step")}
    both = joined(kept, replace(kept, seed=(1000,), measures=measures, **columns)).measures
    assert both is not None
    for name, before in kept.measures.baselines.items():
        now = both.baselines[name]
        assert (now.interchange, now.channels) == (before.interchange, before.channels)
        assert now.external == 0.5
    assert both.baselines["compiled"].interchange


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
