"""The state as registers, and registers as hidden units.

A *flag* is restored in every phase. From a form x that is about 0 or less, or about 1 or more, two
units make ``relu(2x - 1/2) - relu(2x - 3/2)``, which is exactly 0 or 1 as long as x is off by at
most a quarter. So flags carry no error from step to step, whatever layer norm adds to them. A flag
that is made of inputs and hints alone, which are as good as restored, and is never above 1 is one
unit, ``relu(x)``.

A *pointer* is the position of the node attended to, whatever phase runs; only what the pointer's
own phase leaves there is read. To be read later it is copied in every phase. One that is written
once and then kept is held as its difference from the node's own position; and so is one that nodes
copy from each other, since it must begin at the node itself.

Whether a node attends to itself (`edge.loop`) is what two more forms take away from a flag: that
the position seen is above the node's own, and that it is below. Where it is the node's own both
are exactly 0, so the flag is as exact as if they were not there.

A *number* x where some flags hold, else 0, is ``relu(x) - relu(x - F f) + relu(-F f)`` with f the
flags' conjunction: where it is 1 the last two are exactly 0, and nothing large is added to x. The
third is for an f below 0, and is left out where that cannot be. An input or hint of the node itself
that must not be set is no part of f but taken from all of them, times F: then all are exactly 0.

A *count* is one unit, itself and so much for a flag, which is zero in all phases but its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log2

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.keeping import LOOP, Keeping, keeping_of, pointers_from_the_start
from mechgap.compiler.reading import Reading, held, phase_flag, place
from mechgap.programs.components import Kind
from mechgap.programs.expressions import Expression, Name, Not, Side, conjuncts, disjuncts
from mechgap.programs.phases import Phase

STORED = 0.5
"""A flag's units are this much smaller than 0 and 1 would be: the less layer norm sees of them."""
ROOM = 0.25
"""How far off the form of a flag may be."""


@dataclass(frozen=True)
class HiddenUnit:
    """One unit of the hidden state: its register, its weight there, and what goes into relu."""

    component: str
    sign: float
    """The register is the sum of its units, each times this."""
    before_relu: Affine

    @property
    def label(self) -> str:
        """The unit's name in figures."""
        name = self.component.removesuffix("@0")
        return name if self.sign > 0 else f"-{name}"


@dataclass(frozen=True)
class Flag:
    """A register that is 0 or 1: the sum of its restored forms, of which at most one is 1."""

    name: str
    phase: int
    """While this phase runs it can be set; in all others it is 0."""
    forms: tuple[Affine, ...]
    subtracted: tuple[Affine, ...] = ()
    """Restored forms that are taken away; where one is 1, so is one of the others."""
    restored: bool = True
    """Whether what its forms are off by is taken away."""

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """Two units for each form that is restored, else one."""
        if not self.restored:
            return tuple(HiddenUnit(self.name, 1.0, form) for form in self.forms)
        signed = [
            *((1.0, form) for form in self.forms),
            *((-1.0, form) for form in self.subtracted),
        ]
        return tuple(
            HiddenUnit(self.name, sign * way / STORED, STORED * (2.0 * form - threshold))
            for way, form in signed
            for sign, threshold in ((1.0, 0.5), (-1.0, 1.5))
        )


@dataclass(frozen=True)
class Place:
    """A register that is a position."""

    name: str
    value: Affine

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """One unit: positions are at least 0."""
        return (HiddenUnit(self.name, 1.0, self.value),)


@dataclass(frozen=True)
class Moved:
    """A register that is a position, held as its difference from the node's own.

    It begins at the node itself, since all begins at 0.
    """

    name: str
    position: str
    value: Affine
    """What is seen."""
    stays: bool
    """Whether what is seen is added to what it was."""

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """One unit if it lies above the node's own position, another if below."""
        own = term(Side.SELF, self.position)
        difference = self.value - own
        if self.stays:
            difference = difference + (term(Side.SELF, self.name) - own)
        return (
            HiddenUnit(self.name, 1.0, difference),
            HiddenUnit(self.name, -1.0, -1.0 * difference),
        )


