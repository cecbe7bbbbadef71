"""Populations: the same bits whatever happens on the way, and nothing lost when it does."""

import hashlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from command_line import MECHGAP
from mechgap.errors import InvalidInput
from mechgap.measures.snapshot import load_snapshots
from mechgap.network.network import Network
from mechgap.network.pairwise import runs_natively
from mechgap.report.runs import run_summary
from mechgap.training import store as store_module
from mechgap.training.engines import usable_cores
from mechgap.training.exchange import export_metrics, merge_runs
from mechgap.training.local import on_this_machine
from mechgap.training.population import Trainer
from mechgap.training.presets import make_recipe
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store
from mechgap.training.train import Stopped, Watcher, snapshots_at, train

SMALL = {"hidden_size": 4, "train_lengths": (4,), "batch_size": 4, "train_steps": 30,
         "eval_every": 5, "test_every": 10, "length_generalize": False}  # fmt: skip
RECIPE = make_recipe("bfs", overrides=SMALL)
OPTIONS = ["--hidden-size", "4", "--train-lengths", "4", "--batch-size", "4", "--steps", "30",
           "--eval-every", "5", "--test-every", "10", "--no-length-generalize"]  # fmt: skip


class Log(Watcher):
    """Remembers what it was told; stops after some reports if asked to."""

    def __init__(self, stop_after: int = 10**9):
        self.left, self.said, self.seen = stop_after, [], []

    def progress(self, progress):
        self.seen.append(progress)
        self.left -= 1

    def say(self, text):
        self.said.append(text)

    def wants_to_stop(self):
        return self.left <= 1


def looking(recipe: Recipe):
    """An observer that sees every bit of the parameters."""

    def look(network: Network) -> tuple[str, bytes]:
        leaves = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(network)]
        seen = hashlib.sha256(b"".join(leaves)).digest()
        return json.dumps({"task": recipe.task, "seen": seen.hex()}), seen

    return look


def trained(folder: Path, seeds=(0, 1, 2), recipe=RECIPE, chunk=2, **options) -> Log:
    log = options.pop("watcher", Log())
    options.setdefault("snapshots", snapshots_at(recipe, (0, 5, 20), looking))
    train(recipe, list(seeds), folder, on_this_machine(1), chunk=chunk, watcher=log, **options)
    return log


def content(folder: Path):
    """Everything that a run has to say: parameters to the bit, metrics, and what was seen."""
    files = {p.name: p.read_bytes() for p in sorted((folder / "seeds").iterdir())}
    with Store.reading(folder) as store:
        return files, store.metrics(), store.seeds(), store.observations()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run of three seeds that was never interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    trained(folder)
    return folder


def command(folder: Path, *more: str) -> list[str]:
    return [*MECHGAP, "train", "bfs", "--out", str(folder), *OPTIONS, "--snapshots", "10", *more]


# What a run is


