"""Every reason why a program makes no sense, all at once, by name."""

from collections.abc import Iterator
from dataclasses import dataclass

from mechgap.errors import InvalidInput, unknown
from mechgap.programs.components import HINT_TYPE, Component, Kind
from mechgap.programs.conclusions import Becomes, First, Grows, Linked
from mechgap.programs.expressions import (
    And,
    Constant,
    Equal,
    Expression,
    Name,
    Not,
    Or,
    Side,
    Where,
)
from mechgap.programs.program import Fixpoint, Program
from mechgap.tasks.specs import TASKS, Location, Type, get_task


@dataclass(frozen=True)
class Problem:
    """One reason."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def refuse(program: Program, found: list[Problem], what: str = "cannot compile") -> None:
    """Raise one error that lists every problem, if there are any."""
    if found:
        listed = "; ".join(f"({i}) {problem}" for i, problem in enumerate(found, 1))
        raise InvalidInput(f"{program.name} {what}: {listed}")


def problems(program: Program) -> Iterator[Problem]:
    """The reasons, in the order in which a program is written."""
    if program.task not in TASKS:
        yield Problem("unknown-task", str(unknown("task", program.task, TASKS)))
        return
    yield from _inputs(program)
    yield from _labels(program)
    yield from _length(program)
    for component in program.hidden:
        yield from _setters(program, component)
    set_in = (name for phase in program.phases for name in phase.update)
    for name in dict.fromkeys((*program.init, *program.conclude, *set_in)):
        if name not in program.components:
            yield Problem("unknown-component", f"'{name}' is set, which is not declared")
    for name, value in program.init.items():
        yield from _start(program, name, value)
    for where, expression, wants_flag, sides in _expressions(program):
        yield from _names(program, where, expression, sides)
        yield from _mixed_flags(program, expression)
        if wants_flag and not is_flag(program, expression):
            yield Problem("wrong-kind", f"{where}: '{expression}' is not a flag")
        yield from _compared(program, where, expression)
    for i, phase in enumerate(program.phases):
        for name, flag in phase.followed.items():
            if not _is_pointer(program, name):
                yield Problem("wrong-kind", f"phase {i} follows self.{name}, which is no pointer")
            if flag is not None and not is_flag(program, flag):
                yield Problem("wrong-kind", f"phase {i} follows by '{flag}', which is not a flag")
        if isinstance(phase.otherwise, Expression) and not phase.followed:
            yield Problem("wrong-kind", f"phase {i} follows '{phase.otherwise}', which must be a "
                          "pointer, or one of two by a flag")  # fmt: skip
    yield from _predictions(program)


def _inputs(program: Program) -> Iterator[Problem]:
    """Inputs that the task does not have, and names that are taken."""
    known = {f.name for f in get_task(program.task).inputs}
    for ours, theirs in program.inputs.items():
        if theirs not in known:
            yield Problem("unknown-input", f"{program.task} has no input '{theirs}' for '{ours}'")
        if ours in program.components:
            yield Problem("name-clash", f"'{ours}' is both an input and a component")
        if ours == "loop":
            yield Problem("name-clash", "'loop' is taken: edge.loop is the edge to oneself")
    if "pos" not in program.inputs.values():
        yield Problem("no-position", "the input 'pos' must be named: it tells nodes apart")


def _labels(program: Program) -> Iterator[Problem]:
    taken = {*program.components, *program.inputs}
    for component in program.hidden:
        for label in component.classes:
            if label in taken:
                yield Problem("name-clash", f"the class '{label}' has the name of something else")
            taken.add(label)
    names = [component.name for component in program.hidden]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Problem("name-clash", f"'{name}' is declared {names.count(name)} times")


def _length(program: Program) -> Iterator[Problem]:
    if not program.phases:
        yield Problem("no-phase", "a program must have a phase")
    whole = isinstance(program.steps, int) and not isinstance(program.steps, bool)
    if not isinstance(program.steps, Fixpoint) and not (whole and program.steps >= 1):
        yield Problem("wrong-steps", f"steps must be fixpoint, or a whole number of at least 1; "
                      f"got {program.steps!r}")  # fmt: skip


def _setters(program: Program, component: Component) -> Iterator[Problem]:
    """Flags and numbers are updated in a phase, classes become, choices are the first, totals grow,
    pointers are any."""
    name = component.name
    updates = sum(name in phase.update for phase in program.phases)
    conclusion = program.conclude.get(name)
    ways = updates + (conclusion is not None)
    if ways != 1:
        yield Problem("set-not-once", f"'{name}' must be updated in one phase, or be concluded; it "
                      f"is {'not' if not ways else f'{ways} times'}")  # fmt: skip
    allowed = {
        Kind.BOOL: bool(updates),
        Kind.FLOAT: bool(updates),
        Kind.POINTER: bool(updates) or isinstance(conclusion, Name | Where | Linked),
        Kind.CLASS: isinstance(conclusion, Becomes),
        Kind.CHOICE: isinstance(conclusion, First),
        Kind.TOTAL: isinstance(conclusion, Grows),
    }
    if ways == 1 and not allowed[component.kind]:
        yield Problem("wrong-kind", f"{component} cannot be set in this way")
    if isinstance(conclusion, Becomes):
        for label in conclusion.conditions:
            if label not in component.classes:
                yield Problem("unknown-class", f"'{name}' has no class '{label}'")


def _start(program: Program, name: str, value: Expression) -> Iterator[Problem]:
    """What starts otherwise does so by the node's own inputs."""
    where = f"init of '{name}'"
    locations = {f.name: f.location for f in get_task(program.task).inputs}
    for part in value.walk():
        if not isinstance(part, Name):
            continue
        if part.side not in {Side.SELF, Side.INIT} or part.name in _state(program):
            yield Problem("wrong-side", f"{where} reads {part}, which is no input of the node")
        elif locations.get(program.inputs.get(part.name, "")) is not Location.NODE:
            yield Problem("unknown-name", f"{where} reads {part}, which is no input of nodes")
    component = program.components.get(name)
    if component is None:
        return
    is_zero = isinstance(value, Constant) and value.value == 0
    is_position = isinstance(value, Name) and program.inputs.get(value.name) == "pos"
    fits = {
        Kind.BOOL: is_zero or is_flag(program, value),
        Kind.CHOICE: is_flag(program, value),
        Kind.POINTER: is_position,
        Kind.FLOAT: True,
    }
    if not fits.get(component.kind, False):
        yield Problem("wrong-kind", f"{component} cannot start as '{value}'")


