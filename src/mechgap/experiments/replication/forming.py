"""When does a mechanism form? Which comes first along training: accuracy, hints or attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure

from mechgap.experiments.replication.comparison import permutation_p
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import TableOfRows, measures_of, missing
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.replication.snapshots import kept_snapshots
from mechgap.measures.snapshot import Seen
from mechgap.report.forming import Course, over_training
from mechgap.report.measures import p_value

MEASURES = ("accuracy", "graph_accuracy", "hints", "agreement", "tv")
LABELS = {
    "accuracy": "accuracy",
    "graph_accuracy": "graph accuracy",
    "hints": "hint accuracy",
    "agreement": "top-1 agreement on updated nodes",
    "tv": "attention where the mechanism has it (1 − tv)",
}


@dataclass(frozen=True)
class FormingTable(TableOfRows):
    """How far each measure has come at which step, and whether faithful seeds come otherwise."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each population and measure."""
        head = ("", "measure", "untrained (%)", "first look (%)", "last (%)", "half way there",
                "largest", "faithful half there (%)", "other half (%)", "p", "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            courses = courses_of(row.population, results)
            if not courses:
                told = missing(row.population, results)
                rows.append((row.label, "-", told, *["-"] * (len(head) - 4), "0"))
                data.append({"row": row.label, "missing": told})
                continue
            for measure in (m for m in MEASURES if any(m in c.values for c in courses)):
                known = [course for course in courses if measure in course.values]
                numbers = _Numbers.of(known, measure, _untrained(row.population, results, measure))
                rows.append((row.label, LABELS[measure], *numbers.cells))
                data.append({"row": row.label, "measure": measure, **vars(numbers)})
        return Rendered(name, self.caption, head, rows, self.remarks, data)

    def drawn(self, results: Path) -> Figure | None:
        """Every population's measures over training; None where nobody looked."""
        found = {row.label: courses_of(row.population, results) for row in self.rows}
        known = {label: courses for label, courses in found.items() if courses}
        return over_training(known, LABELS) if known else None


@dataclass(frozen=True)
class _Numbers:
    untrained: float | None
    first: float
    """At the first step at which all seeds were looked at."""
    first_step: int
    last: float
    half_way: int
    """The median seed's first look at which half of the way from the untrained network to its
    largest value is done."""
    early: int
    """Of so many seeds: those that were looked at earliest."""
    largest_at: int
    faithful: float | None
    """At the first look, of the half of the seeds that end with the smaller gap."""
    other: float | None
    p: float | None
    """That those halves have means as far apart by chance."""
    seeds: int

    @staticmethod
    def of(courses: Sequence[Course], measure: str, untrained: float | None) -> "_Numbers":
        values = [course.values[measure] for course in courses]
        first_step = min(set.intersection(*(set(each) for each in values)))
        firsts = [each[first_step] for each in values]
        begins = min(min(each) for each in values)
        early = [each for each in values if min(each) == begins]
        halves = _halves(courses, measure, first_step)
        return _Numbers(
            untrained=untrained,
            first=sum(firsts) / len(firsts),
            first_step=first_step,
            last=sum(each[max(each)] for each in values) / len(values),
            half_way=int(median(_half_way(each, untrained or 0.0) for each in early)),
            early=len(early),
            largest_at=int(median(max(each, key=each.__getitem__) for each in values)),
            faithful=sum(halves[0]) / len(halves[0]) if halves else None,
            other=sum(halves[1]) / len(halves[1]) if halves else None,
            p=permutation_p(*halves) if halves else None,
            seeds=len(courses),
        )

    @property
    def cells(self) -> tuple[str, ...]:
        def percent(value: float | None) -> str:
            return "-" if value is None else f"{100 * value:.2f}"

        return (
            percent(self.untrained),
            f"{percent(self.first)} at {self.first_step:,}",
            percent(self.last),
            f"{self.half_way:,} ({self.early} seeds)",
            f"{self.largest_at:,}",
            percent(self.faithful),
            percent(self.other),
            "-" if self.p is None else p_value(self.p),
            str(self.seeds),
        )


def courses_of(population: Population, results: Path) -> list[Course]:
    """Every seed's measures at every step, on deep graphs, beside the task's first mechanism."""
    found: dict[int, dict[str, dict[int, float]]] = {}
    mechanism = population.recipe.mechanisms[0].name
    for snapshot in kept_snapshots(results, population.name):
        if snapshot.which != "step" or snapshot.deep is None:
            continue
        of_seed = found.setdefault(snapshot.seed, {})
        for measure in MEASURES:
            value = _value(snapshot.deep, measure, mechanism)
            if value is not None:
                of_seed.setdefault(measure, {})[snapshot.step] = value
    return [Course(seed, values) for seed, values in sorted(found.items()) if values]


def _value(seen: Seen, measure: str, mechanism: str) -> float | None:
    if measure in ("agreement", "tv"):
        beside = seen.mechanisms.get(mechanism)
        value = None if beside is None else getattr(beside, measure)
        return 1 - value if measure == "tv" and value is not None else value
    return getattr(seen, measure)


def _untrained(population: Population, results: Path, measure: str) -> float | None:
    """The mean of untrained networks on the same graphs."""
    measures = measures_of(results, population)
    row = None if measures is None else measures.baselines.get("untrained")
    if row is None or row.deep is None:
        return None
    return _value(row.deep, measure, population.recipe.mechanisms[0].name)


def _half_way(values: Mapping[int, float], begin: float) -> int:
    """The first step at which half of the way to the largest value is done."""
    needed = (begin + max(values.values())) / 2
    return next(step for step in sorted(values) if values[step] >= needed)


def _halves(
    courses: Sequence[Course], measure: str, step: int
) -> tuple[Sequence[float], Sequence[float]] | None:
    """The values at a step of the seeds that end with the smaller gap, and of the others."""
    ended = [course for course in courses if "tv" in course.values]
    if len(ended) < 4 or len(ended) < len(courses):
        return None
    order = sorted(ended, key=lambda c: -c.values["tv"][max(c.values["tv"])])
    there = [course.values[measure][step] for course in order]
    return there[: len(there) // 2], there[len(there) // 2 :]
