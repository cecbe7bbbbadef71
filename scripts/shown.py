"""Where the numbers of pages come from."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.replication.tables import TABLES

PROJECT = Path(__file__).parent.parent
RESULTS = PROJECT / "results"


def results(name: str) -> dict[str, Any]:
    """The numbers that one benchmark wrote."""
    return json.loads((PROJECT / "benchmarks" / "results" / f"{name}.json").read_text())


def population(name: str) -> dict[str, Any] | None:
    """What is kept of a population; None where nothing is."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def percent(values: Sequence[float | None]) -> str:
    """The mean with two digits: 99.95 % must not read as 100."""
    known = [100 * v for v in values if v is not None]
    return f"{mean(known):.2f} %" if known else "-"


def replication(name: str) -> Rendered:
    """A table of the replication."""
    return TABLES[name].rendered(name, RESULTS, Judge.of(TABLES.values(), RESULTS))


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of a page."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""])
