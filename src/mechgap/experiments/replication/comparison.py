"""What two populations tell about each other, and what they do not.

One model for estimate, interval and verdict: our seeds are held to be of the paper's population,
with the deviation of both (Student's t). Not to differ is not to agree, so there are three
verdicts:

    differs       the test at 5 % says so, after Holm's correction for all tests of the page
    equivalent    both one-sided tests say that the difference is less than the margin
    cannot tell   neither; beside it the difference that so many seeds would have seen in 4 of 5
                  cases
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

LEVEL = 0.05
POWER = 0.8
MOST_SPLITS = 50_000
"""All ways to split seeds are tried if there are no more, else so many by chance."""


@dataclass(frozen=True)
class Spread:
    """Some percentages: mean, deviation, largest, and of how many seeds."""

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


@dataclass(frozen=True)
class Comparison:
    """A difference, ours less theirs, and what can be said of it."""

    difference: float
    interval: tuple[float, float]
    """95 %."""
    p: float
    """That there is no difference; not corrected."""
    margin: float
    """What counts as the same."""
    equivalence_p: float
    """That the difference is as large as the margin."""
    detectable: float
    """A difference of this size would have been seen in 4 of 5 cases."""

    def verdict(self, adjusted: float) -> str:
        """In words, with the p-value corrected for the page."""
        if adjusted < LEVEL:
            small = self.equivalence_p < LEVEL
            return "differs, by less than 1 std" if small else "differs"
        if self.equivalence_p < LEVEL:
            return "equivalent"
        return f"cannot tell (sees ±{self.detectable:.1f})"


def compare(ours: Spread, theirs: Spread) -> Comparison | None:
    """Whether our seeds are of the paper's population. None where the paper has no deviation.

    >>> same = compare(Spread(50.0, 1.0, None, 100), Spread(50.1, 1.0, None, 128))
    >>> same is not None and same.verdict(same.p)
    'equivalent'
    >>> far = compare(Spread(75.7, 2.7, None, 2), Spread(97.3, 0.9, None, 128))
    >>> far is not None and far.verdict(far.p)
    'differs'
    """
    if theirs.std is None:
        return None
    freedom = float(ours.seeds + theirs.seeds - 2)
    squares = (ours.seeds - 1) * (ours.std or 0.0) ** 2 + (theirs.seeds - 1) * theirs.std**2
    error = math.sqrt(squares / freedom * (1 / ours.seeds + 1 / theirs.seeds))
    return _compared(ours.mean - theirs.mean, error, freedom, theirs.std)


def contrast(
    ours: tuple[Spread, Spread], theirs: tuple[Spread, Spread]
) -> tuple[Comparison, tuple[float, float], tuple[float, float]] | None:
    """Whether an ablation does here what it does in the paper: (second less first), both times.

    Each of the four means has its own deviation (Welch and Satterthwaite). The same effect is one
    that is off by less than half of the paper's. Also both effects with their standard errors.
    None where a deviation is not known.
    """
    terms = (*ours, *theirs)
    if any(term.std is None for term in terms):
        return None
    variances = [term.std**2 / term.seeds for term in terms if term.std is not None]
    total = sum(variances)
    if not total > 0:
        return None
    freedom = total**2 / sum(
        v**2 / (term.seeds - 1) for v, term in zip(variances, terms, strict=True) if v
    )
    here, there = ours[1].mean - ours[0].mean, theirs[1].mean - theirs[0].mean
    found = _compared(here - there, math.sqrt(total), freedom, abs(there) / 2)
    return (
        found,
        (here, math.sqrt(variances[0] + variances[1])),
        (there, math.sqrt(variances[2] + variances[3])),
    )


def _compared(difference: float, error: float, freedom: float, margin: float) -> Comparison:
    t: Any = stats.t(freedom)
    if error == 0:
        p = float(difference == 0)
        return Comparison(difference, (difference, difference), p, margin, 1.0 - p, 0.0)
    half = float(t.ppf(1 - LEVEL / 2)) * error
    return Comparison(
        difference=difference,
        interval=(difference - half, difference + half),
        p=float(2 * t.sf(abs(difference) / error)),
        margin=margin,
        equivalence_p=float(t.sf((margin - abs(difference)) / error)),
        detectable=half + float(t.ppf(POWER)) * error,
    )


def compare_correlations(ours: tuple[float, int], theirs: tuple[float, int]) -> Comparison | None:
    """Whether two coefficients, each with its seeds, differ: Fisher's z, in which it is told.

    None where there is no coefficient, or too few seeds for a test. The margin is 0.3, between a
    small and a medium correlation.
    """
    (r, n), (paper_r, paper_n) = ours, theirs
    if math.isnan(r) or n <= 3:
        return None
    largest = 1 - 6 / (n**3 - n)  # all seeds in one order are 1 only as far as they can tell
    z = math.atanh(max(-largest, min(largest, r)))
    error = math.sqrt(1 / (n - 3) + 1 / (paper_n - 3))
    return _compared(z - math.atanh(paper_r), error, math.inf, 0.3)


def rank_p(ours: Sequence[float], largest: float, seeds: int) -> float:
    """How likely it is that so many of our seeds are above the largest of theirs.

    If all are of one population, every order is as likely: that the top k are all ours.

    >>> rank_p([98.0, 99.0], 97.0, 2), rank_p([96.0], 97.0, 128)
    (0.16666666666666666, 1.0)
    """
    above = sum(value > largest for value in ours)
    total = len(ours) + seeds
    return math.prod(((len(ours) - k) / (total - k) for k in range(above)), start=1.0)


def permutation_p(a: Sequence[float], b: Sequence[float]) -> float:
    """How often another split of the same seeds has means as far apart.

    >>> round(permutation_p([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]), 2)
    0.1
    """
    values, count = np.array([*a, *b]), len(a)
    splits = math.comb(len(values), count)
    if splits <= MOST_SPLITS:
        chosen = np.array(list(combinations(range(len(values)), count)))
    else:
        rng = np.random.default_rng(0)
        order = rng.permuted(np.tile(np.arange(len(values)), (MOST_SPLITS, 1)), axis=1)
        chosen = order[:, :count]
    sums = values[chosen].sum(1)
    apart = np.abs(sums / count - (values.sum() - sums) / (len(values) - count))
    seen = abs(float(np.mean(a)) - float(np.mean(b)))
    as_far = int(np.sum(apart >= seen - 1e-12))
    return as_far / splits if splits <= MOST_SPLITS else (as_far + 1) / (MOST_SPLITS + 1)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """P-values corrected for how many there are (Holm).

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted, so_far = {}, 0.0
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, p) in enumerate(ordered):
        so_far = max(so_far, min(1.0, (len(ordered) - rank) * p))
        adjusted[name] = so_far
    return adjusted
