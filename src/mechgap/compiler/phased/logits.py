"""Every phase's selection as attention units, silent in all other phases.

The logit of sender j for receiver i is the sum of

    keep · [i = j]                                             everyone, in every phase
    follow · [j is i's pointer]                                phases with a default
    relu(mask · (flags that hold - all but one) - sharpness · value_j)     a mask of flags
    point · tent(position_i - pointer_j), as wide as the flag of j is set  a mask with `equal`

where ``keep < follow < mask, point``. A relu in a logit is a leaky relu and a linear term that
takes its leak away; the linear terms of all phases are one unit.
"""

from dataclasses import dataclass

from mechgap.compiler.affine import Affine, affine, term
from mechgap.compiler.gadgets import LEAK, Unit, linear, tent, tent_of
from mechgap.compiler.phased.reading import Reading
from mechgap.programs.expressions import Equal, Expression, Name, Side, conjuncts
from mechgap.programs.phases import Phase


@dataclass(frozen=True)
class Weights:
    """The constants of the logits."""

    keep: float
    follow: float
    sharpness: float
    mask: float
    point: float
    steepness: float
    """How steep tents over pointers are."""


def attention_units(reading: Reading, gap: float, weights: Weights) -> tuple[Unit, ...]:
    """The units whose sum is the logit."""
    units = tent(reading.position, gap, Affine({}, 1.0), weights.keep, "keep")
    leaked = Affine()
    for i, phase in enumerate(reading.program.phases):
        equality = pointing(phase)
        if equality is not None:
            units += _point(reading, i, phase, equality, weights)
            continue
        rectified = [(_select(reading, i, phase, weights), f"select {i}")]
        if phase.default is not None:
            rectified.append((_follow(reading, i, phase, weights), f"follow {i}"))
        for form, label in rectified:
            units.append(Unit(form, 1 / (1 - LEAK), label))
            leaked = leaked + (LEAK / (LEAK - 1)) * form.side(Side.OTHER, Side.EDGE)
    if leaked.terms:
        units.append(linear(leaked, leaked.range(reading.bounds)[0]))
    return tuple(units)


def pointing(phase: Phase) -> Equal | None:
    """The part of a mask that compares a pointer with a position."""
    return next((part for part in conjuncts(phase.mask) if isinstance(part, Equal)), None)


def flags_of(phase: Phase) -> list[Expression]:
    """The other parts of a mask."""
    return [part for part in conjuncts(phase.mask) if not isinstance(part, Equal)]


def _select(reading: Reading, i: int, phase: Phase, weights: Weights) -> Affine:
    value = phase.select.sign * affine(phase.select.expression)
    above = value - value.range(reading.bounds)[0]
    return weights.mask * reading.conjunction(flags_of(phase), i) - weights.sharpness * above


def _follow(reading: Reading, i: int, phase: Phase, weights: Weights) -> Affine:
    assert phase.default is not None
    points_there = term(Side.EDGE, phase.default.name)
    return weights.follow * (points_there + reading.runs(i) - 1.0)


def _point(reading: Reading, i: int, phase: Phase, equality: Equal, weights: Weights) -> list[Unit]:
    assert isinstance(equality.left, Name)
    own = term(Side.SELF, reading.position)
    x = weights.steepness * (own - reading.name(equality.left, i))
    (flag,) = flags_of(phase)
    return tent_of(x, reading.literal(flag, i), weights.point, f"point {i}")
