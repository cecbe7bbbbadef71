"""Which registers a name means in which phase.

A signal that is set in phase q lives in a chain of registers, one phase in each: ``f@0`` holds it
while phase q + 1 runs, ``f@1`` in the phase after, and so on. Each is zero in all other phases. So
to read a signal in phase p is to ask at the same time whether this is phase p, and what one phase
does is silent in the others. Classes and choices come in as hints and are the same all through the
step, and so is a signal that is a hint, until its own phase is over. A pointer is the position of
the node that was attended to, and is copied from phase to phase for as long as it is read. A count
is one register that stays; a hint that is added to is what came in and what its phase adds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mechgap.compiler.affine import Affine, affine, term
from mechgap.compiler.keeping import LOOP, Keeping, keeping_of
from mechgap.programs.components import Kind
from mechgap.programs.conclusions import Becomes, First, Grows, Linked
from mechgap.programs.expressions import (
    Add,
    Constant,
    Expression,
    Name,
    Not,
    Side,
    Where,
    conjuncts,
)
from mechgap.programs.program import Program
from mechgap.tasks.specs import Type, get_task


def held(signal: str, delay: int) -> str:
    """The register of a signal so many phases after the one that follows its own."""
    return f"{signal}@{delay}"


def place(pointer: str, delay: int) -> str:
    """The register of a pointer so many phases after the one that follows its own."""
    return held(pointer, delay) if delay else pointer


def phase_flag(phase: int) -> str:
    """The register that is set while a phase runs."""
    return f"phase {phase}"


@dataclass(frozen=True)
class Number:
    """What a phase makes of a number: a value where flags hold, else 0."""

    value: Expression
    flags: tuple[Expression, ...]
    added: bool
    """To what the number was before; else, instead of it."""


@dataclass(frozen=True)
class Reading:
    """A program's names as affine forms of inputs and registers."""

    program: Program
    largest_value: float = 1.0
    """Of every number that is made of others."""
    largest_weight: float = 1.0
    """Of every number of an edge."""
    position_grid: float | None = None
    """What all positions are multiples of, if there is such a number."""

    @property
    def position(self) -> str:
        """The input that tells nodes apart."""
        return self.program.position

    @property
    def counts(self) -> Mapping[str, tuple[float, Name]]:
        """The numbers that go up with a flag of one phase, and stay as they are in all others."""
        return self.program.counts if self.phases > 1 else {}

    @property
    def phases(self) -> int:
        """How many phases a hint step has; also the phase in which it concludes."""
        return len(self.program.phases)

    def bounds(self, name: Name) -> tuple[float, float]:
        """The smallest and largest value of an input or register."""
        kinds = {f.name: f.type for f in get_task(self.program.task).inputs}
        if name.side is Side.EDGE:
            is_scalar = kinds.get(self.program.inputs.get(name.name, "")) is Type.SCALAR
            return 0.0, self.largest_weight if is_scalar else 1.0
        component = self.program.components.get(name.name.split("@")[0])
        if component is None or component.kind is not Kind.FLOAT:
            return 0.0, 1.0
        if component.name in self.counts:
            return 0.0, self.largest_value
        number = self.number(component.name)
        start = affine(self.program.starts[component.name]).range(self.bounds)[1]
        if number.value == Name(Side.OTHER, component.name):  # only ever copied
            return 0.0, start
        made_of = affine(number.value)
        if any(at.name in self.program.components for at in made_of.terms):
            return 0.0, self.largest_value
        return 0.0, max(start, made_of.range(self.bounds)[1])

    def number(self, name: str) -> Number:
        """What its phase makes of a number."""
        set_in = self.program.set_in(name)
        assert set_in is not None
        phase = self.program.phases[set_in]
        gates: tuple[Expression, ...] = ()
        if phase.keeps and keeping_of(self.program, phase, name) is Keeping.FIRST:
            gates = tuple(part for part in conjuncts(phase.mask) if part != Not(LOOP))
        match phase.update[name]:
            case Add(Name(Side.SELF, own), Where(flag, then, Constant(0.0))) if own == name:
                return Number(then, tuple(conjuncts(flag)), True)
            case Where(flag, then, Constant(0.0)):
                return Number(then, (*conjuncts(flag), *gates), False)
            case value:
                return Number(value, gates, False)

    def is_signal_flag(self, name: str) -> bool:
        """Whether a name is a flag that lives in registers."""
        component = self.program.components.get(name)
        return component is not None and component.kind is Kind.BOOL

    def comes_as_hint(self, name: str, phase: int) -> bool:
        """Whether a phase reads a signal as the hint that it was at the end of the last step."""
        set_in = self.program.set_in(name)
        is_value = self.program.components[name].kind in {Kind.BOOL, Kind.FLOAT}
        return set_in is not None and phase <= set_in and is_value and self.program.fed_back(name)

    def silent_elsewhere(self, name: str, phase: int) -> bool:
        """Whether what a phase reads as a flag is zero while any other phase runs."""
        return self.phases == 1 or self.in_register(name, phase)

    def in_register(self, name: str, phase: int) -> bool:
        """Whether a phase reads a flag from a register, which is zero in all other phases."""
        return self.is_signal_flag(name) and not self.comes_as_hint(name, phase)

    def delay(self, signal: str, phase: int) -> int:
        """How many registers down the chain a phase reads a signal."""
        set_in = self.program.set_in(signal)
        assert set_in is not None
        return (phase - set_in - 1) % self.phases

    def longest_delay(self, signal: str) -> int:
        """The end of the signal's chain; -1 if nobody reads it."""
        return max(self.delays(signal), default=-1)

    def delays(self, signal: str) -> set[int]:
        """How far down the chain a signal is read."""
        here = {p for p, name in self.reads() if name.name == signal}
        return {self.delay(signal, p) for p in here if not self.comes_as_hint(signal, p)}

    def reads(self) -> Iterator[tuple[int, Name]]:
        """Every name that is read, with the phase that reads it."""
        for i, phase in enumerate(self.program.phases):
            mask = [] if phase.mask is None else [phase.mask]
            for part in [phase.select.expression, *mask, *phase.update.values()]:
                yield from ((i, name) for name in part.walk() if isinstance(name, Name))
        for conclusion in self.program.conclude.values():
            match conclusion:
                case Becomes(conditions):
                    parts = list(conditions.values())
                case First(flags) | Grows(_, flags):
                    parts = list(flags)
                case Linked(links, to, otherwise):
                    parts = [links, to, otherwise]
                case _:
                    parts = [conclusion]
            for part in parts:
                yield from ((self.phases, name) for name in part.walk() if isinstance(name, Name))
        for component in {*self.program.hints.values(), *self.program.output.values()}:
            if self.program.set_in(component.name) is not None:
                yield self.phases, Name(Side.SELF, component.name)

    def name(self, name: Name, phase: int) -> Affine:
        """What a name is worth in a phase."""
        side = Side.SELF if name.side is Side.INIT else name.side
        if self.program.set_in(name.name) is None or self.comes_as_hint(name.name, phase):
            return term(side, name.name)
        if name.name in self.counts:
            return term(side, name.name)
        delay, kind = self.delay(name.name, phase), self.program.components[name.name].kind
        if kind is Kind.POINTER:
            return term(side, place(name.name, delay))
        new = term(side, held(name.name, delay))
        if kind is Kind.FLOAT and self.number(name.name).added:
            return term(side, name.name) + new
        return new

    def value(self, expression: Expression, phase: int) -> Affine:
        """What a number is worth in a phase."""
        form = affine(expression)
        parts = (weight * self.name(name, phase) for name, weight in form.terms.items())
        return sum(parts, Affine({}, form.constant))

    def literal(self, part: Expression, phase: int) -> Affine:
        """A flag or its negation."""
        if isinstance(part, Not):
            return Affine({}, 1.0) - self.literal(part.flag, phase)
        assert isinstance(part, Name)
        return self.name(part, phase)

    def conjunction(self, parts: Sequence[Expression], phase: int) -> Affine:
        """1 where all parts hold in this phase, at most 0 elsewhere and in all other phases."""
        total = Affine({}, 1.0 - len(parts))
        for part in parts:
            total = total + self.literal(part, phase)
        if not any(isinstance(p, Name) and self.in_register(p.name, phase) for p in parts):
            total = total + self.runs(phase) - 1.0
        return total

    def is_given(self, form: Affine) -> bool:
        """Whether a form is never above 1 and reads inputs and hints alone, no register."""
        flags = {c.name for c in self.program.hidden if c.kind in {Kind.BOOL, Kind.CHOICE}}
        classes = {label for c in self.program.hidden for label in c.classes}
        given = {*self.program.inputs, *flags, *classes}
        return {name.name for name in form.terms} <= given and form.range(self.bounds)[1] <= 1.0

    def runs(self, phase: int) -> Affine:
        """1 while a phase runs. The first is the one without a flag, since all begins at 0."""
        if self.phases == 1:
            return Affine({}, 1.0)
        if phase:
            return term(Side.SELF, phase_flag(phase))
        later = (term(Side.SELF, phase_flag(p)) for p in range(1, self.phases))
        return sum((-1.0 * flag for flag in later), Affine({}, 1.0))
