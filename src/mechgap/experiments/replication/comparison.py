"""Whether two populations agree, from their means and deviations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """Some percentages: mean, deviation, largest, and where the mean lies."""

    mean: float
    std: float | None
    largest: float | None
    seeds: int

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        """The spread of some numbers.

        >>> Spread.of([1.0, 2.0, 3.0])
        Spread(mean=2.0, std=1.0, largest=3.0, seeds=3)
        """
        mean, largest = float(np.mean(values)), float(np.max(values))
        std = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return Spread(mean, std, largest, len(values))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence interval of the mean (Student's t) within 0 to 100; None with one seed."""
        if self.std is None:
            return None
        wide = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.seeds - 1))
        half = wide * self.std / self.seeds**0.5
        return max(0.0, self.mean - half), min(100.0, self.mean + half)


def agree(ours: Spread, theirs: Spread) -> bool | None:
    """Whether two means differ by no more than chance would have it (Student's t at 5 %).

    The question is whether both are draws from one population, so the deviation is taken from both
    together. Two seeds alone would say next to nothing of it: a test that takes them at their word
    (Welch's) cannot tell 75.7 ± 2.7 of two seeds from 97.3 ± 0.9. None with a single seed.

    >>> agree(Spread(50.0, 1.0, None, 8), Spread(50.5, 1.0, None, 128))
    True
    >>> agree(Spread(75.7, 2.7, None, 2), Spread(97.3, 0.9, None, 128))
    False
    """
    if ours.std is None or theirs.std is None:
        return None
    if ours.std == theirs.std == 0:
        return ours.mean == theirs.mean
    found = stats.ttest_ind_from_stats(
        ours.mean, ours.std, ours.seeds, theirs.mean, theirs.std, theirs.seeds
    )
    return bool(found.pvalue >= 1 - CONFIDENCE)  # pyright: ignore[reportAttributeAccessIssue]


def correlations_agree(ours: tuple[float | None, int], theirs: tuple[float, int]) -> bool | None:
    """Whether two coefficients, each with its seeds, differ by no more than chance would have it.

    Fisher's z at 5 %. None where there is no coefficient, or too few seeds for a test.

    >>> correlations_agree((0.2, 64), (0.1, 128)), correlations_agree((0.9, 8), (-0.1, 128))
    (True, False)
    """
    (r, n), (paper_r, paper_n) = ours, theirs
    if r is None or n <= 3:
        return None
    deviation = (1 / (n - 3) + 1 / (paper_n - 3)) ** 0.5
    # Every ordering the same gives ±1, whose z is infinite: further than any chance.
    with np.errstate(divide="ignore"):
        distance = abs(np.arctanh(r) - np.arctanh(paper_r))
    return bool(distance <= stats.norm.ppf((1 + CONFIDENCE) / 2) * deviation)
