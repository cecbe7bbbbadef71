"""The table of stability: from compiled parameters, trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.comparison import Spread, agree
from mechgap.experiments.replication.kinds import Table, not_run, spread_text
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.stability import snapshot_steps, stability_recipe
from mechgap.measures.trajectory import Standpoint
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

    def rendered(self, name: str, results: Path) -> Rendered:
        """Beside the paper's accuracies after training."""
        head = ("", "paper (%)", "ours, at the end (%)", "at the start", "at the lowest",
                "attention elsewhere, start → end (%)", "trace predicted, start → end (%)",
                "seeds", "steps", "agree")  # fmt: skip
        data = [_row(row, results) for row in self.rows]
        cells = [_cells(row, found) for row, found in zip(self.rows, data, strict=True)]
        return Rendered(name, self.caption, head, cells, self.remarks, data)


def _row(row: StabilityRow, results: Path) -> dict[str, Any]:
    printed = STABILITY.get((row.program, row.target)) if not row.noise else None
    paper = None if printed is None else Spread(*printed)
    numbers = load_numbers(results, row.population.name)
    found: dict[str, Any] = {
        "row": row.label,
        "population": row.population.name,
        "steps": row.population.recipe.train_steps,
        "paper": asdict(paper) if paper else None,
        "ours": None,
        "agree": None,
    }
    if numbers is None or "trajectory" not in numbers:
        return found
    path = [Standpoint(*values) for values in numbers["trajectory"]]
    last = max(point.step for point in path)
    ours = Spread.of([100 * point.accuracy for point in path if point.step == last])
    lowest = [
        100 * min(point.accuracy for point in path if point.seed == seed)
        for seed in sorted({point.seed for point in path})
    ]
    found["ours"] = asdict(ours)
    found["agree"] = agree(ours, paper) if paper else None
    found["lowest"] = asdict(Spread.of(lowest))
    for measure in ("accuracy", "internal_tv", "external"):
        for when, step in (("start", 0), ("end", last)):
            values = [v for p in path if p.step == step and (v := getattr(p, measure)) is not None]
            found[f"{measure}_{when}"] = asdict(Spread.of([100 * v for v in values]))
    return found


def _cells(row: StabilityRow, data: Mapping[str, Any]) -> Sequence[str]:
    paper = spread_text(data["paper"]) if data["paper"] else "-"
    steps = f"{data['steps']:,}"
    if data["ours"] is None:
        return (row.label, paper, not_run(row.population), "-", "-", "-", "-", "0", steps, "-")

    def both(measure: str) -> str:
        start, end = data[f"{measure}_start"], data[f"{measure}_end"]
        return f"{start['mean']:.2f} → {end['mean']:.2f}"

    return (
        row.label,
        paper,
        spread_text(data["ours"]),
        f"{data['accuracy_start']['mean']:.2f}",
        f"{data['lowest']['mean']:.2f}",
        both("internal_tv"),
        both("external"),
        str(data["ours"]["seeds"]),
        steps,
        {True: "yes", False: "no", None: "-"}[data["agree"]],
    )
