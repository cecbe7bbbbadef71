"""Which seeds to train in a given time: those that narrow most intervals.

Seeds are added in small lots. A lot is worth what it narrows: for every row that a population
serves, the logarithm of how many times more seeds it has then. A row without any number gains most.
The next lot is always the one of most worth per second that still fits.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mechgap.experiments.replication.populations import Population

NARROW_LOT, WIDE_LOT = 32, 2
"""Seeds that are added at once: as many as run together."""
NONE = 0.01
"""What no seed counts as, so that a first number is worth more than any other."""


@dataclass(frozen=True)
class Candidate:
    """A population that could be given more seeds."""

    name: str
    finished: int
    most: int
    """Seeds that it shall have in the end."""
    rows: int
    """Rows of tables that it serves."""
    lot: int
    seconds: float
    """What a lot costs."""

    @staticmethod
    def of(population: Population, finished: int, most: int, rows: int, rate: float) -> "Candidate":
        """A population, given how fast it trains here."""
        lot = NARROW_LOT if population.recipe.hidden_size <= 16 else WIDE_LOT
        seconds = population.seconds(lot, rate)
        return Candidate(population.name, finished, most, rows, lot, seconds)

    @property
    def after(self) -> int:
        """How many seeds it has with one more lot."""
        return self.finished + self.lot

    @property
    def worth(self) -> float:
        """What a lot tells, per second."""
        return self.rows * math.log(self.after / (self.finished + NONE)) / self.seconds


@dataclass(frozen=True)
class Plan:
    """How many seeds each population is to have, in the order of training."""

    seeds: dict[str, int]
    seconds: float
    without: tuple[str, ...]
    """Populations that would have no seed at all."""


def plan(candidates: Iterable[Candidate], budget: float) -> Plan:
    """Spend a budget in seconds."""
    now = {candidate.name: candidate for candidate in candidates}
    wanted: dict[str, int] = {}
    spent = 0.0
    while True:
        fitting = [c for c in now.values() if spent + c.seconds <= budget and c.after <= c.most]
        if not fitting:
            break
        best = max(fitting, key=lambda c: c.worth)
        spent += best.seconds
        now[best.name] = replace(best, finished=best.after)
        wanted[best.name] = best.after
    return Plan(wanted, spent, tuple(name for name, c in now.items() if not c.finished))