def _expressions(program: Program) -> Iterator[tuple[str, Expression, bool, set[Side]]]:
    """Every expression, where it stands, whether it must be a flag, and what it may read."""
    everywhere, of_node = {*Side}, {Side.SELF, Side.INIT}
    kinds = {c.name: c.kind for c in program.hidden}
    for i, phase in enumerate(program.phases):
        yield f"the selection of phase {i}", phase.select.expression, False, everywhere
        if phase.mask is not None:
            yield f"the mask of phase {i}", phase.mask, True, everywhere
        if isinstance(phase.otherwise, Expression):
            yield f"what phase {i} follows", phase.otherwise, False, of_node
        for name, value in phase.update.items():
            where = f"'{name}' in phase {i}"
            never = isinstance(value, Constant) and value.value == 0
            yield where, value, kinds.get(name) is Kind.BOOL and not never, everywhere
            if isinstance(value, Where):
                yield where, value.flag, True, everywhere
    for name, conclusion in program.conclude.items():
        where = f"the conclusion of '{name}'"
        match conclusion:
            case Becomes(conditions):
                flags, values = tuple(conditions.values()), ()
            case First(flags) | Grows(_, flags):
                values = ()
            case Linked(links, to, otherwise):
                flags, values = (links, to), (otherwise,)
            case Where(flag, then, otherwise):
                flags, values = (flag,), (then, otherwise)
            case _:
                flags, values = (), (conclusion,)
        yield from ((where, flag, True, of_node) for flag in flags)
        yield from ((where, value, False, of_node) for value in values)