def test_a_run_says_if_it_was_not_all_computed_by_the_same_code(whole, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    monkeypatch.setattr(store_module, "runs_natively", lambda _: not runs_natively(1))
    trained(folder)
    with Store.reading(folder) as store:
        assert store.about["native"] == [False, True]


def test_all_cores_are_used_where_nothing_says_which_may_be(monkeypatch):
    """As on macOS, which has no affinity."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert usable_cores() == os.cpu_count()


def test_a_run_can_be_read_by_a_person_and_by_any_tool(whole):
    assert sorted(p.name for p in whole.iterdir() if p.name != "checkpoints") == [
        *(".lock", "recipe.toml", "run.sqlite", "seeds"),
    ]
    assert "hidden_size = 4" in (whole / "recipe.toml").read_text()
    with sqlite3.connect(whole / "run.sqlite") as database:
        rows = database.execute("SELECT seed, step, test FROM metrics ORDER BY seed, step")
        tested = [(seed, step) for seed, step, test in rows if test is not None]
    assert tested == [(seed, step) for seed in range(3) for step in (10, 20, 30)]
    with Store.reading(whole) as store:
        assert {row.state for row in store.seeds()} == {"finished"}
        assert store.about["versions"]["jax"] == jax.__version__
        assert store.about["native"] == [runs_natively(1)]
        for row in store.seeds():
            reports = [m for m in store.metrics(row.seed) if m.step == row.best_step]
            best = max(m.validation or 0.0 for m in store.metrics(row.seed))
            assert reports[0].validation == row.best_validation == best
            assert store.network(row.seed, "last").config.hidden_size == 4


def test_networks_are_looked_at_on_the_way(whole):
    """At the start, at the steps that were asked for, at the last, and where it was best."""
    with Store.reading(whole) as store:
        seen, rows = store.observations(), store.seeds()
        ends = {
            (row.seed, which): looking(RECIPE)(store.network(row.seed, which))
            for row in rows
            for which in ("best", "last")
        }
    for row in rows:
        mine = [one for one in seen if one.seed == row.seed]
        assert [(one.step, one.which) for one in mine] == [
            *((step, "step") for step in (0, 5, 20, 30)), (row.best_step, "best")
        ]  # fmt: skip
        kept = {one.which: (one.measures, one.fingerprint) for one in mine}
        assert kept["best"] == ends[row.seed, "best"]
        assert kept["step"] == ends[row.seed, "last"]
    assert len({one.fingerprint for one in seen if one.which == "step"}) == 3 * 4


@pytest.mark.parametrize(("latest", "kept"), [(False, 3), (True, 8)])
def test_which_of_two_equally_good_networks_is_kept(latest, kept):
    """dm-clrs's first, or the latest; a worse one never."""
    trainer = Trainer(replace(RECIPE, latest_best=latest))
    learner = trainer.start([0])
    at = lambda step, learner: eqx.tree_at(lambda x: x.step, learner, jnp.int32([step]))  # noqa: E731
    learner, _ = trainer.report(at(3, learner), jnp.zeros(1), test=False)
    learner, _ = trainer.report(at(8, learner), jnp.zeros(1), test=False)
    assert learner.best_step.tolist() == [kept]
    better = eqx.tree_at(lambda x: x.best_validation, at(9, learner), jnp.float32([2.0]))
    assert trainer.report(better, jnp.zeros(1), test=False)[0].best_step.tolist() == [kept]


def test_snapshots_where_nobody_looks():
    with pytest.raises(InvalidInput, match=r"every 5 steps; got \[7\]"):
        snapshots_at(RECIPE, (5, 7), looking)
    # What lies behind the end is not looked at, the end always is.
    assert snapshots_at(RECIPE, (5, 1000), looking).steps == {5, 30}


def test_a_seed_depends_on_itself_alone():
    """Whoever is beside it: the same initial parameters, to the bit."""
    alone, beside = Trainer(RECIPE).start([2]), Trainer(RECIPE).start([7, 1, 2])
    for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(beside), strict=True):
        assert (a[0] == b[2]).all()


@pytest.mark.slow
def test_chunk_size_changes_rounding_only(whole, tmp_path):
    trained(tmp_path / "run", seeds=[1], chunk=1)
    with Store.reading(whole) as together, Store.reading(tmp_path / "run") as alone:
        for a, b in zip(together.metrics(1)[:4], alone.metrics(1)[:4], strict=True):
            assert a.step == b.step <= 20
            assert a.loss == pytest.approx(b.loss, abs=1e-5)


def test_a_second_training_has_nothing_to_do(whole):
    before = content(whole)
    log = trained(whole)
    assert not log.seen
    assert content(whole) == before


# What can happen on the way


@pytest.mark.parametrize("stop_after", [1, 4, 8])
def test_stopped_and_resumed_is_as_if_never_stopped(whole, tmp_path, stop_after):
    folder = tmp_path / "run"
    with pytest.raises(Stopped):
        trained(folder, watcher=Log(stop_after))
    trained(folder)
    assert content(folder) == content(whole)


def test_killed_at_several_moments(tmp_path):
    """kill -9 of a real process, twice; the third goes to the end."""
    reference, folder = tmp_path / "reference", tmp_path / "run"
    subprocess.run(command(reference, "--seeds", "2"), check=True, capture_output=True)
    for wanted in (0, 21):
        words = command(folder, "--seeds", "2", "--checkpoint-seconds", "0", "--devices", "1")
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and _reached(folder) < wanted:
                time.sleep(0.002)
            if wanted == 0:
                time.sleep(1.0)  # while it starts
            process.kill()
    subprocess.run(command(folder, "--seeds", "2"), check=True, capture_output=True)
    assert content(folder) == content(reference)
    assert [s.step for s in load_snapshots(folder) if s.seed == 0 and s.which == "step"] == [10, 30]


def _reached(folder: Path) -> int:
    """The last recorded step of any seed, read while another process writes."""
    try:
        with Store.reading(folder) as store:
            return max((row.step for row in store.seeds()), default=0)
    except (InvalidInput, sqlite3.OperationalError):
        return 0


