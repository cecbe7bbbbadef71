"""The paper's sentences: what decides, and what the tests say where the answer is known."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.library import BF, BFS
from mechgap.experiments.replication.numbers import load_numbers, save_numbers
from mechgap.experiments.replication.sentences import (
    CONFIRMING,
    STEP,
    SentencesTable,
    sentence_tests,
)
from mechgap.measures.snapshot import MechanismSeen, SeenRun, Snapshot

TABLE = SentencesTable("both", (BFS, BF))


def seen(accuracy, agreement, tv, wrong=0.0, mechanism="bfs"):
    """What is wrong and what is soft adds up to tv, on updated rows."""
    parts = {
        "updated": {"tie": 0.0, "soft": tv - wrong, "wrong": wrong},
        "unchanged": {"tie": 0.0, "soft": 0.0, "wrong": 0.0},
        "inactive": {"tie": 0.0, "soft": 0.0, "wrong": 0.0},
    }
    beside = MechanismSeen(agreement, agreement, 1 - agreement, tv, parts)
    return SeenRun(accuracy, 0.0, None, {mechanism: beside})


def snapshots(seeds, slope, wrong=0.1, lost=0.0, mechanism="bfs"):
    """Agreement goes with accuracy by a slope, tv by chance; hardening costs so much."""
    rng = np.random.default_rng(3)
    found = []
    for seed in seeds:
        accuracy, noise, chance = rng.normal(0.9, 0.02), rng.normal(0, 0.02), rng.normal(0.4, 0.02)
        agreement = 0.8 + slope * (accuracy - 0.9) + noise
        for step in (2_000, STEP):
            later = seen(accuracy, agreement, chance, mechanism=mechanism)
            found.append(Snapshot(seed, step, "step", later, later, None))
        best = seen(0.95, agreement, 0.4, wrong, mechanism)
        found.append(Snapshot(seed, STEP, "best", best, best, 0.95 - lost - 1e-4 * noise))
    return found


def verdicts(found, mechanism="bfs"):
    return {
        each.what.partition(",")[0]: each.verdict(each.p)
        for each in sentence_tests(found, mechanism)
    }


def test_a_strong_correlation_and_none():
    strong = verdicts(snapshots(CONFIRMING, slope=2.0))
    assert strong["ρ of accuracy and agreement on updated nodes"] == "correlated"
    many = verdicts(snapshots(range(2_000), slope=0.0))
    assert many["ρ of accuracy and agreement on updated nodes"] == "none"
    few = verdicts(snapshots(range(8), slope=0.0))
    assert few["ρ of accuracy and agreement on updated nodes"] == "cannot tell"


@pytest.mark.parametrize(("wrong", "verdict"), [(0.3, "beyond"), (0.1, "not beyond")])
def test_shares_of_the_gap(wrong, verdict):
    told = verdicts(snapshots(CONFIRMING, 0.0, wrong=wrong))
    assert told["wrong choices' share of the gap"] == verdict


@pytest.mark.parametrize(
    ("lost", "verdict"), [(0.1, "sharpness matters"), (0.0, "does not matter")]
)
def test_what_hardening_costs(lost, verdict):
    told = verdicts(snapshots(CONFIRMING, 0.0, lost=lost))
    assert told["accuracy lost when attention is hardened"] == verdict


def kept(folder: Path, **found):
    (folder / "snapshots").mkdir(exist_ok=True)
    for name, rows in found.items():
        lines = "".join(json.dumps(row.data()) + "\n" for row in rows)
        (folder / "snapshots" / f"{name}.jsonl").write_text(lines)


def test_nothing_is_decided_before_all_seeds_are_there(tmp_path):
    """Not one number of a deciding seed is shown by itself before."""

    def shown():
        return TABLE.rendered("sentences", tmp_path, Judge.of([], tmp_path))

    others = snapshots(CONFIRMING, 2.0, mechanism="bellman_ford")
    kept(tmp_path, bfs=snapshots(CONFIRMING[:-1], 2.0), bellman_ford=others)
    assert shown().rows == []
    assert any("63 of bfs, 64 of bellman_ford" in remark for remark in shown().remarks)
    numbers = load_numbers(Path(__file__).parents[2] / "results", "bfs")
    assert numbers is not None
    diverged = replace(numbers, diverged={str(CONFIRMING[-1]): 700})
    save_numbers(tmp_path, "bfs", diverged)
    assert [row[0] for row in shown().rows].count("deciding") == 14
    save_numbers(tmp_path, "bfs", numbers)
    assert shown().rows == []
    kept(tmp_path, bfs=snapshots(CONFIRMING, 2.0), bellman_ford=others)
    told = shown()
    assert [row[0] for row in told.rows].count("deciding") == 14
    correlated = [row for row in told.rows if row[0] == "deciding" and "agreement" in row[2]]
    assert {row[-2] for row in correlated if "ρ" in row[2]} == {"correlated"}
    by_name = {row["what"]: row for row in told.data if row["seeds"] == "deciding"}
    for row in by_name.values():
        assert row["adjusted_p"] is None or row["adjusted_p"] >= row["p"]
