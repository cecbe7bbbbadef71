"""Worst-case rounding: γ_k = k·u / (1 - k·u) bounds k roundings of relative size u."""

from collections.abc import Callable

from mechgap.programs.expressions import Name

Bounds = Callable[[Name], tuple[float, float]]
"""The smallest and largest value of a name."""


def gamma(roundings: int, unit: float) -> float:
    """The relative error of so many roundings."""
    return roundings * unit / (1 - roundings * unit)