def test_ctrl_c_stops_cleanly(tmp_path):
    folder = tmp_path / "run"
    words = command(folder, "--seeds", "1", "--steps", "100000", "--snapshots", "none")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if "step" in line:
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert "the same command resumes from here" in said
    assert "Traceback" not in said
    assert _reached(folder) > 0


def test_sigterm_while_compiling_stops_at_once(tmp_path):
    """XLA cannot be interrupted, and in it Python's signal handlers do not run."""
    folder = tmp_path / "run"
    words = command(folder, "--seeds", "1", "--hidden-size", "32", "--steps", "10")
    cold = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=cold) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("compiling bfs for graphs of"):
                break
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        took = time.monotonic() - began
    assert process.returncode == 128 + signal.SIGTERM
    assert said == f"mechgap: stopped; the same command resumes from here ({folder})\n"
    assert took < 3
    assert _reached(folder) == 0
    subprocess.run(words, check=True, capture_output=True)
    assert _reached(folder) == 10


@pytest.mark.parametrize("damage", ["truncated", "altered", "gone"])
def test_a_damaged_checkpoint_is_noticed_and_done_again(whole, tmp_path, damage):
    folder = tmp_path / "run"
    with pytest.raises(Stopped):
        trained(folder, watcher=Log(3))
    (checkpoint,) = (folder / "checkpoints").iterdir()
    _damage(checkpoint, damage)
    log = trained(folder)
    assert log.said == [
        "a file of seeds 0 to 1 is missing or damaged: trained again from the start"
    ]
    assert content(folder) == content(whole)


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_damaged_parameters_are_noticed_and_made_again(whole, tmp_path, damage):
    folder = tmp_path / "run"
    trained(folder)
    _damage(folder / "seeds" / "00002-best.safetensors", damage)
    with (
        Store.reading(folder) as store,
        pytest.raises(InvalidInput, match=r"00002-best\.safetensors' is missing or damaged"),
    ):
        store.network(2)
    assert trained(folder).said
    assert content(folder) == content(whole)


def _damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def test_a_full_disk_is_a_clear_error_and_damages_nothing(whole, tmp_path):
    """A file-size limit makes every larger write fail as on a full disk, here in the middle."""
    folder = tmp_path / "run"
    with pytest.raises(Stopped):
        trained(folder, watcher=Log(3))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, unlimited[1]))
    try:
        with pytest.raises(InvalidInput, match=r"cannot write to .* make room and run the same"):
            trained(folder, checkpoint_seconds=0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert not list(folder.rglob("*.partial"))
    log = trained(folder)
    assert not log.said  # what was recorded before was whole
    assert content(folder) == content(whole)


def test_two_processes_on_one_folder(whole):
    with (
        Store.writing(whole, RECIPE, 2),
        pytest.raises(InvalidInput, match="another process is working on"),
    ):
        trained(whole)


def test_another_configuration_is_refused_with_the_difference(whole):
    with pytest.raises(InvalidInput, match=r"\(learning_rate: 0\.0001 → 0\.5\)"):
        trained(whole, recipe=replace(RECIPE, learning_rate=0.5))
    with pytest.raises(InvalidInput, match="chunk: 2 → 3"):
        trained(whole, chunk=3)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(InvalidInput, match="holds other files and is not a run"):
        trained(tmp_path)
    (tmp_path / "run.sqlite").write_text("not a database, but long enough to look at" * 40)
    with pytest.raises(InvalidInput, match="is damaged"), Store.reading(tmp_path):
        pass


def test_a_seed_that_diverges_is_recorded_and_never_averaged(tmp_path):
    folder = tmp_path / "run"
    trained(folder, seeds=[0, 1], recipe=replace(RECIPE, learning_rate=1e38))
    summary = run_summary(folder)
    assert summary["states"] == {"diverged": 2}
    assert all(0 < step < 30 for step in summary["diverged"].values())
    assert summary["accuracy"]["n"] == 0
    with Store.reading(folder) as store:
        assert store.metrics(0)[-1].loss is None


# The recipe's options


def test_a_frozen_processor_stays(tmp_path):
    recipe = replace(RECIPE, freeze_processor=True)
    trained(tmp_path / "run", seeds=[0], chunk=1, recipe=recipe)
    start = Trainer(RECIPE).start([0]).network
    with Store.reading(tmp_path / "run") as store:
        end = store.network(0, "last")
    for a, b in zip(jax.tree.leaves(start.processor), jax.tree.leaves(end.processor), strict=True):
        assert (a[0] == b).all()
    assert (start.encoders.linears["pos"].weight[0] != end.encoders.linears["pos"].weight).any()


@pytest.mark.slow
@pytest.mark.parametrize("regularizer", ["l1", "l2"])
def test_a_penalty_makes_weights_smaller(whole, tmp_path, regularizer):
    recipe = replace(
        RECIPE, regularization=True, regularization_weight=10.0, regularizer=regularizer
    )
    trained(tmp_path / "run", seeds=[0, 1], recipe=recipe)

    def size(folder):
        with Store.reading(folder) as store:
            return float(jnp.abs(store.network(0, "last").processor.value.weight).sum())

    assert size(tmp_path / "run") < size(whole)


# Putting runs together, taking numbers out


def test_jobs_that_shared_the_seeds_are_merged(whole, tmp_path):
    trained(tmp_path / "a", seeds=[0, 1])
    trained(tmp_path / "b", seeds=[2])
    assert merge_runs([tmp_path / "a", tmp_path / "b"], tmp_path / "all") == 3
    assert content(tmp_path / "all") == content(whole)
    with pytest.raises(InvalidInput, match=r"seeds that another run has too: \[2\]"):
        merge_runs([whole, tmp_path / "b"], tmp_path / "again")
    with Store.writing(tmp_path / "c", replace(RECIPE, batch_size=5), 2):
        pass
    with pytest.raises(InvalidInput, match="batch_size: 4 → 5"):
        merge_runs([whole, tmp_path / "c"], tmp_path / "other")
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "other").exists()


