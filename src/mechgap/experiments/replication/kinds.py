"""Kinds of tables: accuracies, distances between solutions.

A table is made from the numbers in `results/` alone. Where there are none yet, a row says what they
would cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mechgap.experiments.replication.comparison import (
    Comparison,
    Spread,
    compare,
    contrast,
    rank_p,
)
from mechgap.experiments.replication.judging import Judge
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

    def tests(self, results: Path) -> Mapping[str, float]:
        """The p-values of its tests against the paper."""
        ...

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:
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

    def tests(self, results: Path) -> Mapping[str, float]:  # noqa: ARG002
        """The p-values of its tests against the paper; most tables make none."""
        return {}

    @abstractmethod
    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:
        """The table with the numbers that there are."""


@dataclass(frozen=True)
class Contrast:
    """What a change does: one population beside the one that it was changed from."""

    label: str
    without: Population
    changed: Population

    @property
    def test(self) -> str:
        """The test's name."""
        return f"contrast {self.changed.name} - {self.without.name}"

    def shortened(self, steps: int) -> "Contrast":
        """The same with so many training steps."""
        return replace(
            self, without=self.without.shortened(steps), changed=self.changed.shortened(steps)
        )


@dataclass(frozen=True)
class AccuracyTable(TableOfRows):
    """Test accuracies beside the paper's, and what changes do."""

    contrasts: tuple[Contrast, ...] = ()

    def shortened(self, steps: int) -> "AccuracyTable":
        """The same with so many training steps."""
        return replace(
            self,
            rows=tuple(row.shortened(steps) for row in self.rows),
            contrasts=tuple(each.shortened(steps) for each in self.contrasts),
        )

    def tests(self, results: Path) -> Mapping[str, float]:
        """Means, maxima and contrasts."""
        found: dict[str, float] = {}
        for row in self.rows:
            compared = _compared(row.population, results)
            if compared.comparison is not None:
                found[row.population.name] = compared.comparison.p
            if compared.rank_p is not None:
                found[f"maximum of {row.population.name}"] = compared.rank_p
        for each in self.contrasts:
            if (effect := _effect(each, results)) is not None:
                found[each.test] = effect[0].p
        return found

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:
        """Mean ± std (max) of both, their difference, and what can be said of it."""
        head = ("", "paper (%)", "seeds", "ours (%)", "seeds", "steps",
                "difference (95 % interval)", "verdict", "last (%)")  # fmt: skip
        found = [_compared(row.population, results) for row in self.rows]
        data = [each.data(row.label, judge) for row, each in zip(self.rows, found, strict=True)]
        cells = [_cells(row, each) for row, each in zip(self.rows, data, strict=True)]
        for each in self.contrasts:
            if (effect := _effect(each, results)) is not None:
                verdict = judge.verdict(each.test, effect[0])
                data.append(_effect_data(each, effect, verdict))
                cells.append(_effect_cells(each, effect, verdict or "-"))
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(
            *(name, self.caption, head, cells),
            [*remarks, *self.remarks, *_maxima(data), *_diverged(data)],
            data,
        )


@dataclass(frozen=True)
class _Compared:
    """The paper's accuracies and ours, in percent."""

    population: Population
    paper: Spread | None
    ours: Spread | None
    last: Spread | None
    smallest: float | None
    above: int
    """Seeds of ours that are above the paper's largest."""
    rank_p: float | None
    comparison: Comparison | None
    diverged: tuple[str, ...]

    def data(self, label: str, judge: Judge) -> dict[str, Any]:
        """As plain values, with the verdict."""
        name = self.population.name
        rank = judge.adjusted.get(f"maximum of {name}") if self.rank_p is not None else None
        return {
            "row": label,
            "population": name,
            "steps": self.population.recipe.train_steps,
            "paper": asdict(self.paper) if self.paper else None,
            "ours": {**asdict(self.ours), "smallest": self.smallest} if self.ours else None,
            "comparison": asdict(self.comparison) if self.comparison else None,
            "verdict": judge.verdict(name, self.comparison),
            "above_the_paper's_maximum": self.above,
            "rank_p": rank,
            "last": asdict(self.last) if self.last else None,
            "diverged": list(self.diverged),
        }


