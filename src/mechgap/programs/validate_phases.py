"""Every reason why a program with phases makes no sense, all at once, by name."""

from collections.abc import Iterator

from mechgap.errors import unknown
from mechgap.programs.expressions import Equal, Expression, Name, Side, Where
from mechgap.programs.language import Component, Kind
from mechgap.programs.phases import Becomes, First, Grows, Linked, PhasedProgram
from mechgap.programs.validate import (
    Problem,
    input_problems,
    is_flag,
    mixed_flags,
    prediction_problems,
)
from mechgap.tasks.specs import TASKS, Location, get_task


def phase_problems(program: PhasedProgram) -> Iterator[Problem]:
    """The reasons, in the order in which a program is written."""
    if program.task not in TASKS:
        yield Problem("unknown-task", str(unknown("task", program.task, TASKS)))
        return
    yield from input_problems(program)
    yield from _labels(program)
    for component in program.hidden:
        yield from _setters(program, component)
    set_in = (name for phase in program.phases for name in phase.signal)
    for name in (*program.init, *program.conclude, *set_in):
        if name not in program.components:
            yield Problem("unknown-component", f"'{name}' is set, which is not declared")
    yield from _starts(program)
    for where, expression, wants_flag in _expressions(program):
        concludes = where.startswith("conclusion")
        sides = {Side.SELF, Side.INIT} if concludes else {*Side}
        yield from _names(program, where, expression, sides)
        yield from mixed_flags(program, expression)
        if wants_flag and not is_flag(program, expression):
            yield Problem("wrong-kind", f"{where}: '{expression}' is not a flag")
        yield from _compared(program, where, expression)
    for i, phase in enumerate(program.phases):
        for name, flag in phase.defaults.items():
            if not _is_pointer(program, Name(Side.SELF, name)):
                yield Problem("wrong-kind", f"the default of phase {i}, self.{name}, is no pointer")
            if flag is not None and not is_flag(program, flag):
                yield Problem("wrong-kind", f"the default of phase {i}: '{flag}' is not a flag")
        if phase.default is not None and not phase.defaults:
            yield Problem("wrong-kind", f"the default of phase {i}, '{phase.default}', must be a "
                          "pointer, or one of two by a flag")  # fmt: skip
    yield from prediction_problems(program)
    yield from _unexplained(program)


def _labels(program: PhasedProgram) -> Iterator[Problem]:
    taken = {*program.components, *program.inputs}
    for component in program.hidden:
        for label in component.classes:
            if label in taken:
                yield Problem("name-clash", f"the class '{label}' has the name of something else")
            taken.add(label)


def _starts(program: PhasedProgram) -> Iterator[Problem]:
    """What starts otherwise is a flag or a choice, from a flag of the node's own input."""
    for name, value in program.init.items():
        component = program.components.get(name)
        if component is not None and component.kind not in {Kind.BOOL, Kind.CHOICE}:
            yield Problem("wrong-kind", f"{component} cannot start as '{value}'")
        elif not is_flag(program, value):
            yield Problem("wrong-kind", f"init of '{name}': '{value}' is not a flag")
        for part in value.walk():
            if isinstance(part, Name) and part.name not in program.inputs:
                yield Problem("wrong-side", f"init of '{name}' reads {part}, which is no input")


def _setters(program: PhasedProgram, component: Component) -> Iterator[Problem]:
    """Flags and numbers are signals, classes become, choices are the first, totals grow, pointers
    are any."""
    name = component.name
    signals = sum(name in phase.signal for phase in program.phases)
    conclusion = program.conclude.get(name)
    ways = signals + (conclusion is not None)
    if ways != 1:
        yield Problem(
            "set-not-once", f"'{name}' must be a signal or be concluded, once; it is {ways} times"
        )
    allowed = {
        Kind.BOOL: bool(signals),
        Kind.FLOAT: bool(signals),
        Kind.POINTER: bool(signals) or isinstance(conclusion, Where | Linked),
        Kind.CLASS: isinstance(conclusion, Becomes),
        Kind.CHOICE: isinstance(conclusion, First),
        Kind.TOTAL: isinstance(conclusion, Grows),
    }
    if ways == 1 and not allowed.get(component.kind, False):
        yield Problem("wrong-kind", f"{component} cannot be set in this way")
    if isinstance(conclusion, Becomes):
        for label in conclusion.conditions:
            if label not in component.classes:
                yield Problem("unknown-class", f"'{name}' has no class '{label}'")