def test_metrics_as_csv_and_parquet(whole, tmp_path):
    import csv

    import pyarrow.parquet

    with Store.reading(whole) as store:
        expected = store.metrics()
    path = export_metrics(whole, tmp_path / "m.csv", "csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [float(row["loss"]) for row in rows] == [row.loss for row in expected]
    table = pyarrow.parquet.read_table(export_metrics(whole, tmp_path / "m.parquet", "parquet"))
    assert table["validation"].to_pylist() == [row.validation for row in expected]
    with pytest.raises(InvalidInput, match="unknown format 'xls'"):
        export_metrics(whole, None, "xls")
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InvalidInput, match="cannot write"):
        export_metrics(whole, tmp_path / "file" / "m.csv", "csv")


# On the command line


@pytest.mark.slow
def test_devices_do_not_change_a_bit(tmp_path):
    """Each core is a device of JAX here, and its seeds run on it alone."""
    for devices in ("1", "2"):
        more = ("--seeds", "3", "--chunk", "1", "--devices", devices)
        subprocess.run(command(tmp_path / devices, *more), check=True, capture_output=True)
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_runs_are_listed_and_shown(whole):
    def mechgap(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mechgap.cli", *arguments], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "3 finished" in mechgap("runs", "--root", str(whole.parent))
    shown = json.loads(mechgap("runs", "show", str(whole), "--json"))
    scores = [100 * seed["test_of_best"] for seed in shown["seeds"]]
    assert shown["accuracy"]["mean"] == pytest.approx(np.mean(scores))
    assert shown["accuracy"]["std"] == pytest.approx(np.std(scores, ddof=1))
    assert "±" in mechgap("runs", "show", str(whole))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "0"], "seeds must be at least 1; got 0"),
        (["--seeds", "2", "--seed-range", "0:2"], "give --seeds or --seed-range, not both"),
        (["--seed-range", "5:5"], "--seed-range is FIRST:END, such as 0:64; got '5:5'"),
        (["--preset", "minimla"], "unknown preset 'minimla'"),
        (["--hidden-size", "four"], "--hidden-size"),
        (["--train-lengths", "4;5"], "train_lengths are whole numbers, such as 4,7,11"),
        (["--engine", "slurm"], "unknown engine 'slurm'"),
        (["--chunk", "0"], "chunk must be at least 1; got 0"),
        (["--devices", "0"], "devices must lie between 1 and"),
        (["--devices", "99999"], "which are here; got 99999"),
        (["--snapshots", "soon"], "snapshots are whole numbers, such as 4,7,11; got 'soon'"),
        (["--snapshots", "75"], "every 50 steps; got [75]"),
    ],
)
def test_mistakes_are_one_line(arguments, message, tmp_path):
    folder = tmp_path / "run"
    words = [sys.executable, "-m", "mechgap.cli", "train", "bfs", "--out", str(folder), *arguments]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not folder.exists()