def _names(program: Program, where: str, whole: Expression, sides: set[Side]) -> Iterator[Problem]:
    locations = {f.name: f.location for f in get_task(program.task).inputs}
    totals = {c.name for c in program.hidden if c.kind is Kind.TOTAL}
    classes = {c.name for c in program.hidden if c.kind is Kind.CLASS}
    state = _state(program)
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
        elif part.name in classes:
            yield Problem("wrong-side", f"{where} reads {part}, a class: ask for one of its flags")
        elif not is_input and (place is Location.EDGE or part.name not in state):
            yield Problem("unknown-name", f"{where} reads {part}, which is neither declared nor an "
                          f"input of {'edges' if place is Location.EDGE else 'nodes'}")  # fmt: skip


def _state(program: Program) -> set[str]:
    return {*program.components, *(label for c in program.hidden for label in c.classes)}


def is_flag(program: Program, expression: Expression) -> bool:
    """Whether an expression is 0 or 1."""
    kinds = {f.name: f.type for f in get_task(program.task).inputs}
    match expression:
        case Name(Side.EDGE, "loop") | Equal():
            return True
        case Name(_, name) if name in program.components:
            return program.components[name].kind in {Kind.BOOL, Kind.CHOICE}
        case Name(_, name) if any(name in c.classes for c in program.hidden):
            return True
        case Name(_, name):
            return kinds.get(program.inputs.get(name, "")) in {Type.MASK, Type.MASK_ONE}
        case Not(flag):
            return is_flag(program, flag)
        case And(left, right) | Or(left, right):
            return is_flag(program, left) and is_flag(program, right)
    return False


def _mixed_flags(program: Program, whole: Expression) -> Iterator[Problem]:
    """Numbers that are combined as if they were flags."""
    for inner in whole.walk():
        if isinstance(inner, (And, Or, Not)):
            for child in inner.children:
                if not is_flag(program, child):
                    yield Problem("wrong-kind", f"'{child}' in '{inner}' is not a flag")


def _compared(program: Program, where: str, whole: Expression) -> Iterator[Problem]:
    for part in whole.walk():
        if isinstance(part, Equal):
            for side in (part.left, part.right):
                if not (isinstance(side, Name) and _means_a_node(program, side.name)):
                    yield Problem("wrong-kind", f"{where}: '{side}' in '{part}' is no pointer")


def _is_pointer(program: Program, name: str) -> bool:
    component = program.components.get(name)
    return component is not None and component.kind is Kind.POINTER


def _means_a_node(program: Program, name: str) -> bool:
    return _is_pointer(program, name) or program.inputs.get(name) == "pos"


def _predictions(program: Program) -> Iterator[Problem]:
    """Predictions of what is not declared, of another kind than the task's, or named otherwise."""
    task = get_task(program.task)
    theirs = {f.name: f for f in (*task.hints, *task.outputs)}
    taken = {f.name for f in task.inputs}
    if not program.output:
        yield Problem("no-output", "a program must say which component is its output")
    if not program.hints:
        yield Problem("no-hint", "a program must say which components are its hints: they are how "
                      "a network is told each step")  # fmt: skip
    for name in {*program.hints, *program.output} & taken:
        yield Problem("name-clash", f"'{name}' is predicted, and is an input of {task.name}")
    for name in {*program.hints} & {*program.output}:
        yield Problem("name-clash", f"'{name}' is both a hint and an output")
    for name, component in {**program.hints, **program.output}.items():
        if component not in program.hidden:
            yield Problem("unknown-component", f"'{name}' is {component}, which is not declared")
        wanted = theirs.get(name)
        if wanted is not None and wanted.type is not HINT_TYPE[component.kind]:
            yield Problem(
                "wrong-kind",
                f"{task.name}'s '{name}' is a {wanted.type.value}, and {component} is not",
            )
    for name in program.unclaimed.keys() - {f.name for f in task.hints}:
        yield Problem("unknown-hint", f"{task.name} has no hint '{name}' that could be unclaimed")
