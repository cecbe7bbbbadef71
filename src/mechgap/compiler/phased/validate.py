"""Every reason why a program with phases cannot compile, before anything is built."""

from collections.abc import Iterator

from mechgap.compiler.phased.logits import flags_of, pointing
from mechgap.compiler.phased.reading import Reading
from mechgap.compiler.phased.registers import never_negative, signal_forms
from mechgap.programs.expressions import (
    Equal,
    Expression,
    Name,
    Not,
    Side,
    Where,
    conjuncts,
    disjuncts,
    sides,
)
from mechgap.programs.language import Kind
from mechgap.programs.phases import Becomes, First, Grows, Phase, PhasedProgram
from mechgap.programs.validate import Problem, refuse
from mechgap.programs.validate_phases import phase_problems


def check_phases(program: PhasedProgram, simplify_decoders: bool) -> None:
    """Refuse a program with problems, all of them at once."""
    refuse(program, list(phase_problems(program)))
    refuse(program, list(construction_problems(program, simplify_decoders)))


def construction_problems(program: PhasedProgram, simplify_decoders: bool) -> Iterator[Problem]:
    """What the constructions cannot do of a program that makes sense."""
    reading = Reading(program)
    if len(program.phases) < 2:
        yield Problem("one-phase", "a single phase is a GraphProgram; write it as one")
    if simplify_decoders:
        yield Problem("simplified-decoders", "pointers with two values need dm-clrs's decoder")
    for i, phase in enumerate(program.phases):
        yield from _selection(reading, i, phase)
        yield from _mask(reading, i, phase)
        yield from _default(reading, i, phase)
        yield from _values(reading, i, phase)
    yield from _conclusions(reading)
    yield from _predictions(reading)


