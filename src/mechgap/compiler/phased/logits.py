"""Every phase's selection as attention units, silent in all other phases.

The logit of sender j for receiver i is the sum of

    keep · [i = j]                                             phases without a default
    follow · [j is i's pointer]                                phases with a default
    relu(mask · (5/4 flags - 1/4) - sharpness · value_ij - follow · [j is i's pointer])
                                                               a mask of flags
    point · tent(position_i - pointer_j), as wide as the flag of j is set  a mask with `equal`

where *flags* is 1 if all hold and else at most 0, and ``keep, follow < mask, point``. A relu in a
logit is a leaky relu and a linear term that takes its leak away; the linear terms of all phases are
one unit. So whatever is off in flags that do not hold, is not seen at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.gadgets import LEAK, Unit, linear, tent, tent_of
from mechgap.compiler.phased.reading import Reading
from mechgap.programs.expressions import Equal, Expression, Name, Not, Side, conjuncts
from mechgap.programs.phases import Phase


@dataclass(frozen=True)
class Weights:
    """The constants of the logits."""

    keep: float
    follow: float
    sharpness: tuple[float, ...]
    """Of every phase."""
    mask: tuple[float, ...]
    """Of every phase."""
    point: float
    steepness: float
    """How steep tents over pointers are."""


@dataclass(frozen=True)
class LogitUnit:
    """A unit of the logit."""

    unit: Unit
    selects: int | None = None
    """If it is a mask of flags, the phase in which it is above 0 for whoever is eligible."""
    mends: bool = False
    """Whether it takes away what others leak."""


def attention_units(reading: Reading, gap: float, weights: Weights) -> tuple[LogitUnit, ...]:
    """The units whose sum is the logit."""
    units, leaked = list[LogitUnit](), Affine()
    width = keeping(reading)
    if width != Affine():  # some phase can end with a node that attends to itself
        kept = tent(reading.position, gap, width, weights.keep, "keep")
        units += [LogitUnit(unit) for unit in kept]
    for i, phase in enumerate(reading.program.phases):
        equality = pointing(phase)
        rectified = [
            LogitUnit(_rectified(form, f"follow {i}"))
            for form in _follow(reading, i, phase, weights)
        ]
        if equality is not None:
            units += [LogitUnit(unit) for unit in _point(reading, i, phase, equality, weights)]
        else:
            form = _select(reading, i, phase, weights)
            rectified.insert(0, LogitUnit(_rectified(form, f"select {i}"), i))
        for part in rectified:
            seen = part.unit.zeta.side(Side.OTHER, Side.EDGE)
            leaked = leaked + (LEAK / (LEAK - 1)) * seen
        units += rectified
    if leaked.terms:
        mending = linear(leaked, leaked.range(reading.bounds)[0])
        units.append(LogitUnit(mending, mends=True))
    return tuple(units)


def keeping(reading: Reading) -> Affine:
    """1 while a phase runs that has no default but the node itself."""
    defaults = (i for i, p in enumerate(reading.program.phases) if p.followed)
    return sum((-1.0 * reading.runs(i) for i in defaults), Affine({}, 1.0))


def may_select_itself(phase: Phase) -> bool:
    """Whether a node can pass its own mask: not if it must both have a flag and not have it."""
    parts = list(conjuncts(phase.mask))
    asked = {part.name for part in parts if isinstance(part, Name) and part.side is Side.OTHER}
    return not any(
        isinstance(part, Not)
        and isinstance(part.flag, Name)
        and part.flag.side is Side.SELF
        and part.flag.name in asked
        for part in parts
    )


def pointing(phase: Phase) -> Equal | None:
    """The part of a mask that compares a pointer with a position."""
    return next((part for part in conjuncts(phase.mask) if isinstance(part, Equal)), None)


def flags_of(phase: Phase) -> list[Expression]:
    """The other parts of a mask."""
    return [part for part in conjuncts(phase.mask) if not isinstance(part, Equal)]


def value_of(reading: Reading, i: int, phase: Phase) -> Affine:
    """What a phase selects the smallest of, less the smallest that it can be."""
    value = phase.select.sign * reading.value(phase.select.expression, i)
    return value - value.range(reading.bounds)[0]


def _rectified(form: Affine, label: str) -> Unit:
    return Unit(form, 1 / (1 - LEAK), label)


def _select(reading: Reading, i: int, phase: Phase, weights: Weights) -> Affine:
    flags = reading.conjunction(flags_of(phase), i)
    lifted = weights.mask[i] * (1.25 * flags - 0.25)
    form = lifted - weights.sharpness[i] * value_of(reading, i, phase)
    for pointer in phase.followed:  # whoever is eligible gets nothing for being a pointer's node
        form = form - term(Side.EDGE, pointer, weights.follow)
    return form


def _follow(reading: Reading, i: int, phase: Phase, weights: Weights) -> Iterator[Affine]:
    for pointer, flag in phase.followed.items():
        form = term(Side.EDGE, pointer) + reading.runs(i) - 1.0
        if flag is not None:
            form = form + reading.literal(flag, i) - 1.0
        yield weights.follow * form


def _point(reading: Reading, i: int, phase: Phase, equality: Equal, weights: Weights) -> list[Unit]:
    assert isinstance(equality.left, Name)
    own = term(Side.SELF, reading.position)
    x = weights.steepness * (own - reading.name(equality.left, i))
    (flag,) = flags_of(phase)
    return tent_of(x, reading.literal(flag, i), weights.point, f"point {i}")
