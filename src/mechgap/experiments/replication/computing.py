"""Do populations compute what a program computes? Interchange interventions, as tables.

Their numbers are in a population's own file; finding them takes minutes a seed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar

from matplotlib.figure import Figure

from mechgap.experiments.gap import measured_run
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.keeping import keep_numbers
from mechgap.experiments.replication.kinds import (
    Row,
    Study,
    TableOfRows,
    measures_of,
    missing,
)
from mechgap.experiments.replication.numbers import KeptMeasures, KeptNetwork, numbers_of
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.interchange.measure import Carried
from mechgap.measures.run import measure_interchange
from mechgap.report.interchange import COLUMNS, cells, score_beside
from mechgap.report.measures import percent
from mechgap.report.two_by_two import Point, two_by_two
from mechgap.training.train import OnProgress

BASELINES = ("untrained", "compiled")


def keep_interchange(
    population: Population, runs: Path, results: Path, on_progress: OnProgress
) -> None:
    """Count how far the networks of a run compute what its mechanisms do, and keep the numbers."""
    folder = runs / population.name
    if numbers_of(folder) is None:
        return
    measured_run(folder, on_progress)
    measure_interchange(folder, on_progress=on_progress)
    keep_numbers(population, runs, results, on_progress)


def _is_known(population: Population, results: Path) -> bool:
    measures = measures_of(results, population)
    return measures is not None and any(row.interchange for row in measures.seeds)


INTERCHANGE = Study(keep_interchange, _is_known)


@dataclass(frozen=True)
class InterchangeTable(TableOfRows):
    """Variable by variable, how often networks follow when it is put from one run into another."""

    study: ClassVar[Study | None] = INTERCHANGE

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each variable of each mechanism, with the means of the seeds."""
        head = ("", "variable", *COLUMNS, *BASELINES, "seeds")
        rows, data = [], []
        for row in self.rows:
            measures = measures_of(results, row.population)
            if measures is None or not list(_variables(measures)):
                told = _told(row, results)
                rows.append((row.label, told, *["-"] * (len(head) - 3), "0"))
                data.append({"row": row.label, "missing": told})
                continue
            for mechanism, variable in _variables(measures):
                numbers = _Numbers.of(measures, mechanism, variable)
                seeds = str(len(numbers.learned))
                rows.append(
                    (row.label, f"{mechanism}: {variable}", *cells(numbers.learned),
                     *(percent([numbers.beside.get(which)]) for which in BASELINES), seeds)
                )  # fmt: skip
                score = mean(each.score for each in numbers.learned)
                data.append(
                    {"row": row.label, "mechanism": mechanism, "variable": variable,
                     "seeds": len(numbers.learned), "score": score, **numbers.beside}
                )  # fmt: skip
        return Rendered(name, self.caption, head, rows, self.remarks, data)


@dataclass(frozen=True)
class TwoByTwoTable(TableOfRows):
    """Who attends like a mechanism, and who computes like it."""

    study: ClassVar[Study | None] = INTERCHANGE

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Seeds in each of the four quarters."""
        quarters = ("both", "attend only", "compute only", "neither")
        head = ("", "mechanism", "attends (%)", "untrained", "computes (%)", "untrained",
                *quarters, "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            found = _points(row, results)
            if not found:
                told = _told(row, results)
                rows.append((row.label, told, *["-"] * (len(head) - 3), "0"))
                data.append({"row": row.label, "missing": told})
            for mechanism, points in found.items():
                seeds, untrained = points["learned"], points["untrained"][0]
                of = [_quarter(point, untrained) for point in seeds]
                counts = {quarter: of.count(quarter) for quarter in quarters}
                attends, computes = (percent([p[k] for p in seeds]) for k in (0, 1))
                rows.append(
                    (row.label, mechanism, attends, percent([untrained[0]]), computes,
                     percent([untrained[1]]), *map(str, counts.values()), str(len(seeds)))
                )  # fmt: skip
                data.append({"row": row.label, "mechanism": mechanism, **counts})
        return Rendered(name, self.caption, head, rows, self.remarks, data)

    def drawn(self, results: Path) -> Figure | None:
        """Every network as a point, a panel for each population; None where nothing is known."""
        panels = {
            f"{row.label}\nbeside {mechanism}": points
            for row in self.rows
            for mechanism, points in _points(row, results).items()
        }
        return two_by_two(panels) if panels else None


def _told(row: Row, results: Path) -> str:
    known = measures_of(results, row.population) is not None
    return "measured, not interchanged" if known else missing(row.population, results)


def _variables(measures: KeptMeasures) -> Iterator[tuple[str, str]]:
    """Mechanisms and variables of which something is known about learned networks."""
    yield from dict.fromkeys(
        (mechanism, variable)
        for seed in measures.seeds
        for mechanism, found in seed.interchange.items()
        for variable in found.variables
    )


@dataclass(frozen=True)
class _Numbers:
    """Of one variable."""

    learned: Sequence[Carried]
    beside: Mapping[str, float]
    """The scores of baselines, by name."""

    @staticmethod
    def of(measures: KeptMeasures, mechanism: str, variable: str) -> "_Numbers":
        each = [_carried(seed, mechanism, variable) for seed in measures.seeds]
        learned = [one for one in each if one is not None]
        found = {
            name: _carried(measures.baselines[name], mechanism, variable)
            for name in BASELINES
            if name in measures.baselines
        }
        known = {name: one for name, one in found.items() if one is not None}
        scores = {name: score_beside(learned[0], one.small) for name, one in known.items()}
        return _Numbers(learned, scores)


def _carried(network: KeptNetwork, mechanism: str, variable: str) -> Carried | None:
    found = network.interchange.get(mechanism)
    return None if found is None else found.variables.get(variable)


def _points(row: Row, results: Path) -> Mapping[str, Mapping[str, Sequence[Point]]]:
    """By mechanism: top-1 agreement on updated nodes and share of interchanges that follow."""
    measures = measures_of(results, row.population)
    if measures is None:
        return {}
    found: dict[str, Any] = {}
    for mechanism in dict.fromkeys(mechanism for mechanism, _ in _variables(measures)):

        def points(networks: Sequence[KeptNetwork], name: str = mechanism) -> list[Point]:
            return [
                (each.gaps[name].agreement, each.interchange[name].score)
                for each in networks
                if name in each.interchange and name in each.gaps
            ]

        beside = {w: points([measures.baselines[w]]) for w in measures.baselines}
        if beside.get("untrained"):
            found[mechanism] = {"learned": points(measures.seeds), **beside}
    return found


def _quarter(point: Point, untrained: Point) -> str:
    """Like it means nearer to the exact network, which has 100 %, than to the untrained one."""
    attends, computes = (
        value > (1 + beside) / 2 for value, beside in zip(point, untrained, strict=True)
    )
    if attends and computes:
        return "both"
    return "attend only" if attends else "compute only" if computes else "neither"
