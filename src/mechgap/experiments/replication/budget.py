"""Where a given time tells most.

Seeds are added in small lots. A lot is worth what it narrows: for every row that a population
serves, the logarithm of how much its standard error falls (the first lot, which gives a row its
first number, most of all). The next lot is always the one of most worth per second that still fits.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mechgap.experiments.replication.populations import Population

NARROW_LOT, WIDE_LOT = 32, 2


@dataclass(frozen=True)
class Candidate:
    """A population that could be given more seeds."""

    population: Population
    finished: int
    rate: float
    rows: int

    @property
    def lot(self) -> int:
        """How many seeds are added at once: as many as run as one program."""
        return NARROW_LOT if self.population.recipe.hidden_size <= 16 else WIDE_LOT

    @property
    def seconds(self) -> float:
        """What a lot costs."""
        return self.population.seconds(self.lot, self.rate)

    @property
    def worth(self) -> float:
        """What a lot tells, per second."""
        before, after = 1 + self.finished, 1 + self.finished + self.lot
        return self.rows * math.log(after / before) / self.seconds

    def with_lot(self) -> "Candidate":
        """After the lot."""
        return Candidate(self.population, self.finished + self.lot, self.rate, self.rows)


@dataclass(frozen=True)
class Plan:
    """How many seeds each population is to have, in the order of training."""

    seeds: dict[str, int]
    seconds: float
    without: tuple[str, ...]
    """Populations that would have no seed at all."""


def plan(candidates: Iterable[Candidate], budget: float, most: Callable[[Population], int]) -> Plan:
    """Spend a budget in seconds. `most` is how many seeds a population shall have at most."""
    now = {c.population.name: c for c in candidates}
    wanted: dict[str, int] = {}
    spent = 0.0
    while True:
        fitting = [
            c
            for c in now.values()
            if spent + c.seconds <= budget and c.finished + c.lot <= most(c.population)
        ]
        if not fitting:
            break
        best = max(fitting, key=lambda c: c.worth)
        spent += best.seconds
        now[best.population.name] = best.with_lot()
        wanted[best.population.name] = best.finished + best.lot
    return Plan(wanted, spent, tuple(name for name, c in now.items() if not c.finished))
