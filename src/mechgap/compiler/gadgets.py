"""Constructions that turn affine forms into units of the attention layer, one each.

An attention unit contributes ``ω · leaky_relu(ζ)`` to the logit, with ζ affine in receiver, sender
and edge. `jax.nn.leaky_relu` has slope 0.01 below zero.
"""

from dataclasses import dataclass

from mechgap.compiler.affine import Affine, term
from mechgap.programs.expressions import Side

LEAK = 0.01


@dataclass(frozen=True)
class Unit:
    """One unit before attention: its pre-activation and its weight in the logit."""

    zeta: Affine
    omega: float
    label: str

    def moved(self, by: Affine) -> "Unit":
        """The same with more before its leaky relu."""
        return Unit(self.zeta + by, self.omega, self.label)


def linear(form: Affine, low: float) -> Unit:
    """A linear term, with an offset that keeps it above zero where leaky relu is the identity."""
    return Unit(form - low, 1.0, "linear")


def tent(position: str, steep: float, width: Affine, weight: float, label: str) -> list[Unit]:
    """`weight` times `width` where receiver and sender are one node, else exactly 0.

    With ``x = steep · (position_i - position_j)``, which is 0 for oneself and at least 1 away from
    it for everyone else: ``lrelu(x + w) - 2 lrelu(x) + lrelu(x -
    w)`` is 0.99 w at 0 and, for widths up to 1, exactly 0 for all others, leak included.
    """
    return tent_of(_apart(position, steep), width, weight, label)


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


def told(width: Affine, weight: float, label: str) -> Unit:
    """With a pre-attention bias of 1 on the diagonal: `weight` times `width` for oneself.

    ``lrelu(width - 1 + [i = j])`` is a width between 0 and 1 for oneself. For all others it is a
    function of the receiver alone, which softmax does not see; but where the width is 0, its leak
    leaves `LEAK` of the weight between oneself and them.
    """
    return Unit(width - 1.0, weight, label)


def valley(position: str, steep: float, weight: float, label: str) -> list[Unit]:
    """0 for oneself, and at most ``-weight`` for all others: two units where a tent has three.

    It is ``-weight · |x|`` with a tent's x, so it goes on falling with the distance. Where nodes
    are selected by position, a selection that is so much sharper does not mind.
    """
    x = _apart(position, steep)
    omega = -weight / (1 - LEAK)
    return [Unit(x, omega, f"{label} right"), Unit(-1.0 * x, omega, f"{label} left")]


def _apart(position: str, steep: float) -> Affine:
    """How far apart two nodes are, at least 1 if they are two."""
    return term(Side.SELF, position, steep) + term(Side.OTHER, position, -steep)
