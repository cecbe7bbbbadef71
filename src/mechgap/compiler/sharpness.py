"""How sharp attention must be, and what that guarantees: the constants, from the domain."""

from collections.abc import Mapping, Sequence

import numpy as np

from mechgap.compiler.affine import Affine, affine
from mechgap.compiler.attention import Logits, logits, margin
from mechgap.compiler.ballast import Ballast
from mechgap.compiler.certificate import Certificate
from mechgap.compiler.domain import Domain
from mechgap.compiler.facts import Mask, receiver_cases
from mechgap.compiler.gadgets import (
    TENT_SLACK,
    Unit,
    diagonal_constant,
    linear,
    merged,
    self_flag,
    tent,
)
from mechgap.compiler.rounding import logit_error, update_error
from mechgap.compiler.target import Target
from mechgap.compiler.updates import HiddenUnit
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.expressions import Name, Side
from mechgap.programs.program import Program

LARGEST_LOGIT = 1e8
"""The network adds -1e9 to non-neighbours; logits stay well below that."""


def state_errors(
    program: Program,
    domain: Domain,
    state: Sequence[HiddenUnit],
    norm: Ballast | None,
) -> dict[str, float]:
    """How far each component can be moved off in one step; over several steps errors add up.

    Without layer norm flags are exact: the selected sender's attention is exactly 1, and 0 and 1
    are added without rounding.
    """

    def bounds(name: Name) -> tuple[float, float]:
        return domain.bounds(program, name)

    flags = _flags(program) if norm is None else set()
    errors = {}
    for unit in state:
        each = update_error(unit.before_relu, bounds, flags, domain.rounding)
        if norm is not None:
            each += norm.drift * bounds(Name(Side.SELF, unit.component))[1] + norm.noise
        elif program.components[unit.component].kind is Kind.BOOL:
            each = 0.0
        errors[unit.component] = max(errors.get(unit.component, 0.0), each)
    return errors


def _flags(program: Program) -> set[str]:
    """The names that are always 0 or 1."""
    flags = {c.name for c in program.hidden if c.kind is Kind.BOOL}
    return flags | {ours for ours, theirs in program.inputs.items() if theirs == "s"}


def sharpen(
    program: Program,
    target: Target,
    domain: Domain,
    mask: Mask,
    state: Sequence[HiddenUnit],
    norm: Ballast | None,
) -> tuple[float, list[Unit], Certificate]:
    """Choose the sharpness c, and say what it guarantees.

    Errors grow with c as the differences do, so there is a smallest gap that a dtype can tell
    apart, whatever c. Where values are positions, c is as small as the domain allows. Where they
    are weights, near-ties are a matter of luck, and c is as large as the network's mask allows.
    """

    def bounds(name: Name) -> tuple[float, float]:
        return domain.bounds(program, name)

    flags = _flags(program) if norm is None else set()
    each = state_errors(program, domain, state, norm)
    errors = {name: domain.steps * error for name, error in each.items()}

    def attempt(c: float, m: float) -> tuple[Logits, float, list[Unit], float]:
        selection = logits(program, mask, domain, c, m)
        diagonal, units = _attention_units(program, target, domain, selection, mask)
        error = logit_error(units, bounds, flags, errors, diagonal, domain.rounding)
        return selection, diagonal, units, error

    weighs_edges = any(
        name.side is Side.EDGE for name in affine(program.phases[0].select.expression).terms
    )
    m = margin(domain)
    plain, _, _, per_c = attempt(1.0, 0.0)
    finest = 2 * per_c
    wanted = domain.value_gap
    if wanted is None:
        wanted = 2 * finest if weighs_edges else _position_value_gap(program, domain)
    highest = LARGEST_LOGIT / max(abs(plain.low), abs(plain.high))
    c = highest if weighs_edges else min(highest, 1.5 * m / max(wanted - finest, 1e-30))
    # The windows of the self-bonus need the margin beside what errors can take.
    selection, diagonal, units, error = attempt(c, m + 2 * per_c * c)
    certified = (m + 2 * error) / c
    at_once = logit_error(units, bounds, flags, {}, diagonal, domain.rounding)
    if wanted <= finest or (certified > wanted and domain.value_gap is not None):
        raise InvalidInput(
            f"{program.name} cannot be certified for {target.name} in {domain.dtype} with "
            f"{domain.nodes} nodes and {domain.steps} steps: value_gap must be at least "
            f"{max(finest, certified):.2g}; got {wanted:.2g}. Use float64, fewer nodes or fewer "
            "steps"
        )
    _check_pointers(program, target, domain, errors)
    certificate = Certificate(
        domain=domain,
        sharpness=c,
        mask_weight=selection.mask_weight,
        largest_logit=max(abs(selection.low), abs(selection.high)),
        logit_error=error,
        attention_error=domain.nodes * float(np.exp(-m)),
        errors_each_step=each,
        value_gap_at_start=(m + 2 * at_once) / c,
        value_gap_each_step=2 * (error - at_once) / c / domain.steps,
    )
    return diagonal, units, certificate


def _check_pointers(
    program: Program, target: Target, domain: Domain, errors: Mapping[str, float]
) -> None:
    """A pointer must stay nearer to its node than to any other."""
    for component in program.hidden:
        off = errors[component.name]
        if component.kind is Kind.POINTER and off >= domain.position_gap / 4:
            raise InvalidInput(
                f"{program.name} cannot be certified for {target.name} in {domain.dtype}: after "
                f"{domain.steps} steps '{component.name}' can be off by {off:.2g}, a quarter of "
                f"position_gap = {domain.position_gap:.2g} or more. Use fewer steps or float64"
            )
        if component.kind is Kind.BOOL and off >= TENT_SLACK / 2:
            raise InvalidInput(
                f"{program.name} cannot be certified for {target.name} in {domain.dtype}: after "
                f"{domain.steps} steps '{component.name}' can be off by {off:.2g}; at most "
                f"{TENT_SLACK / 2:.2g} is allowed. Use fewer steps or float64"
            )


def _position_value_gap(program: Program, domain: Domain) -> float:
    """The gap between values that are whole numbers plus positions: that of the smallest term."""
    terms = affine(program.phases[0].select.expression).side(Side.OTHER).terms
    return min(abs(value) for value in terms.values()) * domain.position_gap


def _attention_units(
    program: Program, target: Target, domain: Domain, selection: Logits, mask: Mask
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
        units += tent(program.position, domain.position_gap, one, constant, "self")
    if scale:
        units += tent(program.position, domain.position_gap, width, scale, "keep")
    return 0.0, merged(units)


def _bonus_parts(
    program: Program, mask: Mask, bonus: Affine, fold: bool
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
    touches_zero = min(map(abs, worth)) <= 1e-9 * max(map(abs, worth))
    constant = 0.0 if fold and touches_zero else bonus.constant
    ends = [value - constant for value in worth]
    scale = max(ends, key=abs)
    if any(end / scale < -1e-9 for end in ends):
        raise InvalidInput(f"{program.name}: the bonus {bonus} for oneself has two signs")
    return constant, scale, (1 / scale) * (bonus - constant)
