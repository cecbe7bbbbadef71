"""How many seeds it takes to say something of a printed number, if the paper is right.

Two questions. *The same*: if our networks are of the paper's population, how many of them are
called equivalent in four of five cases? *Seen*: if a change does what the paper says, how many
networks with and without it show that it does anything?
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from scipy import stats

from mechgap.experiments.replication.accuracies import AccuracyTable, Contrast, printed
from mechgap.experiments.replication.comparison import LEVEL, POWER, Spread
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Study, duration
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered

MOST = 100_000
"""More seeds than anybody trains."""


def seeds_to_agree(theirs: Spread) -> int | None:
    """So many seeds of the paper's own population are called equivalent to it in 4 of 5 cases.

    >>> seeds_to_agree(Spread(98.3, 0.97, 100.0, 128))
    10
    """

    def suffices(n: int) -> bool:
        freedom = float(n + theirs.seeds - 2)
        return _within(1 / math.sqrt(1 / n + 1 / theirs.seeds), freedom)

    return None if theirs.std is None else _fewest(suffices)


def seeds_to_agree_on_effect(without: Spread, changed: Spread) -> int | None:
    """So many of each, if the paper's effect is the true one. None where no number is enough: the
    paper's own effect is not known well enough to be agreed with."""
    if without.std is None or changed.std is None:
        return None
    variance = without.std**2 + changed.std**2
    theirs = without.std**2 / without.seeds + changed.std**2 / changed.seeds
    margin = abs(changed.mean - without.mean) / 2

    def suffices(n: int) -> bool:
        freedom = float(2 * (n - 1) + without.seeds)
        return _within(margin / math.sqrt(variance / n + theirs), freedom)

    return _fewest(suffices)


def seeds_to_see(without: Spread, changed: Spread) -> int | None:
    """So many of each show the paper's effect, if it is the true one (Welch's test at 5 %)."""
    if without.std is None or changed.std is None:
        return None
    variances = (without.std**2, changed.std**2)
    effect = abs(changed.mean - without.mean)

    def suffices(n: int) -> bool:
        error = math.sqrt(sum(variances) / n)
        freedom = (n - 1) * sum(variances) ** 2 / sum(v**2 for v in variances)
        critical = stats.t.ppf(1 - LEVEL / 2, freedom)
        return bool(stats.nct.sf(critical, freedom, effect / error) >= POWER)

    return _fewest(suffices)


def _within(margin: float, freedom: float) -> bool:
    """Whether both one-sided tests succeed often enough, by a margin in standard errors."""
    room = margin - stats.t.ppf(1 - LEVEL, freedom)
    return bool(1 - 2 * stats.t.sf(room, freedom) >= POWER)


def _fewest(suffices: Callable[[int], bool]) -> int | None:
    """The smallest number of seeds that does; None if no number does."""
    if not suffices(MOST):
        return None
    low, high = 1, MOST  # low does not suffice
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class PowerTable:
    """What tables of accuracies need."""

    study: ClassVar[Study | None] = None

    caption: str
    tables: tuple[AccuracyTable, ...]
    remarks: tuple[str, ...] = ()

    @property
    def populations(self) -> Sequence[Population]:
        """Nothing is trained for it."""
        return ()

    def shortened(self, steps: int) -> "PowerTable":  # noqa: ARG002
        """The paper's networks are as long as they are."""
        return self

    def tests(self, results: Path) -> Mapping[str, float]:  # noqa: ARG002
        """It makes none."""
        return {}

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for every printed number, and one for what every change does."""
        head = ("", "paper (%)", "seeds to call it the same", "seeds to see the effect", "ours",
                "still takes here")  # fmt: skip
        numbers = {row.population.name: row.population for t in self.tables for row in t.rows}
        effects = {each.test: each for t in self.tables for each in t.contrasts}
        needs = [
            *(_of_number(population, results) for population in numbers.values()),
            *(_of_effect(each, results) for each in effects.values()),
        ]
        known = [need for need in needs if need is not None]
        rows = [need.cells() for need in known]
        return Rendered(name, self.caption, head, rows, self.remarks, [n.data() for n in known])


@dataclass(frozen=True)
class _Need:
    """What one printed number or effect needs."""

    label: str
    paper: str
    to_agree: int | None
    to_see: int | None
    """None also for a number, which there is nothing to see of."""
    ours: tuple[int, ...]
    """Seeds of every population concerned."""
    seconds: float
    """That what is missing takes here."""

    def cells(self) -> tuple[str, ...]:
        """As a row."""
        agree = "no number" if self.to_agree is None else f"{self.to_agree:,}"
        see = "-" if self.to_see is None else f"{self.to_see:,}"
        left = duration(self.seconds) if self.seconds else "-"
        return (self.label, self.paper, agree, see, " and ".join(map(str, self.ours)), left)

    def data(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "row": self.label,
            "seeds_to_agree": self.to_agree,
            "seeds_to_see": self.to_see,
            "seeds": list(self.ours),
            "estimated_seconds": self.seconds,
        }


def _of_number(population: Population, results: Path) -> _Need | None:
    theirs = printed(population)
    if theirs is None or theirs.std is None:
        return None
    needed, ours = seeds_to_agree(theirs), _ours(population, results)
    paper = f"{theirs.mean:.2f} ± {theirs.std:.2f}"
    left = _left(population, needed, ours)
    return _Need(population.name, paper, needed, None, (ours,), left)


def _of_effect(each: Contrast, results: Path) -> _Need | None:
    pair = each.without, each.changed
    without, changed = (printed(population) for population in pair)
    if without is None or changed is None or without.std is None or changed.std is None:
        return None
    error = math.sqrt(without.std**2 / without.seeds + changed.std**2 / changed.seeds)
    paper = f"{changed.mean - without.mean:+.2f} ± {error:.2f} (s.e.)"
    agree, see = seeds_to_agree_on_effect(without, changed), seeds_to_see(without, changed)
    needed = max((n for n in (agree, see) if n is not None), default=None)
    ours = tuple(_ours(population, results) for population in pair)
    left = sum(_left(p, needed, n) for p, n in zip(pair, ours, strict=True))
    return _Need(each.label, paper, agree, see, ours, left)


def _ours(population: Population, results: Path) -> int:
    numbers = load_numbers(results, population.name)
    as_long = population.recipe == population.full_recipe
    return 0 if numbers is None or not as_long else len(numbers.seed)


def _left(population: Population, needed: int | None, ours: int) -> float:
    return 0.0 if needed is None else population.seconds(max(0, needed - ours))
