"""Every reason why a program cannot compile to a target, before anything is built."""

from collections.abc import Iterator, Mapping

from mechgap.compiler.affine import NotAffine, affine
from mechgap.compiler.keeping import (
    LOOP,
    copies_a_pointer,
    excludes_itself,
    keeping_of,
    own_flags,
    own_flags_are_one,
    pointers_from_the_start,
)
from mechgap.compiler.logits import flags_of, pointing
from mechgap.compiler.reading import Reading
from mechgap.compiler.registers import exclusive, signal_forms
from mechgap.compiler.target import Target
from mechgap.programs.components import Kind
from mechgap.programs.conclusions import Becomes, First, Grows, Linked
from mechgap.programs.expressions import (
    Constant,
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
from mechgap.programs.phases import Phase
from mechgap.programs.program import Program
from mechgap.programs.validate import Problem
from mechgap.tasks.specs import Location, get_task


def compile_problems(program: Program, target: Target, simplify_decoders: bool) -> list[Problem]:
    """Every reason why a program that makes sense cannot compile."""
    return [
        *target_problems(program, target),
        *construction_problems(program),
        *(_simplified(program) if simplify_decoders else ()),
    ]


def target_problems(program: Program, target: Target) -> Iterator[Problem]:
    """What a target cannot do of a program that makes sense."""
    if program.sees_all and not target.full_attention:
        yield Problem(
            "full-attention-needed",
            f"its nodes look at all nodes, and in {target.name} attention follows edges: there a "
            "choice among all nodes is a hint, and comes one hint late. Use full",
        )
    if target.full_attention and not program.sees_all:
        yield Problem(
            "neighbours-only",
            f"its nodes look at their neighbours, and in {target.name} attention goes to all nodes."
            " Ask for edge.… in every mask that needs it, and say sees_all=True",
        )
    remedy = "full" if program.sees_all else "general or paper"
    for i, phase in enumerate(program.phases):
        for name, value in phase.update.items():
            is_number = program.components[name].kind is Kind.FLOAT
            if is_number and Side.EDGE in sides(value) and not target.edge_information:
                yield Problem(
                    "edge-information-needed",
                    f"'{name}' in phase {i} reads an edge, and in {target.name} the values that "
                    f"attention selects are a function of nodes alone. Use {remedy}",
                )


def _simplified(program: Program) -> Iterator[Problem]:
    """A simplified decoder takes one value, and is too soft for a pointer that is followed."""
    followed = {name for phase in program.phases for name in phase.followed}
    for name, component in {**program.hints, **program.output}.items():
        conclusion = program.conclude.get(component.name)
        if component.kind is not Kind.POINTER:
            continue
        if isinstance(conclusion, Where | Linked):
            yield Problem("simplified-decoders", f"'{name}' is one of two values, which needs "
                          "dm-clrs's decoder")  # fmt: skip
        elif component.name in followed:
            yield Problem("simplified-decoders", f"'{name}' is followed, which needs dm-clrs's "
                          "decoder")  # fmt: skip


def construction_problems(program: Program) -> Iterator[Problem]:
    """What the constructions cannot do of a program that makes sense."""
    reading = Reading(program)
    yield from _starts(reading)
    for i, phase in enumerate(program.phases):
        yield from _keeping(program, i, phase)
        yield from _selection(reading, i, phase)
        yield from _mask(reading, i, phase)
        yield from _default(reading, i, phase)
        yield from _values(reading, i, phase)
    yield from _conclusions(reading)
    yield from _predictions(reading)


def _starts(reading: Reading) -> Iterator[Problem]:
    """Registers start at 0; what comes as a hint can start at anything."""
    program = reading.program
    for component in program.hidden:
        start = program.starts.get(component.name)
        if component.kind is not Kind.FLOAT or start is None or start == Constant(0.0):
            continue
        if component.name in reading.counts or not program.fed_back(component.name):
            yield Problem("unknown-start", f"'{component.name}' is not a hint, and must start at "
                          f"0; got '{start}'")  # fmt: skip
        elif _lowest(start, reading) < 0:
            yield Problem("unknown-start", f"'{component.name}' must not start below 0; got "
                          f"'{start}'")  # fmt: skip


def _lowest(start: Expression, reading: Reading) -> float:
    try:
        return affine(start).range(reading.bounds)[0]
    except NotAffine:
        return float("-inf")


def _keeping(program: Program, i: int, phase: Phase) -> Iterator[Problem]:
    for name, value in phase.update.items() if phase.keeps else ():
        if keeping_of(program, phase, name) is None:
            yield Problem("cannot-keep", f"'{name} = {value}' in phase {i} cannot be kept where "
                          "nobody passes the mask: it is neither the same formula for the node "
                          "itself, nor a pointer that is written once or in every step after the "
                          "first")  # fmt: skip


def _selection(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    known = {Side.OTHER: {reading.position}, Side.EDGE: set(reading.program.inputs)}
    known[Side.OTHER] |= _numbers(reading, i) | pointers_from_the_start(reading.program)
    if not _sums(phase.select.expression, known):
        yield Problem(
            "unknown-selection",
            f"phase {i} selects by '{phase.select.expression}'; nodes are selected by "
            f"other.{reading.position}, or by a sum of other's numbers that are hints (with one "
            "phase: of any, and of pointers that nodes copy) and of the edge's inputs",
        )


def _numbers(reading: Reading, i: int) -> set[str]:
    """The numbers that a phase can read: those that come as hints, or from the step before."""
    floats = {c.name for c in reading.program.hidden if c.kind is Kind.FLOAT}
    own = floats - {*reading.counts} if reading.phases == 1 else set()
    return own | {name for name in floats if reading.comes_as_hint(name, i)}


def _sums(expression: Expression, known: Mapping[Side, set[str]]) -> bool:
    """Whether an expression is a sum of known names, times numbers."""
    try:
        terms = affine(expression).terms
    except NotAffine:
        return False
    return bool(terms) and all(name.name in known.get(name.side, ()) for name in terms)


def _mask(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    parts = list(conjuncts(phase.mask))
    for part in parts:
        if part == LOOP or not (_is_literal(part) or isinstance(part, Equal) or part == Not(LOOP)):
            yield Problem(
                "mask-not-a-conjunction",
                f"the mask of phase {i} must be a conjunction of flags, their negations and one "
                f"equal(other.pointer, self.{reading.position}); '{part}' is none of these",
            )
            return
    if excludes_itself(phase) and pointing(phase) is not None:
        yield Problem("loop-and-comparison", f"phase {i} compares pointers, and cannot also ask "
                      "for ~edge.loop")  # fmt: skip
    elif excludes_itself(phase) and reading.phases > 1:
        yield Problem("loop-among-phases", f"phase {i} asks for ~edge.loop, which only a program "
                      "of one phase can")  # fmt: skip
    elif excludes_itself(phase) and not own_flags_are_one(reading.program, phase):
        listed = " & ".join(map(str, own_flags(phase)))
        yield Problem("loop-among-many", f"phase {i} asks for ~edge.loop, and to pass its own mask "
                      f"a node would have to be '{listed}': that can be one flag, or one and not "
                      "the input that it starts as")  # fmt: skip
    signals = [
        p
        for p in parts
        if isinstance(p, Name)
        and reading.is_signal_flag(p.name)
        and reading.silent_elsewhere(p.name, i)
    ]
    equality = pointing(phase)
    if equality is None:
        return
    if not signals:
        yield Problem("mask-without-signal", f"the mask of phase {i} asks for no signal")
    flags = flags_of(phase)
    own = Name(Side.SELF, reading.position)
    asks = [p for p in flags if p in signals and isinstance(p, Name) and p.side is Side.OTHER]
    sender = isinstance(equality.left, Name) and equality.left.side is Side.OTHER
    held = {name for phase in reading.program.phases for name in phase.update}
    if isinstance(equality.left, Name) and equality.left.name not in held:
        yield Problem("unknown-comparison", f"phase {i} compares '{equality.left}', which no node "
                      "holds: it is no signal")  # fmt: skip
    if sum(isinstance(p, Equal) for p in parts) > 1 or not sender or equality.right != own:
        yield Problem(
            "unknown-comparison",
            f"phase {i} can compare once, as in equal(other.pointer, {own}); got '{phase.mask}'",
        )
    set_in = reading.program.set_in
    pointer = equality.left.name if isinstance(equality.left, Name) else ""
    before = [flag for flag in asks if isinstance(flag, Name) and (set_in(flag.name) or 0) < i]
    if before and (set_in(pointer) or 0) >= i:
        yield Problem("compared-too-early", f"phase {i} compares '{pointer}' where '{before[0]}' "
                      "is set, which in the first step is before the pointer is")  # fmt: skip
    if len(flags) != 1 or flags != asks:
        yield Problem(
            "comparison-of-many",
            f"phase {i} compares pointers, and its mask must ask for one signal of `other` beside "
            f"that; got '{phase.mask}'",
        )


def _default(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    two = len(phase.followed) == 2
    if two and pointing(phase) is None:
        yield Problem("default-elsewhere", f"phase {i} has one of two defaults; its mask must "
                      "compare")  # fmt: skip
    if two and not all(_is_literal(flag) for flag in phase.followed.values() if flag is not None):
        yield Problem("default-elsewhere", f"the default of phase {i} must go by one flag")
    for name in phase.followed:
        yield from _followed(reading, i, name)


def _followed(reading: Reading, i: int, name: str) -> Iterator[Problem]:
    """A pointer that comes as a hint can be followed, until its own phase is over."""
    set_in = reading.program.set_in(name)
    if not reading.program.fed_back(name):
        yield Problem("default-not-a-hint", f"the default of phase {i} must be a hint that is "
                      f"claimed; '{name}' is not")  # fmt: skip
    if set_in is not None and set_in < i:
        yield Problem("default-too-late", f"'{name}' is the default of phase {i}, and is set "
                      "before in the same step")  # fmt: skip


def _values(reading: Reading, i: int, phase: Phase) -> Iterator[Problem]:
    position = Name(Side.OTHER, reading.position)
    for name, value in phase.update.items():
        delays = reading.delays(name)
        if reading.program.components[name].kind is Kind.FLOAT:
            yield from _number(reading, i, name)
            continue
        if not reading.is_signal_flag(name):
            if value != position and not copies_a_pointer(reading.program, value):
                yield Problem("unknown-pointer", f"'{name}' can only be {position}, or, with one "
                              f"phase, another pointer; got '{value}'")  # fmt: skip
            continue
        if any(isinstance(p, Name) and p.side is Side.EDGE and p != LOOP for p in value.walk()):
            yield Problem(
                "edge-information-needed",
                f"'{name}' reads an edge, and what attention selects is a function of nodes alone",
            )
        literals = [part for choice in disjuncts(value) for part in conjuncts(choice)]
        if not all(_is_literal(part) for part in literals):
            yield Problem("not-alternatives", f"'{name}' must be alternatives (|) of conjunctions "
                          f"(&) of flags; got '{value}'")  # fmt: skip
        elif len(signal_forms(reading, i, value)) > 1 and 0 in delays and not exclusive(value):
            yield Problem("read-too-early", f"'{name}' has alternatives of several parts, and can "
                          "only be read two phases after its own")  # fmt: skip


def _number(reading: Reading, i: int, name: str) -> Iterator[Problem]:
    if name in reading.counts:
        yield from _count(reading, i, name)
        return
    program, number = reading.program, reading.number(name)
    numbers = _numbers(reading, i) | {*reading.counts}
    if number.added:
        numbers = {*reading.counts}  # hints would add up their errors
        (flag, *more) = number.flags
        if more or not (isinstance(flag, Name) and reading.in_register(flag.name, i)):
            yield Problem("unknown-number", f"'{name}' is added to where one signal is set; got "
                          f"'{program.phases[i].update[name]}'")  # fmt: skip
    places = {f.name: f.location for f in get_task(program.task).inputs}
    of_nodes = {n for n, theirs in program.inputs.items() if places[theirs] is Location.NODE}
    flags = (
        {c.name for c in program.hidden if c.kind is Kind.BOOL} if reading.phases == 1 else set()
    )
    seen = numbers | of_nodes | flags
    known = {Side.OTHER: seen, Side.SELF: seen, Side.EDGE: set(program.inputs) - of_nodes}
    if not _sums(number.value, known):
        yield Problem("unknown-number", f"'{name}' must be a sum, or where(flags, sum, 0), of "
                      "numbers that are hints or counts, of inputs and of the edge's, or, of "
                      f"counts, that added to self.{name}; got "
                      f"'{program.phases[i].update[name]}'")  # fmt: skip
        return
    form = affine(number.value)
    made_of = [value for at, value in form.terms.items() if at.name in numbers]
    lowest = form.range(reading.bounds)[0]
    if lowest < 0 or min(made_of, default=0.0) < 0 or sum(made_of) > 1:
        yield Problem("unknown-number", f"'{name}' must not fall below 0, nor be more than once a "
                      f"number of the step before; got '{number.value}'")  # fmt: skip
    if not all(_is_literal(part) and part != LOOP for part in number.flags):
        listed = " & ".join(map(str, number.flags))
        yield Problem("unknown-number", f"'{name}' is a number where flags hold (&); got "
                      f"'{listed}'")  # fmt: skip
    if i != reading.phases - 1 or not (program.fed_back(name) or reading.phases == 1):
        yield Problem("unknown-number", f"'{name}' must be a signal of the last phase, and a hint")


def _count(reading: Reading, i: int, name: str) -> Iterator[Problem]:
    by, flag = reading.counts[name]
    if by < 0 or flag.side is Side.EDGE or not reading.in_register(flag.name, i):
        yield Problem("unknown-number", f"'{name}' can go up with a flag that is a signal; got "
                      f"'{flag}'")  # fmt: skip
    if name in {c.name for c in reading.program.hints.values()}:
        yield Problem("unknown-number", f"'{name}' is a count, and cannot be a hint")


def _conclusions(reading: Reading) -> Iterator[Problem]:
    last = reading.program.phases[-1].update
    pointers = {c.name for c in reading.program.hidden if c.kind is Kind.POINTER}
    plain = {reading.position, *(pointers & {*last})}
    for name, conclusion in reading.program.conclude.items():
        match conclusion:
            case Becomes(conditions):
                flags = [part for c in conditions.values() for part in disjuncts(c)]
            case First(flags) | Grows(_, flags):
                flags = list(flags)
            case Where() | Linked():
                value = conclusion.otherwise if isinstance(conclusion, Linked) else conclusion
                flags = [conclusion.links, conclusion.to] if isinstance(conclusion, Linked) else []
                flags += [value.flag] if isinstance(value, Where) else []
                ends = [value.then, value.otherwise] if isinstance(value, Where) else [value]
                if not all(isinstance(end, Name) and end.name in plain for end in ends):
                    yield Problem("unknown-conclusion", f"'{name}' can be a pointer of the last "
                                  f"phase, or the node itself; got '{conclusion}'")  # fmt: skip
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
        start = reading.program.init.get(component.name, Constant(0.0))
        starts = component.kind is Kind.BOOL and start != Constant(0.0)
        if (component.kind in fed_back or starts) and component.name not in hints:
            yield Problem(
                "not-a-hint", f"'{component.name}' is remembered as a hint, and must be one"
            )


def _predictions(reading: Reading) -> Iterator[Problem]:
    program = reading.program
    for name, component in {**program.hints, **program.output}.items():
        early = program.set_in(component.name) != reading.phases - 1
        concluded = component.name in program.conclude
        if component.kind is Kind.POINTER and early and not concluded:
            yield Problem("not-predictable", f"'{name}' is {component}, a signal; predict what is "
                          "concluded, or set in the last phase")  # fmt: skip


def _is_literal(part: Expression) -> bool:
    return isinstance(part, Name) or (
        isinstance(part, Not) and isinstance(part.flag, Name) and part.flag != LOOP
    )
