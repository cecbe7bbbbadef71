"""Through layer norm: a heavy constant unit and a reference unit make it nearly the identity.

One unit, the ballast, is always K; another, the reference, always 0. The norm's own scale and
offset undo what it does to the ballast alone, (x - μ₀) / σ₀. What the other units add to mean and
variance is small beside K. Every value is read as its difference from the reference, so the mean
cancels exactly and only the factor σ₀ / σ is left, a little off 1: the *drift*. Too small a K
drifts, too large a K costs digits (the *noise*); K is chosen to keep their sum smallest.
"""

from dataclasses import dataclass

import numpy as np

from mechgap.compiler.rounding import gamma


@dataclass(frozen=True)
class Ballast:
    """The constants of the construction, and what one step of it can do to a value."""

    weight: float
    """K"""
    scale: float
    """σ₀, the norm's scale"""
    offset: float
    """μ₀, the norm's offset"""
    drift: float
    """The relative error that one norm can add."""
    noise: float
    """The absolute error that one norm can add."""


def ballast(total: float, largest: float, hidden: int, unit: float) -> Ballast:
    """The best ballast where the units sum to at most `total` and none exceeds `largest`."""
    candidates = [
        _with_weight(float(weight), total, largest, hidden, unit)
        for weight in 2.0 ** np.arange(6, 24)
    ]
    return min(candidates, key=lambda b: b.drift * largest + b.noise)


def _with_weight(weight: float, total: float, largest: float, hidden: int, unit: float) -> Ballast:
    offset = weight / hidden
    variance = weight**2 * (hidden - 1) / hidden**2
    # The variance with all units, less that of the ballast alone, is between these two.
    more = total * largest / hidden
    less = (2 * weight * total + total**2) / hidden**2
    change = max(more, less) + 1e-5  # the norm adds 1e-5 to the variance
    drift = 0.5 * (change / variance) / (1 - min(0.5, change / variance)) ** 1.5
    rounding = gamma(hidden + 8, unit)  # the variance is a sum over all units
    noise = gamma(8, unit) * (offset + largest) * 2  # of the value and of the reference
    return Ballast(weight, float(np.sqrt(variance)), offset, drift + rounding, noise)
