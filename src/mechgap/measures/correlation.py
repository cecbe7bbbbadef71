"""Does accuracy say anything about faithfulness? Correlation over a population, with its doubt.

Intervals are Fisher's for Pearson's r and Bonett and Wright's for Spearman's ρ. With fewer than 30
seeds p-values are those of permutations: all of them where that is possible, else many. They need
no assumption, and cannot be smaller than the number of orderings allows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

FEW = 30
"""With fewer seeds, p-values come from permutations."""
MOST_ORDERINGS = 50_000
"""All orderings are tried if there are no more, else so many by chance."""


@dataclass(frozen=True)
class Correlation:
    """Pearson and Spearman with p-values and 95 % intervals."""

    pearson_r: float
    pearson_p: float
    pearson_interval: tuple[float, float]
    spearman_rho: float
    spearman_p: float
    spearman_interval: tuple[float, float]
    n: int
    warning: str | None
    """Why these numbers say little, if so."""


@dataclass(frozen=True)
class Correlations:
    """How accuracy goes with each measure of faithfulness, over the seeds of a population."""

    external: Correlation | None
    """Trace accuracy; None without hints."""
    agreement: Mapping[str, Correlation]
    """Agreement on updated nodes, by mechanism."""
    tv: Mapping[str, Correlation]
    """The paper's gap, by mechanism."""

    def listed(self) -> list[tuple[str, Correlation]]:
        """Every correlation that was computed, with what accuracy is held against."""
        traces = [] if self.external is None else [("hint accuracy", self.external)]
        agreements = [(f"agreement with {name}", each) for name, each in self.agreement.items()]
        return traces + agreements + [(f"tv to {name}", each) for name, each in self.tv.items()]


def correlations(
    accuracy: Sequence[float],
    external: Sequence[float],
    agreement: Mapping[str, Sequence[float]],
    tv: Mapping[str, Sequence[float]],
) -> Correlations:
    """Accuracy against everything else, a number a seed each."""
    has_traces = any(math.isfinite(value) for value in external)
    return Correlations(
        external=correlation(accuracy, external) if has_traces else None,
        agreement={name: correlation(accuracy, values) for name, values in agreement.items()},
        tv={name: correlation(accuracy, values) for name, values in tv.items()},
    )


def correlation(x: Sequence[float | None], y: Sequence[float | None]) -> Correlation:
    """How two measures of the same seeds go together. Seeds without both are left out.

    >>> found = correlation([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    >>> round(found.pearson_r, 6), found.n, round(found.pearson_p, 4)
    (1.0, 5, 0.0167)
    """
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    both = np.array([pair for pair in pairs if math.isfinite(sum(pair))])
    count = len(both)
    if count < 3:
        return _nothing(count, f"{count} seeds: no correlation can be computed from fewer than 3")
    if np.ptp(both[:, 0]) == 0 or np.ptp(both[:, 1]) == 0:
        return _nothing(count, "one of the two is the same for all seeds: no correlation exists")
    ranks = stats.rankdata(both, axis=0)
    r, rho = _coefficient(*both.T), _coefficient(*ranks.T)
    return Correlation(
        *(r, _p_value(*both.T), fisher_interval(r, count)),
        *(rho, _p_value(*ranks.T), bonett_wright_interval(rho, count)),
        n=count,
        warning=_warning(count),
    )


def fisher_interval(r: float, count: int) -> tuple[float, float]:
    """The 95 % interval of Pearson's r; NaN with fewer than 4 seeds or where r is 1.

    >>> [round(v, 3) for v in fisher_interval(0.5, 28)]
    [0.156, 0.736]
    """
    return _interval(r, count, 1.0) if abs(r) < 1 - 1e-12 else (math.nan, math.nan)


def bonett_wright_interval(rho: float, count: int) -> tuple[float, float]:
    """The 95 % interval of Spearman's ρ; NaN with fewer than 4 seeds.

    Where all seeds are in one order, ρ is 1 only as far as so few can tell: the interval is that
    of the middle between 1 and the next smaller ρ that there is.

    >>> low, high = bonett_wright_interval(1.0, 4)
    >>> low < 0.5 and high < 1
    True
    """
    largest = 1 - 6 / (count**3 - count)
    rho = max(-largest, min(largest, rho))
    return _interval(rho, count, 1 + rho**2 / 2)


def _interval(r: float, count: int, variance: float) -> tuple[float, float]:
    if count < 4:
        return math.nan, math.nan
    half = stats.norm.ppf(0.975) * math.sqrt(variance / (count - 3))
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def smallest_detectable(count: int) -> float:
    """The smallest \\|r\\| that a test at 5 % can tell from 0 with so many seeds.

    >>> round(smallest_detectable(128), 3)
    0.174
    """
    t = stats.t.ppf(0.975, count - 2)
    return float(t / np.sqrt(count - 2 + t**2))


def _coefficient(x: Float[np.ndarray, "seeds"], y: Float[np.ndarray, "seeds"]) -> float:
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))


def _p_value(x: Float[np.ndarray, "seeds"], y: Float[np.ndarray, "seeds"]) -> float:
    """Two-sided: how often another pairing of the seeds correlates as much."""
    count = len(x)
    if count >= FEW:
        found: Any = stats.pearsonr(x, y)
        return float(found.pvalue)
    orders, exact = _orderings(count)
    centred = (x - x.mean()) / np.linalg.norm(x - x.mean())
    against = (y - y.mean()) / np.linalg.norm(y - y.mean())
    others = np.abs(against[orders] @ centred)
    as_much = int(np.sum(others >= abs(float(centred @ against)) - 1e-12))
    # Of orderings by chance, the one that was seen counts as one more.
    return as_much / len(orders) if exact else (as_much + 1) / (len(orders) + 1)


def _orderings(count: int) -> tuple[Int[np.ndarray, "orderings seeds"], bool]:
    if math.factorial(count) <= MOST_ORDERINGS:
        return np.array(list(permutations(range(count)))), True
    rng = np.random.default_rng(0)
    return rng.permuted(np.tile(np.arange(count), (MOST_ORDERINGS, 1)), axis=1), False


def _warning(count: int) -> str | None:
    if count >= FEW:
        return None
    return (
        f"with {count} seeds only a correlation stronger than {smallest_detectable(count):.2f} "
        "can be told from none"
    )


def _nothing(count: int, warning: str) -> Correlation:
    nan = float("nan")
    return Correlation(nan, nan, (nan, nan), nan, nan, (nan, nan), count, warning)