def _compared(population: Population, results: Path) -> _Compared:
    paper = printed(population)
    numbers = load_numbers(results, population.name)
    if numbers is None:
        return _Compared(population, paper, None, None, None, 0, None, None, ())
    values = [100 * a for a in numbers["accuracy"]]
    ours, last = Spread.of(values), Spread.of([100 * a for a in numbers["accuracy_last"]])
    as_long = population.recipe == population.full_recipe
    rank, above = None, 0
    if paper and paper.largest is not None and as_long:
        above = sum(value > paper.largest for value in values)
        rank = rank_p(values, paper.largest, paper.seeds) if above else None
    return _Compared(
        *(population, paper, ours, last, min(values), above, rank),
        compare(ours, paper) if paper and as_long else None,
        tuple(numbers["diverged"]),
    )


def printed(population: Population) -> Spread | None:
    """What the paper prints for a population trained for as long as the paper's."""
    found = paper_number(population.full_recipe)
    return None if found is None else Spread(*found.values())


def _cells(row: Row, data: Mapping[str, Any]) -> Sequence[str]:
    paper, ours, steps = data["paper"], data["ours"], f"{data['steps']:,}"
    theirs = (spread_text(paper), str(paper["seeds"])) if paper else ("-", "-")
    if ours is None:
        return (row.label, *theirs, not_run(row.population), "0", steps, "-", "-", "-")
    last = spread_text({**data["last"], "largest": None})
    difference = difference_text(data["comparison"])
    measured = (spread_text(ours), str(ours["seeds"]), steps, difference)
    return (row.label, *theirs, *measured, data["verdict"] or "-", last)


Effect = tuple[Comparison, tuple[float, float], tuple[float, float]]


def _effect(each: Contrast, results: Path) -> Effect | None:
    """What a change does here and in the paper; None where a part is missing."""
    pair = (each.without, each.changed)
    ours = [_compared(population, results).ours for population in pair]
    paper = [printed(population) for population in pair]
    as_long = all(population.recipe == population.full_recipe for population in pair)
    match (*ours, *paper):
        case (Spread() as a, Spread() as b, Spread() as c, Spread() as d) if as_long:
            return contrast((a, b), (c, d))
    return None


def _effect_data(each: Contrast, effect: Effect, verdict: str | None) -> dict[str, Any]:
    comparison, (ours, our_error), (paper, paper_error) = effect
    return {
        "row": each.label,
        "contrast": each.test,
        "paper": {"effect": paper, "standard_error": paper_error},
        "ours": {"effect": ours, "standard_error": our_error},
        "comparison": asdict(comparison),
        "verdict": verdict,
    }


def _effect_cells(each: Contrast, effect: Effect, verdict: str) -> Sequence[str]:
    comparison, (ours, our_error), (paper, paper_error) = effect
    said = (f"{paper:+.2f} ± {paper_error:.2f} (s.e.)", f"{ours:+.2f} ± {our_error:.2f} (s.e.)")
    shown = difference_text(asdict(comparison))
    return (each.label, said[0], "-", said[1], "-", "-", shown, verdict, "-")


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


def _maxima(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows whose seeds go beyond the paper's largest, and how likely that is by chance."""
    return [
        f"{data['row']}: {data[key]} of our {data['ours']['seeds']} seeds are above the paper's "
        f"largest, {data['paper']['largest']:.2f} (rank test: p = {data['rank_p']:.2g}, corrected)."
        for data in found
        if data.get(key := "above_the_paper's_maximum")
    ]


def _diverged(found: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{data['row']}: seeds {', '.join(data['diverged'])} diverged and are not counted."
        for data in found
        if data.get("diverged")
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

    def tests(self, results: Path) -> Mapping[str, float]:  # noqa: ARG002
        """None: the paper gives no deviations."""
        return {}

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Every distance in three normalisations."""
        rows, data = [], []
        for population in self.populations:
            measures = measures_of(results, population)
            found = measures and measures["solutions"]
            data.append({"population": population.name, "ours": found})
            seeds = "0"
            if found:
                seeds = str(found["seeds"])
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
            clusters = "-"
            if found and found["clusters"] is not None:
                chance = found["one_cluster_p"]
                told = "" if chance is None else f" (one cloud: p = {chance:.2f})"
                clusters = f"{found['clusters']}{told}"
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
