"""How sharp attention must be, and what that guarantees: the constants, from the domain."""

from collections.abc import Sequence

import numpy as np

from mechgap.compiler.affine import Affine, affine
from mechgap.compiler.attention import Logits, logits, margin
from mechgap.compiler.certificate import Certificate, logit_rounding, value_error
from mechgap.compiler.domain import Domain
from mechgap.compiler.facts import Mask, receiver_cases
from mechgap.compiler.gadgets import (
    Unit,
    diagonal_constant,
    linear,
    merged,
    self_flag,
    tent,
)
from mechgap.compiler.layout import position_input
from mechgap.compiler.target import Target
from mechgap.compiler.updates import HiddenUnit
from mechgap.errors import InvalidInput
from mechgap.programs.expressions import Name, Side
from mechgap.programs.language import GraphProgram

LARGEST_LOGIT = 1e8
"""The network adds -1e9 to non-neighbours; logits stay well below that."""


def sharpen(
    program: GraphProgram,
    target: Target,
    domain: Domain,
    mask: Mask,
    state: Sequence[HiddenUnit],
) -> tuple[Logits, float, list[Unit], Certificate]:
    """Choose the sharpness c, and say what it guarantees.

    Rounding grows with c as the differences do, so there is a smallest gap that a dtype can tell
    apart, whatever c. Where values are positions, c is as small as the domain allows. Where they
    are weights, near-ties are a matter of luck, and c is as large as the network's mask allows.
    """

    def bounds(name: Name) -> tuple[float, float]:
        return domain.bounds(program, name)

    def attempt(c: float, m: float) -> tuple[Logits, float, list[Unit], float]:
        selection = logits(program, mask, domain, c, m)
        diagonal, units = _attention_units(program, target, domain, selection, mask)
        return selection, diagonal, units, logit_rounding(units, bounds, diagonal, domain.rounding)

    weighs_edges = any(name.side is Side.EDGE for name in affine(program.select.expression).terms)
    error = value_error(program, state, bounds, domain.steps, domain.rounding)
    m = margin(domain)
    per_c = attempt(1.0, 0.0)[3]
    finest = 2 * error + 2 * per_c
    wanted = domain.value_gap
    if wanted is None:
        wanted = 2 * finest if weighs_edges else _position_value_gap(program, domain)
    if wanted <= finest:
        raise InvalidInput(
            f"{program.name} cannot be certified for {target.name} in {domain.dtype}: value_gap "
            f"must be above {finest:.2g}, of which rounding of logits takes {2 * per_c:.2g} and of "
            f"values {2 * error:.2g}; got {wanted:.2g}. Use float64, fewer nodes or fewer steps"
        )
    selection = logits(program, mask, domain, 1.0, 0.0)
    largest = max(abs(selection.low), abs(selection.high))
    highest = LARGEST_LOGIT / largest
    c = highest if weighs_edges else min(highest, 1.5 * m / (wanted - finest))
    # The windows of the self-bonus need the margin beside what rounding can take.
    safe = m + 2 * per_c * c
    selection, diagonal, units, rounding = attempt(c, safe)
    largest = max(abs(selection.low), abs(selection.high))
    certified = 2 * error + (m + 2 * rounding) / c
    if certified > wanted * (1 + 1e-6) and domain.value_gap is not None:
        raise InvalidInput(
            f"{program.name} cannot be certified for {target.name} in {domain.dtype}: at the "
            f"largest sharpness that the mask of -1e9 allows ({c:.2g}), value_gap must be at least "
            f"{certified:.2g}; got {wanted:.2g}"
        )
    certificate = Certificate(
        domain=domain,
        sharpness=c,
        mask_weight=selection.mask_weight,
        largest_logit=largest,
        logit_rounding=rounding,
        attention_error=domain.nodes * float(np.exp(-m)),
        value_error=error,
        value_gap=certified,
    )
    return selection, diagonal, units, certificate


def _position_value_gap(program: GraphProgram, domain: Domain) -> float:
    """The gap between values that are whole numbers plus positions: that of the smallest term."""
    terms = affine(program.select.expression).side(Side.OTHER).terms
    return min(abs(value) for value in terms.values()) * domain.position_gap


def _attention_units(
    program: GraphProgram, target: Target, domain: Domain, selection: Logits, mask: Mask
) -> tuple[float, list[Unit]]:
    """The pre-attention bias's diagonal and the units whose sum is the logit."""
    has_bias = target.pre_attention_bias
    bonus = selection.self_bonus
    constant, scale, width = _bonus_parts(program, mask, bonus, fold=not has_bias)
    if has_bias:
        diagonal = diagonal_constant(constant, scale)
        low = selection.low - max(0.0, -diagonal)
        units = [linear(selection.linear, low)]
        if scale:
            units.append(self_flag(width, diagonal, scale, "keep"))
        return diagonal, units
    units = [linear(selection.linear, selection.low)]
    if constant:
        one = Affine({}, 1.0)
        units += tent(position_input(program), domain.position_gap, one, constant, "self")
    if scale:
        units += tent(position_input(program), domain.position_gap, width, scale, "keep")
    return 0.0, merged(units)


def _bonus_parts(
    program: GraphProgram, mask: Mask, bonus: Affine, fold: bool
) -> tuple[float, float, Affine]:
    """The self-bonus as ``constant + scale · width``, with a width between 0 and 1 in every case.

    With `fold` the constant is taken into the width where that leaves it between 0 and 1: a tent
    of varying width carries both.
    """
    worth = [
        bonus.constant + sum(value * case[name.name] for name, value in bonus.terms.items())
        for case in receiver_cases(program, mask)
    ]
    if not bonus.terms:
        return bonus.constant, 0.0, Affine()
    constant = 0.0 if fold and min(worth) * max(worth) == 0.0 else bonus.constant
    ends = [value - constant for value in worth]
    scale = max(ends, key=abs)
    if any(end / scale < -1e-9 for end in ends):
        raise InvalidInput(f"{program.name}: the bonus {bonus} for oneself has two signs")
    return constant, scale, (1 / scale) * (bonus - constant)