@dataclass(frozen=True)
class Gated:
    """A register that is a number of at least 0 where some flags hold, and else 0."""

    name: str
    value: Affine
    holds: Affine
    """1 where the flags hold, else at most 0."""
    blocks: Affine
    """Exactly 0 where a node is not blocked, else at least 1."""
    force: float
    """A power of two, well above the value."""
    lowest: float
    """What `holds` can fall to."""

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """The value, and one or two units that take it away where the flags do not hold."""
        taken, blocked = -self.force * self.holds, -self.block * self.blocks
        units = (
            HiddenUnit(self.name, 1.0, self.value + blocked),
            HiddenUnit(self.name, -1.0, self.value + taken + blocked),
            HiddenUnit(self.name, 1.0, taken + blocked),
        )
        return units if self.lowest < 0 else units[:2]

    @property
    def block(self) -> float:
        """What is taken where a node is blocked: more than the value and all that `holds` adds."""
        return self.force * (1.0 - self.lowest)

    @property
    def is_exactly_zero(self) -> bool:
        """Whether it is, where the flags do not hold: then no two large terms cancel."""
        return self.holds.constant == 0 and len(self.holds.terms) == 1


@dataclass(frozen=True)
class Sum:
    """A register that is a number of at least 0, whatever flags hold."""

    name: str
    value: Affine

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """One unit."""
        return (HiddenUnit(self.name, 1.0, self.value),)


@dataclass(frozen=True)
class Count:
    """A register that goes up by so much with a flag, and else stays as it is."""

    name: str
    by: float
    flag: Affine

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """One unit: counts begin at 0."""
        return (HiddenUnit(self.name, 1.0, term(Side.SELF, self.name) + self.by * self.flag),)


Register = Flag | Place | Moved | Gated | Sum | Count


def registers(reading: Reading, gap: float) -> tuple[Register, ...]:
    """All that the network remembers from phase to phase; positions are at least `gap` apart."""
    return (
        *_counter(reading),
        *(
            register
            for i, phase in enumerate(reading.program.phases)
            for register in _signals(reading, i, phase, gap)
        ),
    )


def _counter(reading: Reading) -> Iterator[Flag]:
    """Which phase runs: each flag is set by the one before it; the first phase has none."""
    for phase in range(1, reading.phases):
        yield Flag(phase_flag(phase), phase, (reading.runs(phase - 1),))


def _signals(reading: Reading, i: int, phase: Phase, gap: float) -> Iterator[Register]:
    for name, expression in phase.update.items():
        kind = reading.program.components[name].kind
        once = phase.keeps and keeping_of(reading.program, phase, name) is Keeping.ONCE
        if reading.longest_delay(name) < 0 and name not in reading.counts:
            continue  # nobody reads it
        if once or name in pointers_from_the_start(reading.program):
            yield Moved(name, reading.position, reading.value(expression, i), stays=once)
        elif kind is Kind.POINTER:
            yield Place(name, term(Side.OTHER, reading.position))
            for delay in range(1, reading.longest_delay(name) + 1):
                yield Place(place(name, delay), term(Side.SELF, place(name, delay - 1)))
        elif name in reading.counts:
            by, flag = reading.counts[name]
            yield Count(name, by, reading.name(flag, i))
        elif kind is Kind.FLOAT:
            yield _number(reading, i, name)
        else:
            yield from _chain(reading, i, name, expression, gap)


def _chain(
    reading: Reading, i: int, name: str, expression: Expression, gap: float
) -> Iterator[Flag]:
    """A flag while each of the phases runs that read it."""
    for delay in range(reading.longest_delay(name) + 1):
        lives = (i + 1 + delay) % reading.phases
        if delay:
            yield Flag(held(name, delay), lives, (term(Side.SELF, held(name, delay - 1)),))
        else:
            subtracted = tuple(loop_forms(reading, i, expression, gap))
            forms = signal_forms(reading, i, expression)
            restored = bool(subtracted) or not all(map(reading.is_given, forms))
            yield Flag(held(name, 0), lives, forms, subtracted, restored)


