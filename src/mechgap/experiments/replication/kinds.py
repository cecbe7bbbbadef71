"""What tables are; and the one of distances between solutions.

A table is made from the numbers in `results/` alone. Where there are none yet, a row says what they
would cost.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from matplotlib.figure import Figure

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.numbers import KeptMeasures, load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.solutions import FORMS
from mechgap.report.paper import CLUSTERS
from mechgap.training.run import Run
from mechgap.training.store import DATABASE
from mechgap.training.train import OnProgress
from mechgap.typed import plain


@dataclass(frozen=True)
class Study:
    """What is found out about trained networks beside what all of them are measured by."""

    keep: Callable[[Population, Path, Path, OnProgress], None]
    """From a population's run in the folder of runs into the folder of results: what is not known
    yet. Nothing where there is no run."""
    is_known: Callable[[Population, Path], bool]
    """Whether the folder of results has it."""


def finished_run(population: Population, runs: Path) -> Run | None:
    """A population's run; None where there is none, or none of its seeds is finished."""
    folder = runs / population.name
    run = Run.open(folder) if (folder / DATABASE).exists() else None
    return run if run is not None and run.finished else None


@runtime_checkable
class Table(Protocol):
    """Something that populations are trained for."""

    study: ClassVar[Study | None]
    """What it needs of their networks beside their measures."""

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

    def tests(self, results: Path) -> Mapping[str, float]:
        """The p-values of its tests against the paper."""
        ...

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:
        """The table with the numbers that there are."""
        ...


@runtime_checkable
class Drawn(Protocol):
    """A table that can also be drawn."""

    def drawn(self, results: Path) -> Figure | None:
        """Its figure; None where there are no numbers yet."""
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

    study: ClassVar[Study | None] = None

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

    def tests(self, results: Path) -> Mapping[str, float]:  # noqa: ARG002
        """The p-values of its tests against the paper; most tables make none."""
        return {}

    @abstractmethod
    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:
        """The table with the numbers that there are."""


def difference_text(comparison: Mapping[str, Any] | None) -> str:
    """A difference with its interval."""
    if comparison is None:
        return "-"
    low, high = comparison["interval"]
    return f"{comparison['difference']:+.2f} ({low:+.2f} … {high:+.2f})"


def spread_text(spread: Mapping[str, Any]) -> str:
    """Mean ± std (max)."""
    deviation = "" if spread["std"] is None else f" ± {spread['std']:.2f}"
    largest = "" if spread["largest"] is None else f" ({spread['largest']:.2f})"
    return f"{spread['mean']:.2f}{deviation}{largest}"


@dataclass(frozen=True)
class SolutionsTable:
    """Distances between learned solutions, and to the compiled one."""

    study: ClassVar[Study | None] = None

    caption: str
    populations: tuple[Population, ...]
    remarks: tuple[str, ...]

    def shortened(self, steps: int) -> "Table":
        """The same with so many training steps."""
        return replace(self, populations=tuple(p.shortened(steps) for p in self.populations))

    def tests(self, results: Path) -> Mapping[str, float]:  # noqa: ARG002
        """None: the paper gives no deviations."""
        return {}

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Every distance in three normalisations."""
        rows, data = [], []
        for population in self.populations:
            measures = measures_of(results, population)
            found = measures and measures.solutions
            data.append({"population": population.name, "ours": plain(found)})
            seeds = str(found.seeds) if found else "0"
            for label, key in (
                ("between learned", "mean_between"),
                ("closest to compiled", "closest_to_compiled"),
            ):
                ours = ("-",) * len(FORMS)
                printed = "-"
                if found and (distance := getattr(found, key)):
                    ours = tuple(f"{getattr(distance, form):.4f}" for form in FORMS)
                    printed = f"{found.paper[key].printed}"
                rows.append((f"{population.name}, {label}", printed, *ours, seeds))
            clusters = "-"
            if found and found.clusters is not None:
                chance = found.one_cluster_p
                told = "" if math.isnan(chance) else f" (one cloud: p = {chance:.2f})"
                clusters = f"{found.clusters}{told}"
            rows.append((f"{population.name}, clusters", str(CLUSTERS), clusters, "-", "-", seeds))
        head = ("", "paper", "ours: L1/(t n²)", "L1/(t n)", "tv", "seeds")
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def measures_of(results: Path, population: Population) -> KeptMeasures | None:
    """What was measured of a population; None where it was not."""
    numbers = load_numbers(results, population.name)
    return None if numbers is None else numbers.measures


def missing(population: Population, results: Path, lacking: str = "measured") -> str:
    """What stands where a number would, by what a population lacks."""
    if load_numbers(results, population.name) is not None:
        return f"trained, not {lacking}"
    return not_run(population)


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
