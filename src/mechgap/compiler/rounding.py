"""Worst-case rounding: γ_k = k·u / (1 - k·u) bounds k roundings of relative size u."""

from collections.abc import Callable
from math import frexp

from mechgap.programs.expressions import Name

Bounds = Callable[[Name], tuple[float, float]]
"""The smallest and largest value of a name."""


def gamma(roundings: int, unit: float) -> float:
    """The relative error of so many roundings."""
    return roundings * unit / (1 - roundings * unit)


def last_digit(value: float) -> float:
    """The largest power of two that a number is a multiple of; infinity for 0.

    >>> last_digit(0.75), last_digit(-12.0)
    (0.25, 4.0)
    """
    if value == 0.0:
        return float("inf")
    digits, exponent = frexp(value)
    whole = int(abs(digits) * 2**53)
    return 2.0 ** (exponent - 53) * (whole & -whole)
