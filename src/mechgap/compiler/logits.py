"""Every phase's selection as attention units, silent in all other phases.

The logit of sender j for receiver i is the sum of

    keep · [i = j]                                             phases without a default
    follow · [j is i's pointer]                                phases with a default
    relu(mask · ((1 + s) flags - s) - sharpness · value_ij - follow · [j is i's pointer])
                                                               a mask of flags
    point · tent(position_i - pointer_j), as wide as the flag of j is set  a mask with `equal`
    - barred · [i = j and i passes its own mask]               a mask with ~edge.loop

where *flags* is 1 if all hold and else at most 0, and ``keep, follow < mask, point``. The slack s
is more than flags that do not hold can be off by. A relu in a logit, but for a factor of 0.99, is a
leaky relu and a linear term that takes its leak away; the linear terms of all phases are one unit.
So whatever is off in flags that do not hold, is not seen.

``[i = j]`` is a tent over the difference of positions. With a pre-attention bias it is the bias;
and where positions race, a valley, which takes one unit less.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.gadgets import LEAK, Unit, linear, merged, tent, tent_of, told, valley
from mechgap.compiler.keeping import LOOP, excludes_itself, own_flags, own_flags_are_one
from mechgap.compiler.reading import Reading
from mechgap.compiler.target import Target
from mechgap.programs.expressions import Equal, Expression, Name, Not, Side, conjuncts
from mechgap.programs.phases import Phase
from mechgap.programs.races import by_position


class Itself(Enum):
    """How a logit tells whether a sender is the receiver itself."""

    TENT = "three units over the difference of positions"
    VALLEY = "two units over the difference of positions"
    BIAS = "one unit and the pre-attention bias"


_TENT_AND_SELECTION = 4


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
    slack: float
    """Of every mask: how far its flags may be off where they do not hold."""
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
    itself: Itself | None = None
    """How it tells whether a sender is the receiver itself, if it does."""


def full(reading: Reading) -> float:
    """What a logit gets of a rectified form: all, less the leak where that is taken away."""
    return 1.0 - LEAK if mends(reading) else 1.0


def tells_itself(reading: Reading, target: Target, hidden_size: int) -> Itself:
    """How a network's logits tell it.

    The bias moves every unit alike, and a tent over pointers must not be moved. A valley is for a
    network that has no room for a tent and one more unit; it will do where positions race, and
    nothing but its position can speak for another who is not eligible.
    """
    phases = reading.program.phases
    if target.pre_attention_bias and all(pointing(phase) is None for phase in phases):
        return Itself.BIAS
    if hidden_size < _TENT_AND_SELECTION and len(phases) == 1:
        (phase,) = phases
        if by_position(reading.program, phase) and asked_for_and_barred(phase) is not None:
            return Itself.VALLEY
    return Itself.TENT


def asked_for_and_barred(phase: Phase) -> str | None:
    """The flag that a mask asks of the sender and bars in the receiver, if it is the whole mask.

    Then a node has the flag itself if anyone has it who is not eligible.
    """
    match sorted(conjuncts(phase.mask), key=str):
        case [Name(Side.OTHER, flag), Not(Name(Side.SELF, barred))] if flag == barred:
            return flag if ends_with_itself(phase) else None
    return None


def attention_units(
    reading: Reading, steep: float, weights: Weights, itself: Itself
) -> tuple[LogitUnit, ...]:
    """The units whose sum is the logit."""
    leaked = Affine()
    units = _of_itself(reading, steep, weights, itself)
    for i, phase in enumerate(reading.program.phases):
        equality = pointing(phase)
        rectified = [
            LogitUnit(Unit(form, 1.0, f"follow {i}"))
            for form in _follow(reading, i, phase, weights)
        ]
        if equality is not None:
            units += [LogitUnit(unit) for unit in _point(reading, i, phase, equality, weights)]
        else:
            form = _select(reading, i, phase, weights)
            rectified.insert(0, LogitUnit(Unit(form, 1.0, f"select {i}"), i))
        for part in rectified:
            leaked = leaked - LEAK * part.unit.zeta.side(Side.OTHER, Side.EDGE)
        units += rectified
    if leaked.terms and mends(reading):
        mending = linear(leaked, leaked.range(reading.bounds)[0])
        units.append(LogitUnit(mending, mends=True))
    if itself is Itself.BIAS:  # every unit sees it
        units = [replace(part, unit=part.unit.moved(term(Side.EDGE, LOOP.name))) for part in units]
    return tuple(units)


def _of_itself(reading: Reading, steep: float, weights: Weights, itself: Itself) -> list[LogitUnit]:
    """What keeps a node at itself, and what bars it from selecting itself."""
    parts = [(keeping(reading), weights.keep, "keep")]
    for i, phase in enumerate(reading.program.phases):
        if excludes_itself(phase):
            own = reading.conjunction(own_flags(phase), i)
            parts.append((own, -weights.barred[i], f"not itself {i}"))
    parts = [part for part in parts if part[0] != Affine()]  # a width that is always 0
    match itself:
        case Itself.BIAS:
            return [LogitUnit(u, itself=itself) for u in merged([told(*part) for part in parts])]
        case Itself.VALLEY:
            ((_, weight, label),) = parts
            return [
                LogitUnit(u, itself=itself) for u in valley(reading.position, steep, weight, label)
            ]
    tents = [unit for part in parts for unit in tent(reading.position, steep, *part)]
    return [LogitUnit(unit, itself=itself) for unit in merged(tents)]


def mends(reading: Reading) -> bool:
    """Whether what rectified units leak is taken away.

    With several phases it must be: what is silent in one phase would speak in the races of others.
    In a single phase it only speaks against those who are not eligible, and what keeps a node at
    itself can be so much larger; but where numbers race, or positions on a fine grid, every large
    weight costs digits.
    """
    (phase, *others) = reading.program.phases
    races = not by_position(reading.program, phase) or reading.position_grid is not None
    return bool(others) or (ends_with_itself(phase) and races)


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


def _select(reading: Reading, i: int, phase: Phase, weights: Weights) -> Affine:
    flags = reading.conjunction(flags_of(phase), i)
    lifted = weights.mask[i] * ((1 + weights.slack) * flags - weights.slack)
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
