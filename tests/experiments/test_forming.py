"""When mechanisms form: from snapshots whose answer is known; and every drawing of a table."""

import json
from pathlib import Path

import pytest

from mechgap.experiments.replication.forming import FormingTable, courses_of
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Drawn, Row
from mechgap.experiments.replication.library import BF, BFS
from mechgap.experiments.replication.tables import TABLES
from mechgap.measures.snapshot import MechanismSeen, Seen, Snapshot
from mechgap.report.style import save_in_both

RESULTS = Path(__file__).parents[2] / "results"
DRAWN = sorted(name for name, table in TABLES.items() if isinstance(table, Drawn))


def snapshot(seed, step, accuracy, agreement, tv):
    beside = MechanismSeen(agreement, agreement, 1 - agreement, tv, {})
    seen = Seen(accuracy, 0.0, None, {"bfs": beside})
    return Snapshot(seed, step, "step", seen, seen, None)


@pytest.fixture
def results(tmp_path):
    """Attention is there at once, accuracy late; those that end faithful began less accurate."""
    courses = {seed: 0.1 + 0.01 * seed for seed in range(8)}
    rows = [
        snapshot(seed, *at)
        for seed, begin in courses.items()
        for at in (
            (250, begin, 0.9, 0.5),
            (1_000, 0.3, 0.8, 0.4),
            (5_000, 0.9, 0.7, 0.2 + 0.01 * seed),
        )
    ]
    (tmp_path / "snapshots").mkdir()
    lines = "".join(json.dumps(row.data()) + "\n" for row in rows)
    (tmp_path / "snapshots" / "bfs.jsonl").write_text(lines)
    return tmp_path


def test_what_comes_first(results):
    assert len(courses_of(BFS, results)) == 8
    table = FormingTable("forming", (Row("bfs", BFS), Row("bellman_ford", BF)))
    told = table.rendered("forming", results, Judge.of([], results))
    found = {row["measure"]: row for row in told.data if "measure" in row}
    assert (found["accuracy"]["half_way"], found["accuracy"]["largest_at"]) == (5_000, 5_000)
    assert (found["agreement"]["half_way"], found["agreement"]["largest_at"]) == (250, 250)
    assert found["tv"]["last"] == pytest.approx(1 - 0.235)
    faithful, other = found["accuracy"]["faithful"], found["accuracy"]["other"]
    assert (faithful, other) == pytest.approx((0.115, 0.155))
    assert found["accuracy"]["p"] == pytest.approx(2 / 70)  # of all splits, this one and its mirror
    assert found["accuracy"]["untrained"] is None
    assert told.rows[-1][2].startswith("not run")


@pytest.mark.parametrize("name", DRAWN)
def test_tables_are_drawn_without_complaint(name, tmp_path):
    """Matplotlib warns where panels have no room; warnings are errors here."""
    table = TABLES[name]
    assert isinstance(table, Drawn)
    figure = table.drawn(RESULTS)
    assert figure is not None
    assert all(path.stat().st_size for path in save_in_both(figure, tmp_path, name))
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    assert table.drawn(nothing) is None
