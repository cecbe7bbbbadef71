"""Every reason why a program makes no sense, all at once, by name."""

from collections.abc import Iterator
from dataclasses import dataclass

from mechgap.errors import InvalidInput, unknown
from mechgap.programs.expressions import And, Constant, Equal, Expression, Name, Not, Or, Side
from mechgap.programs.language import HINT_TYPE, GraphProgram, Kind, Program
from mechgap.tasks.specs import TASKS, Location, Type, get_task


@dataclass(frozen=True)
class Problem:
    """One reason."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def refuse(program: Program, found: list[Problem]) -> None:
    """Raise one error that lists every problem, if there are any."""
    if found:
        listed = "; ".join(f"({i}) {problem}" for i, problem in enumerate(found, 1))
        raise InvalidInput(f"{program.name} cannot compile: {listed}")


def problems(program: GraphProgram) -> Iterator[Problem]:
    """The reasons, in the order in which a program is written."""
    if program.task not in TASKS:
        yield Problem("unknown-task", str(unknown("task", program.task, TASKS)))
        return
    yield from input_problems(program)
    yield from _coverage(program)
    for name, value in program.init.items():
        yield from _names(program, f"init of {name}", value, {Side.SELF, Side.INIT}, initial=True)
    anywhere = set(Side)
    yield from _names(program, "select", program.select.expression, anywhere)
    if program.mask is not None:
        yield from _names(program, "mask", program.mask, anywhere)
        if not is_flag(program, program.mask):
            yield Problem("wrong-kind", f"the mask '{program.mask}' is not a flag")
    for name, value in program.update.items():
        yield from _names(program, f"update of {name}", value, anywhere)
    yield from _kinds(program)
    yield from prediction_problems(program)


def input_problems(program: Program) -> Iterator[Problem]:
    """Inputs that the task does not have, and names that are taken."""
    known = {f.name: f for f in get_task(program.task).inputs}
    for ours, theirs in program.inputs.items():
        if theirs not in known:
            yield Problem("unknown-input", f"{program.task} has no input '{theirs}' for '{ours}'")
        if ours in program.components:
            yield Problem("name-clash", f"'{ours}' is both an input and a component")
        if ours == "loop":
            yield Problem("name-clash", "'loop' is taken: edge.loop is the edge to oneself")
    if "pos" not in program.inputs.values():
        yield Problem("no-position", "the input 'pos' must be named: it tells nodes apart")


def _coverage(program: GraphProgram) -> Iterator[Problem]:
    for name in program.components:
        if name not in program.init:
            yield Problem("missing-init", f"'{name}' has no initial value")
        if name not in program.update:
            yield Problem("missing-update", f"'{name}' has no update")
    for part, given in (("init", program.init), ("update", program.update)):
        for name in given:
            if name not in program.components:
                yield Problem("unknown-component", f"{part} of '{name}', which is not declared")


def _names(
    program: GraphProgram, where: str, whole: Expression, sides: set[Side], initial: bool = False
) -> Iterator[Problem]:
    locations = {f.name: f.location for f in get_task(program.task).inputs}
    for part in whole.walk():
        if not isinstance(part, Name):
            continue
        if part.side not in sides:
            yield Problem("wrong-side", f"{where} may not read {part}: it is not the node's own")
        elif part.side is Side.EDGE:
            on_edges = locations.get(program.inputs.get(part.name, "")) is Location.EDGE
            if part.name != "loop" and not on_edges:
                yield Problem("unknown-name", f"{where} reads {part}, which is no edge input")
        elif part.name in program.components:
            if part.side is Side.INIT or initial:
                yield Problem("wrong-side", f"{where} reads {part}: the state is not an input")
        elif locations.get(program.inputs.get(part.name, "")) is not Location.NODE:
            yield Problem("unknown-name", f"{where} reads {part}, which is neither declared nor a "
                          "node input")  # fmt: skip


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


def mixed_flags(program: Program, whole: Expression) -> Iterator[Problem]:
    """Numbers that are combined as if they were flags."""
    for inner in whole.walk():
        if isinstance(inner, (And, Or, Not)):
            for child in inner.children:
                if not is_flag(program, child):
                    yield Problem("wrong-kind", f"'{child}' in '{inner}' is not a flag")


def _kinds(program: GraphProgram) -> Iterator[Problem]:
    parts = [program.select.expression, *program.update.values(), *program.init.values()]
    for part in [*parts, *([program.mask] if program.mask is not None else [])]:
        yield from mixed_flags(program, part)
    for name, component in program.components.items():
        for part in (program.init.get(name), program.update.get(name)):
            is_zero = isinstance(part, Constant) and part.value == 0
            if part is None or component.kind is not Kind.BOOL or is_zero:
                continue
            if not is_flag(program, part):
                yield Problem("wrong-kind", f"'{name}' is a flag, and '{part}' is not")


def prediction_problems(program: Program) -> Iterator[Problem]:
    """Predictions of what is not declared, or of another kind than the task's."""
    task = get_task(program.task)
    theirs = {f.name: f for f in (*task.hints, *task.outputs)}
    if not program.output:
        yield Problem("no-output", "a program must say which component is its output")
    for name, component in {**program.hints, **program.output}.items():
        if component not in program.hidden:
            yield Problem("unknown-component", f"'{name}' is {component}, which is not declared")
        wanted = theirs.get(name)
        if wanted is not None and wanted.type is not HINT_TYPE[component.kind]:
            yield Problem(
                "wrong-kind",
                f"{task.name}'s '{name}' is a {wanted.type.value}, and {component} is not",
            )
