"""The best checkpoint beside the final one: does longer training close the gap?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.comparison import Spread
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Row, TableOfRows, not_run
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.replication.snapshots import kept_snapshots
from mechgap.measures.snapshot import MechanismSeen, Snapshot

_OF_MECHANISM = {
    "agreement": "top-1 agreement (%)",
    "misplaced": "misplaced attention there (%)",
    "tv": "tv, all nodes (%)",
}


def _values(snapshot: Snapshot) -> dict[str, float | None]:
    test = snapshot.test
    found = {
        "accuracy": test.accuracy,
        "graph_accuracy": test.graph_accuracy,
        "hints": test.hints,
        "hardened": snapshot.hardened,
    }
    of: MechanismSeen | None = test.mechanisms.get(test.nearest or "")
    return found | {name: getattr(of, name) if of else None for name in _OF_MECHANISM}


COLUMNS = {
    "accuracy": "accuracy (%)",
    "graph_accuracy": "graph accuracy (%)",
    "hints": "hint accuracy (%)",
    "hardened": "accuracy, hardened (%)",
    **_OF_MECHANISM,
}


@dataclass(frozen=True)
class CheckpointsTable(TableOfRows):
    """Accuracy and gaps at the best validation score and at the last step, on the test graphs."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Two rows a population."""
        data = [found for row in self.rows for found in _of_population(row, results)]
        head = ("", "step", *COLUMNS.values(), "seeds")
        return Rendered(name, self.caption, head, [_cells(row) for row in data], self.remarks, data)


def _of_population(row: Row, results: Path) -> list[dict[str, Any]]:
    last = row.population.recipe.train_steps
    snapshots = kept_snapshots(results, row.population.name)
    kinds: dict[str, Callable[[Snapshot], bool]] = {
        "best": lambda s: s.which == "best",
        "final": lambda s: s.which == "step" and s.step == last,
    }
    if not snapshots:
        return [{"row": row.label, "missing": not_run(row.population)}]
    found = []
    for which, is_one in kinds.items():
        chosen = [s for s in snapshots if is_one(s)]
        columns = {key: [_values(s)[key] for s in chosen] for key in COLUMNS}
        spreads = {
            key: asdict(Spread.of([100 * v for v in values if v is not None]))
            for key, values in columns.items()
            if any(v is not None for v in values)
        }
        step = asdict(Spread.of([float(s.step) for s in chosen]))
        found.append(
            {
                "row": f"{row.label}, {which}",
                "population": row.population.name,
                "step": step,
                **spreads,
            }
        )
    return found


def _cells(data: Mapping[str, Any]) -> Sequence[str]:
    if "missing" in data:
        return (data["row"], "-", data["missing"], *["-"] * (len(COLUMNS) - 1), "0")
    values = [_spread(data.get(key)) for key in COLUMNS]
    return (data["row"], f"{data['step']['mean']:,.0f}", *values, str(data["accuracy"]["seeds"]))


def _spread(spread: Mapping[str, Any] | None) -> str:
    if spread is None:
        return "-"
    return f"{spread['mean']:.2f}" + ("" if spread["std"] is None else f" ± {spread['std']:.2f}")
