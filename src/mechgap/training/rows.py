"""What the database of a run holds: a class for the rows of each table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS seeds (
    seed INTEGER PRIMARY KEY, state TEXT NOT NULL, step INTEGER NOT NULL,
    best_step INTEGER, best_validation REAL, test REAL, test_of_best REAL, diverged_at INTEGER);
CREATE TABLE IF NOT EXISTS metrics (
    seed INTEGER NOT NULL, step INTEGER NOT NULL, loss REAL, validation REAL, test REAL,
    test_of_best REAL, PRIMARY KEY (seed, step)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS observations (
    seed INTEGER NOT NULL, step INTEGER NOT NULL, which TEXT NOT NULL, measures TEXT NOT NULL,
    fingerprint BLOB NOT NULL, PRIMARY KEY (seed, step, which)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS checkpoints (chunk TEXT PRIMARY KEY, file TEXT NOT NULL);
"""


@dataclass(frozen=True)
class SeedRow:
    """What is known of one seed."""

    seed: int
    state: str
    """waiting, training, finished or diverged."""
    step: int
    best_step: int | None = None
    best_validation: float | None = None
    test: float | None = None
    """Test score of the last parameters."""
    test_of_best: float | None = None
    """Test score of the parameters with the best validation score."""
    diverged_at: int | None = None


@dataclass(frozen=True)
class MetricRow:
    """One report of one seed."""

    seed: int
    step: int
    loss: float | None
    """None where it was not a number, as everywhere here."""
    validation: float | None
    test: float | None
    test_of_best: float | None


@dataclass(frozen=True)
class Observation:
    """What was seen of one seed at one step of its training."""

    seed: int
    step: int
    which: str
    """`step`: the parameters at that step; `best`: those of the best validation score."""
    measures: str
    """Numbers as JSON, as whoever looked at it wrote them."""
    fingerprint: bytes


@dataclass(frozen=True)
class Notes:
    """What is known of some seeds since it was last recorded."""

    metrics: list[MetricRow] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)

    def add(self, more: "Notes", seeds: Sequence[int]) -> None:
        """Take over what is about these seeds."""
        self.metrics.extend(row for row in more.metrics if row.seed in seeds)
        self.observations.extend(row for row in more.observations if row.seed in seeds)
