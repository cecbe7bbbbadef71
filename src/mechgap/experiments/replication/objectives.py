"""Tables of populations by accuracy and gaps: does the gap close?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path

from mechgap.experiments.replication.comparison import LEVEL, Spread, holm, permutation_p
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Row, TableOfRows, measures_of, not_run
from mechgap.experiments.replication.numbers import KeptNetwork, load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.report.measures import YARDSTICKS, known

COLUMNS = {
    "accuracy": "accuracy (%)",
    "graph_accuracy": "graphs right (%)",
    "deep": "accuracy, sparse (%)",
    "deep_graphs": "graphs right, sparse (%)",
    "external": "hint accuracy (%)",
    "agreement": "agreement (%)",
    "misplaced": "misplaced there (%)",
    "hardened": "accuracy, hardened (%)",
    "tv": "tv, all rows (%)",
}


def values_of(row: KeptNetwork, mechanism: str | None) -> dict[str, float]:
    """What was measured of one network beside one mechanism; NaN where it was not."""
    gap, nothing = row.gaps.get(mechanism or ""), float("nan")
    return {
        **{key: getattr(row, key) for key in ("accuracy", "graph_accuracy", "external")},
        "deep": getattr(row.deep, "accuracy", nothing),
        "deep_graphs": getattr(row.deep, "graph_accuracy", nothing),
        **{key: getattr(gap, key, nothing) for key in ("agreement", "misplaced", "tv")},
        "hardened": row.causal.tempered["hardened"] if row.causal else nothing,
    }


@dataclass(frozen=True)
class ObjectivesTable(TableOfRows):
    """Does the gap close? Populations by accuracy, internal and external gap."""

    yardsticks: bool = False
    """Whether each task's rows are followed by what they are to be held against."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Each population's measures, and whether they differ from those of its task's first."""
        columns = [_columns(row.population, results) for row in self.rows]
        tasks = [row.population.task for row in self.rows]
        firsts = [columns[tasks.index(task)] for task in tasks]
        chances = holm(
            {
                f"{k} {c}": permutation_p(found[c], first[c])
                for k, (found, first) in enumerate(zip(columns, firsts, strict=True))
                for c in COLUMNS
                if found is not first and found.get(c) and first.get(c)
            }
        )
        rows, data = [], []
        for k, (row, found) in enumerate(zip(self.rows, columns, strict=True)):
            cells = [_text(found.get(c), chances.get(f"{k} {c}")) for c in COLUMNS]
            if not found:
                cells[0] = missing(row.population, results)
            seeds = str(max((len(v) for v in found.values()), default=0))
            rows.append((row.label, *cells, seeds, f"{row.population.recipe.train_steps:,}"))
            spreads = {c: asdict(Spread.of(v)) for c, v in found.items() if v}
            data.append({"row": row.label, "population": row.population.name, **spreads})
            if self.yardsticks and tasks[k] not in tasks[k + 1 :]:
                held = [r for r in self.rows if r.population.task == tasks[k]]
                rows += _yardstick_rows(held, results)
        star = (
            "* differs from the task's first row (permutations of seeds, at 5 % after Holm's "
            "correction for this table)."
        )
        head = ("", *COLUMNS.values(), "seeds", "steps")
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(name, self.caption, head, rows, [star, *remarks, *self.remarks], data)


def missing(population: Population, results: Path) -> str:
    """What stands where a measure would."""
    if load_numbers(results, population.name) is not None:
        return "trained, not measured"
    return not_run(population)


def _columns(population: Population, results: Path) -> dict[str, list[float]]:
    """Every measure of the seeds that have it, in percent."""
    measures = measures_of(results, population)
    if measures is None:
        return {}
    mechanism = population.recipe.mechanism  # that taught
    beside = measures.reference if mechanism is None else mechanism.name
    rows = [values_of(row, beside) for row in measures.seeds]
    return {c: [100 * v for v in known([row[c] for row in rows])] for c in COLUMNS}


def _yardstick_rows(rows: Sequence[Row], results: Path) -> list[tuple[str, ...]]:
    """What the first measured of some populations is to be held against."""
    measured = [m for row in rows if (m := measures_of(results, row.population)) is not None]
    task = rows[0].population.task
    found = []
    for name, yardstick in (measured[0].yardsticks if measured else {}).items():
        values = values_of(yardstick, measured[0].reference)
        cells = ["-" if isnan(values[c]) else f"{100 * values[c]:.2f}" for c in COLUMNS]
        found.append((f"{task}, {YARDSTICKS[name]}", *cells, "-", "-"))
    return found


def _text(values: Sequence[float] | None, chance: float | None) -> str:
    if not values:
        return "-"
    spread = Spread.of(values)
    deviation = "" if spread.std is None else f" ± {spread.std:.2f}"
    return f"{spread.mean:.2f}{deviation}{' *' if chance is not None and chance < LEVEL else ''}"
