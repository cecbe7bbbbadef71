"""Kinds of tables: accuracies, distances between solutions.

A table is made from the numbers in `results/` alone. Where there are none yet, a row says what they
would cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mechgap.experiments.replication.comparison import Spread, agree
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.results import FORMS
from mechgap.report.paper import CLUSTERS, paper_number


@runtime_checkable
class Table(Protocol):
    """Something that populations are trained for."""

    @property
    def caption(self) -> str:
        """What it shows."""
        ...

    @property
    def populations(self) -> Sequence[Population]:
        """What it needs, one for each row that is trained."""
        ...

    def shortened(self, steps: int) -> "Table":
        """The same with so many training steps."""
        ...

    def rendered(self, name: str, results: Path) -> Rendered:
        """The table with the numbers that there are."""
        ...


@dataclass(frozen=True)
class Row:
    """One population and what it is called."""

    label: str
    population: Population
    remark: str = ""

    def shortened(self, steps: int) -> "Row":
        """The same with so many training steps."""
        return replace(self, population=self.population.shortened(steps))


@dataclass(frozen=True)
class TableOfRows(ABC):
    """What tables have in common whose rows are populations with labels."""

    caption: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def populations(self) -> Sequence[Population]:
        """Every row's."""
        return [row.population for row in self.rows]

    def shortened(self, steps: int) -> "TableOfRows":
        """The same with so many training steps."""
        return replace(self, rows=tuple(row.shortened(steps) for row in self.rows))

    @abstractmethod
    def rendered(self, name: str, results: Path) -> Rendered:
        """The table with the numbers that there are."""


@dataclass(frozen=True)
class AccuracyTable(TableOfRows):
    """Test accuracies beside the paper's."""

    def rendered(self, name: str, results: Path) -> Rendered:
        """Mean ± std (max) of both, our interval, and whether they agree."""
        head = ("", "paper (%)", "seeds", "ours (%)", "seeds", "steps", "95 % interval", "agree",
                "last (%)")  # fmt: skip
        found = [_compared(row, results) for row in self.rows]
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(
            name,
            self.caption,
            head,
            [_accuracy_cells(row, data) for row, data in zip(self.rows, found, strict=True)],
            [*remarks, *self.remarks, *_above(found), *_diverged(found)],
            found,
        )


def _compared(row: Row, results: Path) -> dict[str, Any]:
    """The paper's accuracies and ours, in percent."""
    recipe, full = row.population.recipe, row.population.full_recipe
    printed = paper_number(full)
    paper = None
    if printed is not None:
        paper = Spread(printed["mean"], printed["std"], printed["max"], printed["n"])
    numbers = load_numbers(results, row.population.name)
    ours, last, smallest = None, None, None
    if numbers is not None:
        ours = Spread.of([100 * a for a in numbers["accuracy"]])
        smallest = 100 * min(numbers["accuracy"])
        last = Spread.of([100 * a for a in numbers["accuracy_last"]])
    return {
        "row": row.label,
        "population": row.population.name,
        "steps": recipe.train_steps,
        "paper": asdict(paper) if paper else None,
        "ours": {**asdict(ours), "smallest": smallest, "interval": ours.interval} if ours else None,
        "agree": agree(ours, paper) if ours and paper and recipe == full else None,
        "last": asdict(last) if last else None,
        "diverged": [] if numbers is None else list(numbers["diverged"]),
        "estimated_seconds": row.population.seconds(row.population.seeds) if not ours else None,
    }


def _accuracy_cells(row: Row, data: Mapping[str, Any]) -> Sequence[str]:
    paper, ours, steps = data["paper"], data["ours"], f"{data['steps']:,}"
    theirs = (spread_text(paper), str(paper["seeds"])) if paper else ("-", "-")
    if ours is None:
        return (row.label, *theirs, not_run(row.population), "0", steps, "-", "-", "-")
    verdict = {True: "yes", False: "no", None: "-"}[data["agree"]]
    interval = _interval_text(ours["interval"])
    last = spread_text({**data["last"], "largest": None})
    measured = (spread_text(ours), str(ours["seeds"]), steps, interval, verdict, last)
    return (row.label, *theirs, *measured)


def spread_text(spread: Mapping[str, Any]) -> str:
    """Mean ± std (max)."""
    deviation = "" if spread["std"] is None else f" ± {spread['std']:.2f}"
    largest = "" if spread["largest"] is None else f" ({spread['largest']:.2f})"
    return f"{spread['mean']:.2f}{deviation}{largest}"


def _interval_text(interval: Sequence[float] | None) -> str:
    return "-" if interval is None else f"{interval[0]:.2f} … {interval[1]:.2f}"


def _above(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows that a mean of few seeds cannot tell from the paper's, but their seeds can."""
    return [
        f"{data['row']}: our lowest seed ({ours['smallest']:.2f}) is above the paper's highest."
        for data in found
        if (paper := data["paper"]) and (ours := data["ours"])
        if paper["largest"] is not None and ours["smallest"] > paper["largest"]
    ]


def _diverged(found: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{data['row']}: seeds {', '.join(data['diverged'])} diverged and are not counted."
        for data in found
        if data["diverged"]
    ]


@dataclass(frozen=True)
class SolutionsTable:
    """Distances between learned solutions, and to the compiled one."""

    caption: str
    populations: tuple[Population, ...]
    remarks: tuple[str, ...]

    def shortened(self, steps: int) -> "Table":
        """The same with so many training steps."""
        return replace(self, populations=tuple(p.shortened(steps) for p in self.populations))

    def rendered(self, name: str, results: Path) -> Rendered:
        """Every distance in three normalisations."""
        rows, data = [], []
        for population in self.populations:
            measures = measures_of(results, population)
            found = measures and measures["solutions"]
            data.append({"population": population.name, "ours": found})
            seeds = "0"
            if measures and found:
                seeds = str(found.get("seeds", len(measures["seed"])))
            for label, key in (
                ("between learned", "mean_between"),
                ("closest to compiled", "closest_to_compiled"),
            ):
                ours = ("-",) * len(FORMS)
                printed = "-"
                if found and found[key]:
                    ours = tuple(f"{found[key][form]:.4f}" for form in FORMS)
                    printed = f"{found['paper'][key]['printed']}"
                rows.append((f"{population.name}, {label}", printed, *ours, seeds))
            clusters = str(found["clusters"]) if found else "-"
            rows.append((f"{population.name}, clusters", str(CLUSTERS), clusters, "-", "-", seeds))
        head = ("", "paper", "ours: L1/(t n²)", "L1/(t n)", "tv", "seeds")
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def measures_of(results: Path, population: Population) -> Mapping[str, Any] | None:
    """What was measured of a population; None where it was not."""
    numbers = load_numbers(results, population.name)
    return None if numbers is None else numbers.get("measures")


def not_run(population: Population) -> str:
    """What stands where a number would, with its cost."""
    cost = duration(population.seconds(population.seeds))
    return f"not run: {population.seeds} seeds take {cost}"


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(50.0), duration(600.0), duration(9000.0), duration(200_000.0)
    ('1 min', '10 min', '2.5 h', '2.3 days')
    """
    if seconds < 3600:
        return f"{max(1, round(seconds / 60))} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
