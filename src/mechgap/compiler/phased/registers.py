"""The state as registers, and registers as hidden units.

A *flag* is restored in every phase. From a form x that is about 0 or less, or about 1 or more, two
units make ``relu(2x - 1/2) - relu(2x - 3/2)``, which is exactly 0 or 1 as long as x is off by at
most a quarter. So flags carry no error from step to step, whatever layer norm adds to them.

A *pointer* that is kept is a difference of positions in two units, positive and negative part. What
is written to it stands in two more units for one phase and is then added; where the program looks
at the pointer's node by default, what it sees replaces what was remembered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.phased.reading import (
    Reading,
    alone,
    held,
    phase_flag,
    refreshed,
    written,
)
from mechgap.compiler.updates import HiddenUnit
from mechgap.programs.expressions import Expression, Name, Not, Side, conjuncts, disjuncts
from mechgap.programs.phases import Phase

STORED = 0.5
"""A flag's units are this much smaller than 0 and 1 would be: the less layer norm sees of them."""
SHUT = 2.0
"""What is subtracted from a difference of positions to force it to 0: more than enough where the
flag that says so is as far off as it may be, and three quarters of what it should be."""
ROOM = 0.25
"""How far off the form of a flag may be."""


@dataclass(frozen=True)
class Flag:
    """A register that is 0 or 1: the sum of its restored forms, of which at most one is 1."""

    name: str
    phase: int
    """While this phase runs it can be set; in all others it is 0."""
    forms: tuple[Affine, ...]

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """Two units for each form."""
        return tuple(
            HiddenUnit(self.name, sign / STORED, STORED * (2.0 * form - threshold))
            for form in self.forms
            for sign, threshold in ((1.0, 0.5), (-1.0, 1.5))
        )


@dataclass(frozen=True)
class Number:
    """A register that is a number: one unit, or two if it can be negative."""

    name: str
    value: Affine
    shut: Affine
    """Where this is 1, the register is 0."""
    signed: bool = True

    @property
    def units(self) -> tuple[HiddenUnit, ...]:
        """Its positive and its negative part."""
        signs = (1.0, -1.0) if self.signed else (1.0,)
        return tuple(
            HiddenUnit(self.name, sign, sign * self.value - SHUT * self.shut) for sign in signs
        )


Register = Flag | Number


def registers(reading: Reading) -> tuple[Register, ...]:
    """All that the network remembers from phase to phase."""
    return (
        *_counter(reading),
        *(r for i, phase in enumerate(reading.program.phases) for r in _signals(reading, i, phase)),
        *(r for pointer in reading.memory for r in _memory(reading, pointer)),
    )


def reads(units: Sequence[HiddenUnit]) -> dict[str, dict[int, float]]:
    """Which units hold a register, with their weights; also of every flag by its first unit."""
    found: dict[str, dict[int, float]] = {}
    for i, unit in enumerate(units):
        found.setdefault(unit.component, {})[i] = unit.sign
        found.setdefault(alone(unit.component), {i: unit.sign / 1.5})
    return found


def _counter(reading: Reading) -> Iterator[Flag]:
    """Which phase runs: each flag is set by the one before it."""
    for phase in range(reading.phases):
        yield Flag(phase_flag(phase), phase, (reading.runs((phase - 1) % reading.phases),))


def _signals(reading: Reading, i: int, phase: Phase) -> Iterator[Register]:
    for name, expression in phase.signal.items():
        if not reading.is_signal_flag(name):
            yield Number(name, term(Side.OTHER, reading.position), Affine(), signed=False)
            continue
        for delay in range(reading.longest_delay(name) + 1):
            earlier = term(Side.SELF, held(name, delay - 1))
            forms = (earlier,) if delay else signal_forms(reading, i, expression)
            yield Flag(held(name, delay), (i + 1 + delay) % reading.phases, forms)


def signal_forms(reading: Reading, i: int, expression: Expression) -> tuple[Affine, ...]:
    """The forms whose restored sum is a signal: one if none of its alternatives can be negative."""
    alternatives = [list(conjuncts(part)) for part in disjuncts(expression)]
    forms = [reading.conjunction(parts, i) for parts in alternatives]
    if all(never_negative(reading, i, parts) for parts in alternatives):
        return (sum(forms, Affine()),)
    return tuple(forms)


def never_negative(reading: Reading, i: int, parts: Sequence[Expression]) -> bool:
    """Whether a conjunction's form is 0 where it does not hold, in all phases.

    So is a signal's; and that of a signal of `other` and not of oneself, where the mask asks for
    it: whoever is selected has it, and by default `other` is the node itself.
    """
    phase = reading.program.phases[i]
    match parts:
        case [Name(_, name)]:
            return reading.is_signal_flag(name)
        case [Name(Side.OTHER, name), Not(Name(Side.SELF, own))]:
            asked = Name(Side.OTHER, name) in conjuncts(phase.mask)
            return name == own and asked and phase.default is None and reading.is_signal_flag(name)
    return False


def busy_flag(phase: Phase) -> str:
    """The flag that a mask asks of its receiver; nodes without it are free to look elsewhere."""
    own = [p.name for p in conjuncts(phase.mask) if isinstance(p, Name) and p.side is Side.SELF]
    return own[0]


def _memory(reading: Reading, pointer: str) -> Iterator[Register]:
    program = reading.program
    looks = [i for i, p in enumerate(program.phases) if p.default and p.default.name == pointer]
    writes = [i for i, p in enumerate(program.phases) if pointer in p.update]
    shut, forget = Affine(), Affine()
    for phase in range(reading.phases):
        if phase not in {*looks, *writes}:
            shut = shut + term(Side.SELF, alone(phase_flag(phase)))
    for phase in looks:
        busy = busy_flag(program.phases[phase])
        before = (phase - 1) % reading.phases
        (form,) = signal_forms(reading, before, program.phases[before].signal[busy])
        yield Flag(refreshed(pointer), phase, (reading.runs(before) - form,))
        shut = shut + term(Side.SELF, alone(held(busy, 0)))
        forget = term(Side.SELF, alone(refreshed(pointer)))
    seen = term(Side.OTHER, reading.position) - term(Side.SELF, reading.position)
    yield Number(written(pointer), seen, shut)
    yield Number(pointer, term(Side.SELF, pointer) + term(Side.SELF, written(pointer)), forget)
