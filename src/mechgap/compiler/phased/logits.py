"""Every phase's selection as attention units, silent in all other phases.

The logit of sender j for receiver i is the sum of

    keep · [i = j]                                             phases without a default
    follow · [j is i's pointer]                                phases with a default
    relu(mask · (5/4 flags - 1/4) - sharpness · value_ij - follow · [j is i's pointer])
                                                               a mask of flags
    point · tent(position_i - pointer_j), as wide as the flag of j is set  a mask with `equal`
    - barred · [i = j and i passes its own mask]               a mask with ~edge.loop

where *flags* is 1 if all hold and else at most 0, and ``keep, follow < mask, point``. A relu in a
logit is a leaky relu and a linear term that takes its leak away; the linear terms of all phases are
one unit. So whatever is off in flags that do not hold, is not seen at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.gadgets import LEAK, Unit, linear, merged, tent, tent_of
from mechgap.compiler.phased.keeping import LOOP, excludes_itself, own_flags, own_flags_are_one
from mechgap.compiler.phased.reading import Reading
from mechgap.programs.expressions import Equal, Expression, Name, Not, Side, conjuncts
from mechgap.programs.interpreter import by_position
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
    barred: tuple[float, ...]
    """Of every phase: what is taken from a node that passes its own mask and cannot select
    itself."""
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
    finds_itself: bool = False
    """Whether it is part of a tent over the difference of two positions."""


def attention_units(reading: Reading, gap: float, weights: Weights) -> tuple[LogitUnit, ...]:
    """The units whose sum is the logit."""
    leaked = Affine()
    width, tents = keeping(reading), list[Unit]()
    if width != Affine():  # some phase can end with a node that attends to itself
        tents += tent(reading.position, gap, width, weights.keep, "keep")
    for i, phase in enumerate(reading.program.phases):
        if excludes_itself(phase):
            own = reading.conjunction(own_flags(phase), i)
            tents += tent(reading.position, gap, own, -weights.barred[i], f"not itself {i}")
    units = [LogitUnit(unit, finds_itself=True) for unit in merged(tents)]
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
    if leaked.terms and mends(reading):
        mending = linear(leaked, leaked.range(reading.bounds)[0])
        units.append(LogitUnit(mending, mends=True))
    return tuple(units)


def mends(reading: Reading) -> bool:
    """Whether what rectified units leak is taken away.

    With several phases it must be: what is silent in one phase would speak in the races of others.
    In a single phase it only speaks against those who are not eligible, and what keeps a node at
    itself can be so much larger; but where numbers race, every large weight costs digits.
    """
    (phase, *others) = reading.program.phases
    return bool(others) or (ends_with_itself(phase) and not by_position(reading.program, phase))


def ends_with_itself(phase: Phase) -> bool:
    """Whether a node attends to itself where nobody passes; without a mask everyone does pass."""
    return phase.mask is not None and not phase.followed


def keeps_only_if_it_fails(reading: Reading, phase: Phase) -> bool:
    """Whether a node is drawn to itself only where it does not pass its own mask.

    If it does pass, somebody does, and it competes by its value alone.
    """
    return reading.phases == 1 and own_flags_are_one(reading.program, phase)


def keeping(reading: Reading) -> Affine:
    """1 while a phase runs that can end with a node that attends to itself."""
    if reading.phases == 1 and ends_with_itself(reading.program.phases[0]):
        (phase,) = reading.program.phases
        fails = may_select_itself(phase) and keeps_only_if_it_fails(reading, phase)
        own = reading.conjunction(own_flags(phase), 0) if fails else Affine()
        return Affine({}, 1.0) - own
    others = (i for i, p in enumerate(reading.program.phases) if not ends_with_itself(p))
    return sum((-1.0 * reading.runs(i) for i in others), Affine({}, 1.0))


def may_select_itself(phase: Phase) -> bool:
    """Whether a node can pass its own mask: not if it must both have a flag and not have it."""
    if excludes_itself(phase):
        return False
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
    """The other parts of a mask, but for that a node cannot select itself."""
    parts = conjuncts(phase.mask)
    return [part for part in parts if not isinstance(part, Equal) and part != Not(LOOP)]


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
