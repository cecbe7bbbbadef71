"""Tables of populations by accuracy and both gaps: does the gap close?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mechgap.experiments.replication.comparison import Spread, agree
from mechgap.experiments.replication.kinds import Row, TableOfRows, measures_of, not_run
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.report.measures import YARDSTICKS


@dataclass(frozen=True)
class ObjectivesTable(TableOfRows):
    """Does the gap close? Populations by accuracy, internal and external gap."""

    yardsticks: bool = False
    """Whether each task's rows are followed by what they are to be held against."""

    def rendered(self, name: str, results: Path) -> Rendered:
        """Each population's measures, and whether they differ from those of its task's first."""
        columns = {
            "accuracy": "accuracy (%)",
            "internal_tv": "attention elsewhere (tv, %)",
            "top1_active": "active rows right (%)",
            "external": "trace predicted (%)",
        }
        spreads = [_measured_spreads(row, results, tuple(columns)) for row in self.rows]
        tasks = [row.population.task for row in self.rows]
        rows, data = [], []
        for k, (row, found) in enumerate(zip(self.rows, spreads, strict=True)):
            first = spreads[tasks.index(tasks[k])]
            cells = [_difference_text(found.get(c), first.get(c)) for c in columns]
            seeds = next((str(s.seeds) for s in found.values()), "0")
            if not found:
                cells[0] = _missing(row.population, results)
            rows.append((row.label, *cells, seeds, f"{row.population.recipe.train_steps:,}"))
            data.append({"row": row.label, "population": row.population.name,
                         **{c: asdict(s) for c, s in found.items()}})  # fmt: skip
            if self.yardsticks and tasks[k] not in tasks[k + 1 :]:
                held = [r for r in self.rows if r.population.task == tasks[k]]
                rows += _yardstick_rows(held, results, tuple(columns))
        star = "* differs from the task's first row (Student's t at 5 %)."
        head = ("", *columns.values(), "seeds", "steps")
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(name, self.caption, head, rows, [star, *remarks, *self.remarks], data)


def _missing(population: Population, results: Path) -> str:
    if load_numbers(results, population.name) is not None:
        return "trained, not measured"
    return not_run(population)


def _yardstick_rows(
    rows: Sequence[Row], results: Path, columns: Sequence[str]
) -> list[tuple[str, ...]]:
    """What the first measured of some populations is to be held against."""
    known = [m for row in rows if (m := measures_of(results, row.population)) is not None]
    task = rows[0].population.task
    found = []
    for name, measured in (known[0]["yardsticks"] if known else {}).items():
        cells = ["-" if measured[c] is None else f"{100 * measured[c]:.2f}" for c in columns]
        found.append((f"{task}, {YARDSTICKS[name]}", *cells, "-", "-"))
    return found


def _measured_spreads(row: Row, results: Path, columns: Sequence[str]) -> dict[str, Spread]:
    measures = measures_of(results, row.population)
    if measures is None:
        return {}
    known = {c: [100 * v for v in measures[c] if v is not None] for c in columns}
    return {c: Spread.of(values) for c, values in known.items() if values}


def _difference_text(ours: Spread | None, first: Spread | None) -> str:
    if ours is None:
        return "-"
    differs = first is not None and first is not ours and agree(ours, first) is False
    deviation = "" if ours.std is None else f" ± {ours.std:.2f}"
    return f"{ours.mean:.2f}{deviation}{' *' if differs else ''}"
