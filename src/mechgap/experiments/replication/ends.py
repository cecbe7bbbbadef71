"""Best parameters beside last ones: does longer training close the gap?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.comparison import Spread
from mechgap.experiments.replication.kinds import Row, TableOfRows, not_run
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.trajectory import Standpoint

COLUMNS = {
    "accuracy": "accuracy (%)",
    "external": "trace predicted (%)",
    "internal_tv": "attention elsewhere (tv, %)",
    "top1_active": "active rows right (%)",
    "top1_tied_active": "with ties (%)",
}


@dataclass(frozen=True)
class EndsTable(TableOfRows):
    """Accuracy and gaps at the best validation score and at the last step."""

    def rendered(self, name: str, results: Path) -> Rendered:
        """Two rows a population."""
        data = [found for row in self.rows for found in _ends(row, results)]
        head = ("", "step", *COLUMNS.values(), "seeds")
        return Rendered(name, self.caption, head, [_cells(row) for row in data], self.remarks, data)


def _ends(row: Row, results: Path) -> list[dict[str, Any]]:
    numbers = load_numbers(results, row.population.name)
    if numbers is None:
        return [{"row": row.label, "missing": not_run(row.population)}]
    if "ends" not in numbers:
        return [{"row": row.label, "missing": "trained, not measured"}]
    points = [Standpoint(*values) for values in numbers["ends"]]  # best, last, best, last, …
    return [
        {
            "row": f"{row.label}, {which}",
            "population": row.population.name,
            "step": asdict(Spread.of([float(point.step) for point in chosen])),
            **{
                key: asdict(Spread.of([100 * getattr(point, key) for point in chosen]))
                for key in COLUMNS
            },
        }
        for which, chosen in (("best", points[::2]), ("last", points[1::2]))
    ]


def _cells(data: Mapping[str, Any]) -> Sequence[str]:
    if "missing" in data:
        return (data["row"], "-", data["missing"], *["-"] * (len(COLUMNS) - 1), "0")
    values = [
        f"{spread['mean']:.2f}" + ("" if spread["std"] is None else f" ± {spread['std']:.2f}")
        for spread in (data[key] for key in COLUMNS)
    ]
    return (data["row"], f"{data['step']['mean']:,.0f}", *values, str(data["accuracy"]["seeds"]))
