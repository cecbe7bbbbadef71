"""Tables of accuracies beside the paper's, and of what a change does to them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.comparison import (
    Comparison,
    Spread,
    compare,
    contrast,
    rank_p,
)
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import (
    Row,
    TableOfRows,
    difference_text,
    not_run,
    spread_text,
)
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.report.measures import known
from mechgap.report.paper import paper_number


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
                "difference (95 % interval)", "verdict", "graph accuracy (%)",
                "last (%)")  # fmt: skip
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
    graphs: Spread | None
    """Whole graphs that are right, of seeds that are measured."""
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
            "graphs": asdict(self.graphs) if self.graphs else None,
            "last": asdict(self.last) if self.last else None,
            "diverged": list(self.diverged),
        }


def _compared(population: Population, results: Path) -> _Compared:
    paper = printed(population)
    numbers = load_numbers(results, population.name)
    if numbers is None:
        return _Compared(population, paper, None, None, None, None, 0, None, None, ())
    values = [100 * a for a in numbers.accuracy]
    ours, last = Spread.of(values), Spread.of([100 * a for a in numbers.accuracy_last])
    measured = numbers.measures.seeds if numbers.measures else ()
    whole = [100 * value for value in known([seed.graph_accuracy for seed in measured])]
    graphs = Spread.of(whole) if whole else None
    as_long = population.recipe == population.full_recipe
    rank, above = None, 0
    if paper and paper.largest is not None and as_long:
        above = sum(value > paper.largest for value in values)
        rank = rank_p(values, paper.largest, paper.seeds) if above else None
    return _Compared(
        *(population, paper, ours, graphs, last, min(values), above, rank),
        compare(ours, paper) if paper and as_long else None,
        tuple(numbers.diverged),
    )


def printed(population: Population) -> Spread | None:
    """What the paper prints for a population trained for as long as the paper's."""
    found = paper_number(population.full_recipe)
    return None if found is None else Spread(*found.values())


def _cells(row: Row, data: Mapping[str, Any]) -> Sequence[str]:
    paper, ours, steps = data["paper"], data["ours"], f"{data['steps']:,}"
    theirs = (spread_text(paper), str(paper["seeds"])) if paper else ("-", "-")
    if ours is None:
        return (row.label, *theirs, not_run(row.population), "0", steps, "-", "-", "-", "-")
    graphs, last = (
        spread_text({**data[of], "largest": None}) if data[of] else "-" for of in ("graphs", "last")
    )
    difference = difference_text(data["comparison"])
    measured = (spread_text(ours), str(ours["seeds"]), steps, difference)
    return (row.label, *theirs, *measured, data["verdict"] or "-", graphs, last)


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
    return (each.label, said[0], "-", said[1], "-", "-", shown, verdict, "-", "-")


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
