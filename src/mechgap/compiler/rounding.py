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


def form_rounding(form: Affine, bounds: Bounds, flags: Set[str], unit: float, more: int) -> float:
    """How far a computed form can be off, in any order of summation.

    Every term and the constant is added once; a term is rounded itself unless its coefficient is 1
    or -1 or it is a flag, whose product is exact. `more` roundings can come on top.
    """

    def is_exact(name: Name, value: float) -> bool:
        return abs(value) == 1.0 or name.name in flags

    rounded = sum(not is_exact(name, value) for name, value in form.terms.items())
    return gamma(len(form.terms) + 1 + rounded + more, unit) * size(form, bounds)


def update_error(form: Affine, bounds: Bounds, flags: Set[str], unit: float) -> float:
    """How far one update of a component can be off by rounding alone.

    The selected sender's attention is exactly 1, so the form's own terms are added up, and what the
    other senders leak, which is less than one rounding.
    """
    return form_rounding(form, bounds, flags, unit, more=1)


def logit_error(
    units: Sequence[Unit],
    bounds: Bounds,
    flags: Set[str],
    errors: Errors,
    diagonal: float,
    unit: float,
) -> float:
    """How far a logit can be off: each pre-activation, its leaky relu, then the sum of all."""
    total = 0.0
    for part in units:
        inherited = sum(abs(v) * errors.get(at.name, 0.0) for at, v in part.zeta.terms.items())
        before = form_rounding(part.zeta, bounds, flags, unit, more=1 if diagonal else 0)
        extent = size(part.zeta, bounds) + abs(diagonal)
        total += abs(part.omega) * (inherited + before + gamma(len(units) + 2, unit) * extent)
    return total