def _expressions(program: PhasedProgram) -> Iterator[tuple[str, Expression, bool]]:
    """Every expression, where it stands, and whether it must be a flag."""
    declared = program.components
    for i, phase in enumerate(program.phases):
        yield f"selection of phase {i}", phase.select.expression, False
        if phase.mask is not None:
            yield f"mask of phase {i}", phase.mask, True
        for name, value in phase.signal.items():
            yield (
                f"'{name}' in phase {i}",
                value,
                name in declared and (declared[name].kind is Kind.BOOL),
            )
            if isinstance(value, Where):
                yield f"'{name}' in phase {i}", value.flag, True
    for name, conclusion in program.conclude.items():
        where = f"conclusion of '{name}'"
        match conclusion:
            case Becomes(conditions):
                yield from ((where, condition, True) for condition in conditions.values())
            case First(flags) | Grows(_, flags):
                yield from ((where, flag, True) for flag in flags)
            case Linked(links, to, otherwise):
                yield from ((where, flag, True) for flag in (links, to))
                yield where, otherwise, False
            case Where(flag, then, otherwise):
                yield where, flag, True
                yield from ((where, value, False) for value in (then, otherwise))
            case _:
                yield where, conclusion, False


def _names(
    program: PhasedProgram, where: str, whole: Expression, sides: set[Side]
) -> Iterator[Problem]:
    locations = {f.name: f.location for f in get_task(program.task).inputs}
    totals = {c.name for c in program.hidden if c.kind is Kind.TOTAL}
    state = {*program.components, *(label for c in program.hidden for label in c.classes)}
    for part in whole.walk():
        if not isinstance(part, Name):
            continue
        place = Location.EDGE if part.side is Side.EDGE else Location.NODE
        is_input = locations.get(program.inputs.get(part.name, "")) is place
        if part == Name(Side.EDGE, "loop") and Side.EDGE in sides:
            continue
        if part.side not in sides:
            yield Problem("wrong-side", f"{where} may not read {part}")
        elif part.side is Side.INIT and part.name in state:
            yield Problem("wrong-side", f"{where} reads {part}: the state is not an input")
        elif part.name in totals:
            yield Problem("wrong-side", f"{where} reads {part}, which no node knows")
        elif not is_input and (place is Location.EDGE or part.name not in state):
            yield Problem("unknown-name", f"{where} reads {part}, which is neither declared nor an "
                          "input")  # fmt: skip


def _compared(program: PhasedProgram, where: str, whole: Expression) -> Iterator[Problem]:
    for part in whole.walk():
        if isinstance(part, Equal):
            for side in (part.left, part.right):
                if not (isinstance(side, Name) and _means_a_node(program, side)):
                    yield Problem("wrong-kind", f"{where}: '{side}' in '{part}' is no pointer")


def _is_pointer(program: PhasedProgram, name: Name) -> bool:
    component = program.components.get(name.name)
    return component is not None and component.kind is Kind.POINTER


def _means_a_node(program: PhasedProgram, name: Name) -> bool:
    return _is_pointer(program, name) or program.inputs.get(name.name) == "pos"


def _unexplained(program: PhasedProgram) -> Iterator[Problem]:
    """A program's first hint is the task's, so it answers for all of the task's hints."""
    task = get_task(program.task)
    hints, own = {f.name for f in task.hints}, {f.name for f in (*task.hints, *task.outputs)}
    for name in hints - {*program.hints, *program.unclaimed}:
        yield Problem("unexplained-hint", f"'{name}' is neither predicted nor unclaimed for a "
                      "reason")  # fmt: skip
    for name in {*program.hints, *program.output, *program.unclaimed} - own:
        yield Problem("unknown-hint", f"{task.name} has no '{name}'")
