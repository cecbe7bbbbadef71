"""Constructions that turn affine forms into units of the attention layer, one each.

An attention unit contributes ``ω · leaky_relu(ζ)`` to the logit, with ζ affine in receiver, sender
and edge. `jax.nn.leaky_relu` has slope 0.01 below zero.
"""

from dataclasses import dataclass

from mechgap.compiler.affine import Affine, term
from mechgap.programs.expressions import Side

LEAK = 0.01
TENT_SLACK = 2**-6
"""How much steeper than 1 / gap a tent is, so that rounding cannot reach a neighbour."""


@dataclass(frozen=True)
class Unit:
    """One unit before attention: its pre-activation and its weight in the logit."""

    zeta: Affine
    omega: float
    label: str


def linear(form: Affine, low: float) -> Unit:
    """A linear term, with an offset that keeps it above zero where leaky relu is the identity."""
    return Unit(form - low, 1.0, "linear")


def tent(position: str, gap: float, width: Affine, weight: float, label: str) -> list[Unit]:
    """`weight` times `width` where receiver and sender are one node, else exactly 0.

    With ``x = (position_i - position_j) / gap`` (a little more, for rounding), which is 0 for
    oneself and at least 1 away from it for everyone else: ``lrelu(x + w) - 2 lrelu(x) + lrelu(x -
    w)`` is 0.99 w at 0 and, for widths up to 1, exactly 0 for all others, leak included.
    """
    steep = (1 + TENT_SLACK) / gap
    x = term(Side.SELF, position, steep) + term(Side.OTHER, position, -steep)
    return tent_of(x, width, weight, label)


def tent_of(x: Affine, width: Affine, weight: float, label: str) -> list[Unit]:
    """`weight` times ``width - |x|`` where that is above 0, else exactly 0."""
    omega = weight / (1 - LEAK)
    return [
        Unit(x + width, omega, f"{label} right"),
        Unit(x, -2 * omega, f"{label} centre"),
        Unit(x - width, omega, f"{label} left"),
    ]


def merged(units: list[Unit]) -> list[Unit]:
    """Units with the same pre-activation, as one."""
    found: list[Unit] = []
    for unit in units:
        for i, known in enumerate(found):
            if known.zeta == unit.zeta:
                found[i] = Unit(known.zeta, known.omega + unit.omega, known.label)
                break
        else:
            found.append(unit)
    return [unit for unit in found if unit.omega != 0.0]


def self_flag(width: Affine, bias: float, weight: float, label: str) -> Unit:
    """With the pre-attention bias ``B = bias · I``: `weight` times a flag on the diagonal.

    ``lrelu(bias · (flag - 1) + B)`` is ``bias · flag`` for oneself. For all others it depends on
    the receiver alone, so softmax does not see it; the leak adds ``0.01 · bias · (1 - flag)`` to
    the difference, which `diagonal_constant` accounts for.
    """
    return Unit(bias * (width - 1.0), weight / (bias * (1 - LEAK)), label)


def diagonal_constant(self_bonus_constant: float, flag_weight: float) -> float:
    """The bias B's size, given what the leak of `self_flag` adds to the diagonal."""
    return self_bonus_constant - flag_weight * LEAK / (1 - LEAK)
