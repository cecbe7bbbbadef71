"""Does accuracy say anything about faithfulness? Correlation over a population, with its doubt."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import stats

RESAMPLES = 2000


@dataclass(frozen=True)
class Correlation:
    """Pearson and Spearman with p-values, and 95 % intervals by bootstrap over seeds."""

    pearson_r: float
    pearson_p: float
    pearson_interval: tuple[float, float]
    spearman_rho: float
    spearman_p: float
    spearman_interval: tuple[float, float]
    n: int
    warning: str | None
    """Why these numbers say little, if so."""

    def data(self) -> dict[str, Any]:
        """As plain values; what is not a number is None."""
        return asdict(self)


def correlation(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """How two measures of the same seeds go together. Seeds without both are left out.

    >>> found = correlation([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    >>> round(found.pearson_r, 6), found.n
    (1.0, 5)
    """
    both = np.array([(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a * b)])
    count = len(both)
    if count < 3:
        return _nothing(count, f"{count} seeds: no correlation can be computed from fewer than 3")
    if np.ptp(both[:, 0]) == 0 or np.ptp(both[:, 1]) == 0:
        return _nothing(count, "one of the two is the same for all seeds: no correlation exists")
    pearson: Any = stats.pearsonr(*both.T)
    spearman: Any = stats.spearmanr(*both.T)
    pearson_interval, spearman_interval = _intervals(both)
    return Correlation(
        *(float(pearson.statistic), float(pearson.pvalue), pearson_interval),
        *(float(spearman.statistic), float(spearman.pvalue), spearman_interval),
        n=count,
        warning=_warning(count),
    )


def smallest_detectable(count: int) -> float:
    """The smallest \\|r\\| that a test at 5 % can tell from 0 with so many seeds.

    >>> round(smallest_detectable(128), 3)
    0.174
    """
    t = stats.t.ppf(0.975, count - 2)
    return float(t / np.sqrt(count - 2 + t**2))


def _warning(count: int) -> str | None:
    if count >= 30:
        return None
    return (
        f"with {count} seeds only a correlation stronger than {smallest_detectable(count):.2f} "
        "can be told from none"
    )


def _intervals(
    both: Float[np.ndarray, "seeds 2"],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The middle 95 % of each coefficient over resampled seeds."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(both), (RESAMPLES, len(both)))
    values = both[chosen]
    ranks = stats.rankdata(values, axis=1)
    return _middle(_pearson(values)), _middle(_pearson(ranks))


def _pearson(values: Float[np.ndarray, "resamples seeds 2"]) -> Float[np.ndarray, "resamples"]:
    centred = values - values.mean(1, keepdims=True)
    x, y = centred[..., 0], centred[..., 1]
    with np.errstate(invalid="ignore", divide="ignore"):  # a resample can be one seed only
        return (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))


def _middle(coefficients: Float[np.ndarray, "resamples"]) -> tuple[float, float]:
    low, high = np.nanpercentile(coefficients, [2.5, 97.5])
    return float(low), float(high)


def _nothing(count: int, warning: str) -> Correlation:
    nan = float("nan")
    return Correlation(nan, nan, (nan, nan), nan, nan, (nan, nan), count, warning)
