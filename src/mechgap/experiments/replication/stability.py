"""The table of stability: from compiled parameters, trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from mechgap.experiments.replication.comparison import Comparison, Spread, compare
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import (
    Study,
    Table,
    difference_text,
    not_run,
    spread_text,
)
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.replication.snapshots import kept_snapshots
from mechgap.experiments.stability import snapshot_steps, stability_recipe
from mechgap.measures.snapshot import Snapshot
from mechgap.programs.library import LIBRARY
from mechgap.report.paper import STABILITY
from mechgap.training.recipe import Recipe


def stability_population(
    program: str, target: str, *, noise: float = 0.0, seeds: int = 4
) -> Population:
    """Networks that start from a compiled program."""
    recipe = stability_recipe(program, target, noise=noise)
    usual = Recipe(task=recipe.task)
    overrides = {
        name: value for name, value in recipe.data().items() if value != usual.data()[name]
    }
    own = "" if program == LIBRARY[program].task else f"{program}_"
    noisy = f"_noise_{noise:g}" if noise else ""
    return Population(
        recipe.task,
        seeds=seeds,
        overrides=overrides,
        suffix=f"{own}stability_{target}{noisy}",
        snapshots=tuple(snapshot_steps(recipe)),
    )


@dataclass(frozen=True)
class StabilityRow:
    """One compiled program in one target, with some noise."""

    program: str
    target: str
    population: Population
    noise: float = 0.0

    @staticmethod
    def of(
        program: str, target: str, noise: float = 0.0, *, seeds: int = 4, steps: int = 10_000
    ) -> "StabilityRow":
        """The row and the population that it needs."""
        population = stability_population(program, target, noise=noise, seeds=seeds)
        return StabilityRow(program, target, population.shortened(steps), noise)

    @property
    def label(self) -> str:
        """As the table has it."""
        noisy = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.program}, {self.target}{noisy}"


@dataclass(frozen=True)
class StabilityTable:
    """Accuracy and gaps at the start, at the worst moment and at the end."""

    study: ClassVar[Study | None] = None

    caption: str
    rows: tuple[StabilityRow, ...]
    remarks: tuple[str, ...] = ()

    @property
    def populations(self) -> Sequence[Population]:
        """Every row's."""
        return [row.population for row in self.rows]

    def shortened(self, steps: int) -> Table:
        """The same with so many training steps."""
        rows = (replace(r, population=r.population.shortened(steps)) for r in self.rows)
        return replace(self, rows=tuple(rows))

    def tests(self, results: Path) -> Mapping[str, float]:
        """Accuracies after training."""
        found = {row.population.name: _compared(row, results) for row in self.rows}
        return {name: each.p for name, each in found.items() if each is not None}

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:
        """Beside the paper's accuracies after training."""
        head = ("", "paper (%)", "ours, at the end (%)", "at the start", "at the lowest",
                "tv, all nodes, start → end (%)", "hint accuracy, start → end (%)",
                "seeds", "steps", "difference (95 % interval)", "verdict")  # fmt: skip
        data = [_row(row, results, judge) for row in self.rows]
        cells = [_cells(row, found) for row, found in zip(self.rows, data, strict=True)]
        return Rendered(name, self.caption, head, cells, self.remarks, data)


def _printed(row: StabilityRow) -> Spread | None:
    found = STABILITY.get((row.program, row.target)) if not row.noise else None
    return None if found is None else Spread(*found)


def _at_the_end(path: Sequence[Snapshot]) -> Spread:
    last = max(point.step for point in path)
    return Spread.of([100 * a for p in path if p.step == last and (a := p.test.accuracy)])


def _path(row: StabilityRow, results: Path) -> list[Snapshot]:
    return [s for s in kept_snapshots(results, row.population.name) if s.which == "step"]


def _compared(row: StabilityRow, results: Path) -> Comparison | None:
    paper, path = _printed(row), _path(row, results)
    return compare(_at_the_end(path), paper) if paper and path else None


def _row(row: StabilityRow, results: Path, judge: Judge) -> dict[str, Any]:
    paper, path = _printed(row), _path(row, results)
    name = row.population.name
    found: dict[str, Any] = {
        "row": row.label,
        "population": name,
        "steps": row.population.recipe.train_steps,
        "paper": asdict(paper) if paper else None,
        "ours": None,
        "comparison": None,
        "verdict": None,
    }
    if not path:
        return found
    lowest = [
        100 * min(p.test.accuracy for p in path if p.seed == seed and p.test.accuracy is not None)
        for seed in sorted({point.seed for point in path})
    ]
    comparison = _compared(row, results)
    found["ours"] = asdict(_at_the_end(path))
    found["comparison"] = asdict(comparison) if comparison else None
    found["verdict"] = judge.verdict(name, comparison)
    found["lowest"] = asdict(Spread.of(lowest))
    last = max(point.step for point in path)
    for measure in ("accuracy", "tv", "hints"):
        for when, step in (("start", 0), ("end", last)):
            here = [_measured(p, measure) for p in path if p.step == step]
            known = [100 * v for v in here if v is not None]
            found[f"{measure}_{when}"] = asdict(Spread.of(known)) if known else None
    return found


def _measured(point: Snapshot, measure: str) -> float | None:
    """A number of a snapshot; the gap is to the mechanism for which it is smallest."""
    if measure != "tv":
        return getattr(point.test, measure)
    gaps = [m.tv for m in point.test.mechanisms.values() if m.tv is not None]
    return min(gaps, default=None)


def _cells(row: StabilityRow, data: Mapping[str, Any]) -> Sequence[str]:
    paper = spread_text(data["paper"]) if data["paper"] else "-"
    steps = f"{data['steps']:,}"
    if data["ours"] is None:
        return (row.label, paper, not_run(row.population), *["-"] * 4, "0", steps, "-", "-")

    def mean(key: str) -> str:
        return "-" if data[key] is None else f"{data[key]['mean']:.2f}"

    return (
        row.label,
        paper,
        spread_text(data["ours"]),
        mean("accuracy_start"),
        mean("lowest"),
        *(f"{mean(f'{measure}_start')} → {mean(f'{measure}_end')}" for measure in ("tv", "hints")),
        str(data["ours"]["seeds"]),
        steps,
        difference_text(data["comparison"]),
        data["verdict"] or "-",
    )