def _number(reading: Reading, i: int, name: str) -> Gated | Sum:
    number = reading.number(name)
    value = reading.value(number.value, i)
    if not number.flags:
        return Sum(held(name, 0), value)
    largest = value.range(reading.bounds)[1]
    blocking = [part for part in number.flags if _blocks(reading, i, part)]
    holds = reading.conjunction([part for part in number.flags if part not in blocking], i)
    blocks = (Affine({}, 1.0) - reading.literal(part, i) for part in blocking)
    force = 2.0 ** ceil(log2(1.5 * largest)) if largest > 0 else 1.0  # a number may stay 0
    lowest = min(0.0, holds.range(reading.bounds)[0])
    return Gated(held(name, 0), value, holds, sum(blocks, Affine()), force, lowest)


def _blocks(reading: Reading, i: int, part: Expression) -> bool:
    """Whether a part of a conjunction is that the node itself lacks an input or hint."""
    match part:
        case Not(Name(Side.SELF | Side.INIT)):
            return reading.is_given(reading.literal(part, i))
    return False


def alternatives(expression: Expression) -> list[list[Expression]]:
    """A disjunction's conjunctions. Each excludes the single flags before it."""
    found: list[list[Expression]] = []
    earlier: list[Expression] = []
    for parts in ([*conjuncts(part)] for part in disjuncts(expression)):
        found.append([*parts, *(Not(flag) for flag in earlier)])
        earlier += parts if len(parts) == 1 and _is_plain(parts[0]) else []
    return found


def exclusive(expression: Expression) -> bool:
    """Whether at most one of a disjunction's alternatives can hold, by what they exclude."""
    *earlier, _ = disjuncts(expression)
    return all(map(_is_plain, earlier))


def _is_plain(part: Expression) -> bool:
    """Whether a part is a flag whose negation can be asked for."""
    return isinstance(part, Name) and part != LOOP


def signal_forms(reading: Reading, i: int, expression: Expression) -> tuple[Affine, ...]:
    """The forms whose restored sum is a signal: one if none of its alternatives can be negative.

    Where a node keeps, or selects somebody who must have a flag, ``self.f | other.f`` is `other.f`.
    """
    phase = reading.program.phases[i]
    match list(disjuncts(expression)):
        case [Name(Side.SELF, own), Name(Side.OTHER, name) as asked]:
            passed_on = own == name and asked in conjuncts(phase.mask)
            if passed_on and phase.keeps and reading.silent_elsewhere(name, i):
                return (reading.name(asked, i),)
    plain = [list(conjuncts(part)) for part in disjuncts(expression)]
    if all(never_negative(reading, i, parts) for parts in plain):
        return (sum((reading.conjunction(parts, i) for parts in plain), Affine()),)
    return tuple(
        reading.conjunction([part for part in parts if part != LOOP], i)
        for parts in alternatives(expression)
    )


def loop_forms(reading: Reading, i: int, expression: Expression, gap: float) -> Iterator[Affine]:
    """What is taken away from a signal's forms where they ask for `edge.loop` and it is not set."""
    steep = 2.0 ** ceil(log2(1 / gap))
    away = term(Side.OTHER, reading.position) - term(Side.SELF, reading.position)
    for parts in alternatives(expression):
        if LOOP in parts:
            holds = reading.conjunction([part for part in parts if part != LOOP], i)
            yield steep * away + 2 * steep * (holds - 1.0)
            yield -steep * away + 2 * steep * (holds - 1.0)


def never_negative(reading: Reading, i: int, parts: Sequence[Expression]) -> bool:
    """Whether a conjunction's form is 0 where it does not hold, in all phases.

    So is a signal's; and that of a signal of `other` and not of oneself, where the mask asks for
    it: whoever is selected has it, and by default `other` is the node itself.
    """
    phase = reading.program.phases[i]
    match parts:
        case [Name(_, name) as flag]:
            return flag != LOOP and reading.silent_elsewhere(name, i)
        case [Name(Side.OTHER, name), Not(Name(Side.SELF, own))]:
            asked = Name(Side.OTHER, name) in conjuncts(phase.mask)
            silent = reading.silent_elsewhere(name, i)
            return name == own and asked and not phase.followed and silent
    return False