def _selection(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    if phase.select.expression != Name(Side.OTHER, reading.position):
        yield Problem(
            "selection-not-by-position",
            f"phase {i} selects by '{phase.select.expression}'; with phases, nodes are selected by "
            f"other.{reading.position}",
        )


def _mask(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    parts = list(conjuncts(phase.mask))
    for part in parts:
        if not (_is_literal(part) or isinstance(part, Equal)):
            yield Problem(
                "mask-not-a-conjunction",
                f"the mask of phase {i} must be a conjunction of flags, their negations and one "
                f"equal(other.pointer, self.{reading.position}); '{part}' is none of these",
            )
            return
    signals = [p for p in parts if isinstance(p, Name) and reading.is_signal_flag(p.name)]
    if not signals:
        yield Problem("mask-without-signal", f"the mask of phase {i} asks for no signal")
    equality = pointing(phase)
    if equality is None:
        return
    flags = flags_of(phase)
    own = Name(Side.SELF, reading.position)
    asks = [p for p in flags if p in signals and isinstance(p, Name) and p.side is Side.OTHER]
    sender = isinstance(equality.left, Name) and equality.left.side is Side.OTHER
    held = {*reading.memory, *(n for p in reading.program.phases for n in p.signal)}
    if isinstance(equality.left, Name) and equality.left.name not in held:
        yield Problem("unknown-comparison", f"phase {i} compares '{equality.left}', which no node "
                      "holds: it is neither kept nor a signal")  # fmt: skip
    if sum(isinstance(p, Equal) for p in parts) > 1 or not sender or equality.right != own:
        yield Problem(
            "unknown-comparison",
            f"phase {i} can compare once, as in equal(other.pointer, {own}); got '{phase.mask}'",
        )
    if len(flags) != 1 or flags != asks:
        yield Problem(
            "comparison-of-many",
            f"phase {i} compares pointers, and its mask must ask for one signal of `other` beside "
            f"that; got '{phase.mask}'",
        )


def _default(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    if phase.default is None:
        return
    name = phase.default.name
    own = [part for part in conjuncts(phase.mask) if sides(part) == {Side.SELF}]
    before = (i - 1) % reading.phases
    signals = reading.program.phases[before].signal
    if pointing(phase) is not None or phase.update:
        yield Problem("default-elsewhere", f"phase {i} has a default; it can neither compare nor "
                      "update")  # fmt: skip
    if len(own) != 1 or not isinstance(own[0], Name) or own[0].name not in signals:
        yield Problem("default-of-all", f"the mask of phase {i}, which has a default, must ask its "
                      "receiver for one signal of the phase before")  # fmt: skip
    else:
        flag, value = own[0].name, signals[own[0].name]
        alternatives = [list(conjuncts(part)) for part in disjuncts(value)]
        if not all(never_negative(reading, before, parts) for parts in alternatives):
            yield Problem("default-of-all", f"'{flag}' must be signals, or other.f & ~self.f where "
                          f"the mask asks for other.f, to tell who takes the default of phase {i}; "
                          f"got '{value}'")  # fmt: skip
    fed = {c.name for hint, c in reading.program.hints.items()
           if hint not in reading.program.unclaimed}  # fmt: skip
    if name not in reading.memory or name not in fed:
        yield Problem("default-not-a-hint", f"the default of phase {i} must be a pointer that is "
                      f"kept and is a hint; '{name}' is not")  # fmt: skip
    if any(name in phase.update for phase in reading.program.phases[:i]):
        yield Problem("default-too-late", f"'{name}' is the default of phase {i}, and was written "
                      "before in the same step")  # fmt: skip
    if sum(p.default is not None and p.default.name == name for p in reading.program.phases) > 1:
        yield Problem("default-twice", f"'{name}' is the default of two phases")


def _values(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    position = Name(Side.OTHER, reading.position)
    for name, value in phase.update.items():
        if value != position:
            yield Problem("unknown-update", f"'{name}' can only become {position}; got '{value}'")
    for name, value in phase.signal.items():
        delays = {reading.delay(name, p) for p, read in reading.reads() if read.name == name}
        if not reading.is_signal_flag(name):
            if value != position:
                yield Problem("unknown-update", f"'{name}' can only become {position}")
            if delays - {0}:
                yield Problem("read-too-late", f"the pointer '{name}' is a signal, and can only be "
                              "read in the phase after its own")  # fmt: skip
            continue
        if Side.EDGE in sides(value):
            yield Problem(
                "edge-information-needed",
                f"'{name}' reads an edge, and what attention selects is a function of nodes alone",
            )
        literals = [part for choice in disjuncts(value) for part in conjuncts(choice)]
        if not all(_is_literal(part) for part in literals):
            yield Problem("not-alternatives", f"'{name}' must be alternatives (|) of conjunctions "
                          f"(&) of flags; got '{value}'")  # fmt: skip
        elif len(signal_forms(reading, i, value)) > 1 and 0 in delays:
            yield Problem("read-too-early", f"'{name}' has alternatives of several parts, and can "
                          "only be read two phases after its own")  # fmt: skip


def _conclusions(reading: Reading) -> Iterator[Problem]:
    plain = {*reading.memory, reading.position}
    for name, conclusion in reading.program.conclude.items():
        match conclusion:
            case Becomes(conditions):
                flags = [part for c in conditions.values() for part in disjuncts(c)]
            case First(flags) | Grows(_, flags):
                flags = list(flags)
            case Where(flag, Name(Side.SELF, then), Name(Side.SELF, otherwise)):
                flags = [flag]
                if not {then, otherwise} <= plain:
                    yield Problem("unknown-conclusion", f"'{name}' can be a pointer that is kept "
                                  f"or the node itself; got '{conclusion}'")  # fmt: skip
            case _:
                yield Problem("unknown-conclusion", f"'{name}' cannot be '{conclusion}'")
                continue
        for flag in flags:
            if not isinstance(flag, Name):
                yield Problem("unknown-conclusion", f"'{flag}' in '{conclusion}' is not a flag; "
                              "make it a signal")  # fmt: skip
    hints = {c.name for c in reading.program.hints.values()}
    fed_back = {Kind.CLASS, Kind.CHOICE, Kind.TOTAL}
    for component in reading.program.hidden:
        if component.kind in fed_back and component.name not in hints:
            yield Problem(
                "not-a-hint", f"'{component.name}' is remembered as a hint, and must be one"
            )


def _predictions(reading: Reading) -> Iterator[Problem]:
    program = reading.program
    for name, component in {**program.hints, **program.output}.items():
        if component.name not in {*reading.memory, *program.conclude}:
            yield Problem("not-predictable", f"'{name}' is {component}, a signal; predict what is "
                          "concluded, or a pointer that is kept")  # fmt: skip


def _is_literal(part: Expression) -> bool:
    return isinstance(part, Name) or (isinstance(part, Not) and isinstance(part.flag, Name))
