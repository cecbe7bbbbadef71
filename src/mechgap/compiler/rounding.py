"""Worst-case rounding: γ_k = k·u / (1 - k·u) bounds k roundings of relative size u."""

from collections.abc import Callable, Mapping, Sequence, Set

from mechgap.compiler.affine import Affine
from mechgap.compiler.gadgets import Unit
from mechgap.programs.expressions import Name

Bounds = Callable[[Name], tuple[float, float]]
Errors = Mapping[str, float]
"""How far each component can be off."""


def gamma(roundings: int, unit: float) -> float:
    """The relative error of so many roundings."""
    return roundings * unit / (1 - roundings * unit)


def size(form: Affine, bounds: Bounds) -> float:
    """The sum of the absolute values that a form adds up."""
    parts = (abs(value) * max(map(abs, bounds(name))) for name, value in form.terms.items())
    return abs(form.constant) + sum(parts)


def update_error(form: Affine, bounds: Bounds, flags: Set[str], unit: float) -> float:
    """How far one update of a component can be off by rounding alone, in any order of summation.

    The selected sender's attention is 1, so what is added up are the form's terms, its constant and
    what the other senders leak (less than a rounding). A term is rounded itself only if its
    coefficient is neither 1 nor -1; flags are 0 or 1, so theirs is not.
    """

    def is_exact(name: Name, value: float) -> bool:
        return abs(value) == 1.0 or name.name in flags

    rounded = sum(not is_exact(name, value) for name, value in form.terms.items())
    return gamma(len(form.terms) + 2 + rounded, unit) * size(form, bounds)


def form_error(form: Affine, bounds: Bounds, errors: Errors, unit: float) -> float:
    """How far a computed form can be off: its own rounding and its components' errors."""
    inherited = sum(abs(v) * errors.get(name.name, 0.0) for name, v in form.terms.items())
    return inherited + gamma(len(form.terms) + 5, unit) * size(form, bounds)


def logit_error(
    units: Sequence[Unit], bounds: Bounds, errors: Errors, diagonal: float, unit: float
) -> float:
    """How far a logit can be off: each pre-activation, then their sum."""
    total = 0.0
    for part in units:
        extent = size(part.zeta, bounds) + abs(diagonal)
        total += abs(part.omega) * (
            form_error(part.zeta, bounds, errors, unit) + gamma(len(units) + 6, unit) * extent
        )
    return total
