"""Graph programs, in the paper's vocabulary.

In every step each node looks at itself and its neighbours. Among those that pass the `mask` it
selects one, by the minimum or maximum of an expression (ties go to the lowest node); where none
passes, it keeps its state, which is attending to itself. The `update` gives the next state from
its own (`self`), the selected node's (`other`), its inputs (`init`) and the edge between them.

A program reads as it is written, and `print(program)` gives that text back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mechgap.programs.expressions import Expression, as_expression
from mechgap.tasks.specs import Feature, Location, Stage, Task, Type, get_task


class Kind(Enum):
    """What a component of the hidden state holds."""

    BOOL = "Bool"
    FLOAT = "Float"
    POINTER = "Pointer"
    CLASS = "Class"
    CHOICE = "Choice"
    TOTAL = "Total"


HINT_TYPE = {
    Kind.BOOL: Type.MASK,
    Kind.FLOAT: Type.SCALAR,
    Kind.POINTER: Type.POINTER,
    Kind.CLASS: Type.CATEGORICAL,
    Kind.CHOICE: Type.MASK_ONE,
    Kind.TOTAL: Type.SCALAR,
}


@dataclass(frozen=True)
class Component:
    """A named variable that every node has."""

    name: str
    kind: Kind
    classes: tuple[str, ...] = ()
    """What a class can be; each is a flag of its own name."""

    def __str__(self) -> str:
        named = ", ".join(f'"{name}"' for name in (self.name, *self.classes))
        return f"{self.kind.value}({named})"


def Bool(name: str) -> Component:
    """A flag."""
    return Component(name, Kind.BOOL)


def Float(name: str) -> Component:
    """A number of at least 0."""
    return Component(name, Kind.FLOAT)


def Pointer(name: str) -> Component:
    """A node, held as its position."""
    return Component(name, Kind.POINTER)


def Class(name: str, *classes: str) -> Component:
    """One of several classes, each of which is read as a flag: ``self.white``."""
    return Component(name, Kind.CLASS, classes)


def Choice(name: str) -> Component:
    """One node of the whole graph, held as a flag that only this node has."""
    return Component(name, Kind.CHOICE)


def Total(name: str) -> Component:
    """A number of the whole graph."""
    return Component(name, Kind.TOTAL)


class Extreme(Enum):
    """Which end of an expression's values is selected."""

    MINIMUM = "minimum"
    MAXIMUM = "maximum"


@dataclass(frozen=True)
class Selection:
    """Attend to the sender with the smallest or largest value."""

    extreme: Extreme
    expression: Expression

    @property
    def sign(self) -> float:
        """Times the expression, the value that is smallest where it is selected."""
        return 1.0 if self.extreme is Extreme.MINIMUM else -1.0

    def __str__(self) -> str:
        return f"{self.extreme.value}({self.expression})"


def minimum(expression: Expression) -> Selection:
    """Select the sender whose value is smallest."""
    return Selection(Extreme.MINIMUM, expression)


def maximum(expression: Expression) -> Selection:
    """Select the sender whose value is largest."""
    return Selection(Extreme.MAXIMUM, expression)


@dataclass(frozen=True)
class Fixpoint:
    """Run until nothing changes."""

    def __str__(self) -> str:
        return "fixpoint"


fixpoint = Fixpoint()


@dataclass(frozen=True, kw_only=True)
class Program:
    """What all programs have: a state, and how it meets a task."""

    name: str
    task: str
    """The CLRS task whose graphs and inputs it reads."""
    inputs: Mapping[str, str]
    """The program's names of the task's inputs."""
    hidden: tuple[Component, ...]
    hints: Mapping[str, Component]
    """Which component is which hint: the task's own, or new ones."""
    output: Mapping[str, Component]
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    """Hints of the task that are not claimed, and why."""

    @property
    def components(self) -> Mapping[str, Component]:
        """The hidden state's components by name."""
        return {component.name: component for component in self.hidden}

    def posed(self) -> Task:
        """The task that the program solves: CLRS's own if it answers for CLRS's hints and outputs.

        Otherwise a task with CLRS's inputs and the program's hints and outputs.
        """
        clrs = get_task(self.task)
        own = {f.name: f for f in clrs.features if f.stage is not Stage.INPUT}
        if set(own) == {*self.hints, *self.output, *self.unclaimed}:
            return clrs
        hints = (_feature(name, Stage.HINT, c) for name, c in self.hints.items())
        outputs = (_feature(name, Stage.OUTPUT, c) for name, c in self.output.items())
        return Task(
            name=self.name,
            summary=f"the graph program {self.name}",
            features=(*clrs.inputs, *outputs, *hints),
            directed=clrs.directed,
            acyclic=clrs.acyclic,
            weighted=clrs.weighted,
            has_source=clrs.has_source,
            in_dm_clrs=False,
        )


@dataclass(frozen=True, kw_only=True)
class GraphProgram(Program):
    """A graph algorithm that selects once in a step. `phases` has those that select more often."""

    init: Mapping[str, Expression]
    """The state before the first step, from each node's own inputs."""
    select: Selection
    update: Mapping[str, Expression]
    mask: Expression | None = None
    """Who may be selected; everyone where there is none."""
    steps: int | Fixpoint = field(default=fixpoint)
    """How long it runs where no hints tell."""

    def __post_init__(self):
        for part in ("init", "update"):  # a plain number is a constant expression
            values = {name: as_expression(value) for name, value in getattr(self, part).items()}
            object.__setattr__(self, part, values)

    @property
    def selections(self) -> int:
        """How often a node selects in a step."""
        return 1

    def __str__(self) -> str:
        return source(self)

    def __hash__(self) -> int:
        return hash(source(self))


def _feature(name: str, stage: Stage, component: Component) -> Feature:
    classes = max(1, len(component.classes))
    location = Location.GRAPH if component.kind is Kind.TOTAL else Location.NODE
    return Feature(name, stage, location, HINT_TYPE[component.kind], classes)


def source(program: GraphProgram) -> str:
    """The program as Python text; running it gives an equal program."""

    mask = "" if program.mask is None else f"    mask={program.mask},\n"
    return (
        f"{opening(program)}"
        f"    init={named(program.init)},\n"
        f"    select={program.select},\n"
        f"{mask}"
        f"    update={named(program.update)},\n"
        f"    hints={referred(program.hints)},\n"
        f"    output={referred(program.output)},\n"
        f"    steps={program.steps},\n"
        ")\n"
    )


def opening(program: Program) -> str:
    """The text of a program up to its state."""
    quoted = ", ".join(f'"{ours}": "{theirs}"' for ours, theirs in program.inputs.items())
    declared = "".join(f"{c.name} = {c}\n" for c in program.hidden)
    hidden = ", ".join(c.name for c in program.hidden)
    return (
        f"{declared}\n{program.name} = {type(program).__name__}(\n"
        f'    name="{program.name}",\n'
        f'    task="{program.task}",\n'
        f"    inputs={{{quoted}}},\n"
        f"    hidden=({hidden},),\n"
    )


def named(parts: Mapping[str, Any], indent: str = "    ") -> str:
    """The text of values by name."""
    lines = "".join(f"{indent}    {name}={value},\n" for name, value in parts.items())
    return f"dict(\n{lines}{indent})"


def referred(parts: Mapping[str, Component]) -> str:
    """The text of components by the names of predictions."""
    return "{" + ", ".join(f'"{name}": {c.name}' for name, c in parts.items()) + "}"
