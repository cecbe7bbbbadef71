"""Repeated measures of the same seeds: a linear model with an intercept of each seed's own.

    y = x β + step effects + u(seed) + noise,   u ~ N(0, λσ²),  noise ~ N(0, σ²)

Between seeds and within a seed are told apart by it: seeds differ by u, and β says how y goes with
x when a seed is looked at again. For a given λ the estimate is generalised least squares in closed
form; λ is the one with the largest restricted likelihood.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.optimize import minimize_scalar

_LARGEST_LOG_RATIO = 12.0


@dataclass(frozen=True)
class MixedModel:
    """The slope of one measure on another, at equal steps, with seeds as random intercepts."""

    slope: float
    interval: tuple[float, float]
    p: float
    between_share: float
    """Of the variance that steps and slope leave, how much lies between seeds."""
    seeds: int
    rows: int


def mixed_model(
    y: Sequence[float], x: Sequence[float], steps: Sequence[int], seeds: Sequence[int]
) -> MixedModel | None:
    """Fit the model; None where there are too few rows or nothing varies.

    >>> x = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    >>> y = [1.0, 3.0, 2.0, 4.1, 5.0, 6.9]
    >>> found = mixed_model(y, x, [1] * 6, [0, 0, 1, 1, 2, 2])
    >>> found is not None and abs(found.slope - 2) < 0.1 and found.between_share > 0.9
    True
    """
    at, of = np.asarray(steps), np.asarray(seeds)
    kinds = np.unique(at)
    design = np.column_stack([np.asarray(x, float), at[:, None] == kinds])
    target = np.asarray(y, float)
    who = (of[:, None] == np.unique(of)).astype(float)
    spare = len(target) - design.shape[1]
    varies = np.linalg.matrix_rank(design) == design.shape[1]
    if spare < 2 or who.shape[1] < 2 or not varies:
        return None

    def lost(log_ratio: float) -> float:
        return -_restricted_likelihood(_Fit.of(design, target, who, math.exp(log_ratio)))

    bounds = (-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO)
    best: Any = minimize_scalar(lost, bounds=bounds, method="bounded")
    fit = _Fit.of(design, target, who, math.exp(float(best.x)))
    deviation = math.sqrt(fit.noise * float(np.linalg.inv(fit.gram)[0, 0]))
    if not deviation > 0:
        return None
    slope = float(fit.coefficients[0])
    half = float(stats.norm.ppf(0.975)) * deviation
    ratio = math.exp(float(best.x))
    return MixedModel(
        slope=slope,
        interval=(slope - half, slope + half),
        p=float(2 * stats.norm.sf(abs(slope) / deviation)),
        between_share=ratio / (1 + ratio),
        seeds=who.shape[1],
        rows=len(target),
    )


@dataclass(frozen=True)
class _Fit:
    """Generalised least squares for one ratio of the variances."""

    gram: Float[np.ndarray, "terms terms"]
    """XᵀV⁻¹X, with V in units of the noise."""
    coefficients: Float[np.ndarray, "terms"]
    noise: float
    """σ², the restricted estimate."""
    spare: int
    log_det: float
    """Of V."""

    @staticmethod
    def of(
        design: Float[np.ndarray, "rows terms"],
        target: Float[np.ndarray, "rows"],
        who: Float[np.ndarray, "rows seeds"],
        ratio: float,
    ) -> "_Fit":
        # V is I + λ 1 1ᵀ for each seed, whose inverse takes λ / (1 + nλ) of a seed's sum away.
        counts = who.sum(0)
        weight = ratio / (1 + counts * ratio)

        def solved(values: np.ndarray) -> np.ndarray:
            return values - who @ ((weight * (who.T @ values).T).T)

        gram = design.T @ solved(design)
        coefficients = np.linalg.solve(gram, design.T @ solved(target))
        left = target - design @ coefficients
        spare = len(target) - design.shape[1]
        noise = float(left @ solved(left)) / spare
        return _Fit(gram, coefficients, noise, spare, float(np.log1p(counts * ratio).sum()))


def _restricted_likelihood(fit: _Fit) -> float:
    """Up to a constant."""
    _, log_gram = np.linalg.slogdet(fit.gram)
    return -0.5 * (fit.spare * math.log(max(fit.noise, 1e-300)) + fit.log_det + float(log_gram))
