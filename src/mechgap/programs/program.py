"""A graph program: what every node holds, how it starts, and what a step does.

In every step nodes go through the *phases* in order. In a phase each node looks at itself and its
neighbours (at all nodes, if the program `sees_all`), selects one of those that pass the mask, and
sets flags, pointers and numbers by it. When the phases are over the step *concludes*: classes and
choices are decided, totals grow.

In the beginning flags are not set, a class is its first, a choice is the lowest node, a pointer
means the node itself, numbers are 0, and `init` says what else.

A program reads as it is written, `print(program)` gives that text back, and `data` has it as plain
data. `GraphProgram` is the paper's short form of a program with one phase.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.programs.components import Component, Kind
from mechgap.programs.conclusions import Conclusion, parts
from mechgap.programs.expressions import (
    Add,
    Expression,
    Name,
    Number,
    Scale,
    Side,
    as_expression,
    names,
)
from mechgap.programs.phases import Phase, Selection, keep


@dataclass(frozen=True)
class Fixpoint:
    """Run until nothing changes."""

    def __str__(self) -> str:
        return "fixpoint"


fixpoint = Fixpoint()


@dataclass(frozen=True, kw_only=True)
class Program:
    """A graph algorithm."""

    name: str
    task: str
    """The CLRS task whose graphs and inputs it reads."""
    inputs: Mapping[str, str]
    """The program's names of the task's inputs."""
    hidden: tuple[Component, ...]
    """The state of every node."""
    init: Mapping[str, Expression] = field(default_factory=dict)
    """What starts otherwise than all else, from each node's own inputs."""
    phases: tuple[Phase, ...]
    conclude: Mapping[str, Conclusion] = field(default_factory=dict)
    """Classes, choices, totals, and pointers that follow from others, at the end of the step."""
    sees_all: bool = False
    """Whether nodes look at all nodes; else, at their neighbours and themselves."""
    hints: Mapping[str, Component]
    """Which component is which hint: the task's own, or new ones."""
    output: Mapping[str, Component]
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    """Hints of the task that are not claimed, and why."""
    steps: int | Fixpoint = fixpoint
    """How long it runs where no hints tell."""

    def __post_init__(self):
        init = {name: as_expression(value) for name, value in self.init.items()}
        object.__setattr__(self, "init", init)
        for sequence in ("hidden", "phases"):
            object.__setattr__(self, sequence, tuple(getattr(self, sequence)))

    def __str__(self) -> str:
        return program_text(self)

    def __hash__(self) -> int:
        return hash(self.name)

    @cached_property
    def components(self) -> Mapping[str, Component]:
        """The hidden state's components by name."""
        return {component.name: component for component in self.hidden}

    @property
    def position(self) -> str:
        """The program's name of the input that tells nodes apart."""
        for ours, theirs in self.inputs.items():
            if theirs == "pos":
                return ours
        raise InvalidInput(f"{self.name} must name the input 'pos': it tells nodes apart")

    @property
    def selections(self) -> int:
        """How often a node selects in a step."""
        return len(self.phases)

    @property
    def signals(self) -> tuple[str, ...]:
        """What phases set that is no hint."""
        hints = {component.name for component in self.hints.values()}
        return tuple(name for name in self.set_by_phases if name not in hints)

    @property
    def set_by_phases(self) -> tuple[str, ...]:
        """What phases set, in the order of the state."""
        return tuple(c.name for c in self.hidden if self.set_in(c.name) is not None)

    @property
    def is_short(self) -> bool:
        """Whether `GraphProgram` can say it: one phase that keeps, and nothing else."""
        keeps = [phase.keeps for phase in self.phases] == [True]
        return keeps and not (self.conclude or self.sees_all or self.unclaimed)

    @property
    def starts(self) -> Mapping[str, Expression]:
        """What flags, numbers and pointers are in the beginning."""
        nothing = {Kind.BOOL: as_expression(0), Kind.FLOAT: as_expression(0)}
        usual = {**nothing, Kind.POINTER: Name(Side.INIT, self.position)}
        found = {c.name: usual[c.kind] for c in self.hidden if c.kind in usual}
        return {**found, **self.init}

    @property
    def counts(self) -> Mapping[str, tuple[float, Name]]:
        """The numbers that go up by so much with a flag, ``self.n + 0.01 * other.flag``."""
        found = {}
        for phase in self.phases:
            for name, value in phase.update.items():
                match value:
                    case Add(Name(Side.SELF, own), Scale(by, Name() as flag)) if own == name:
                        found[name] = (by, flag)
        return found

    def set_in(self, name: str) -> int | None:
        """The phase that sets a component; None for what is concluded."""
        return next((i for i, phase in enumerate(self.phases) if name in phase.update), None)

    def held_after(self, name: str) -> tuple[bool, ...]:
        """After which phases a component that a phase sets is still needed.

        Until the last phase that reads it, in this step or in the next; to the end of the step if
        something is concluded from it.
        """
        phases, set_in = len(self.phases), self.set_in(name)
        assert set_in is not None
        ages = range(1, phases + 1)
        needed = {age for age in ages if name in self.phases[(set_in + age) % phases].reads}
        if any(name in names(part) for c in self.conclude.values() for part in parts(c)):
            needed.add(phases - set_in)
        last = max(needed, default=1)
        return tuple((i - set_in) % phases < last for i in range(phases))

    def fed_back(self, name: str) -> bool:
        """Whether a component is a hint that is claimed, and so comes back in the next step."""
        claimed = (c.name for hint, c in self.hints.items() if hint not in self.unclaimed)
        return name in claimed

    def expressions(self) -> Iterable[Expression]:
        """Every expression of the program but for where it starts."""
        for phase in self.phases:
            yield phase.select.expression
            if phase.mask is not None:
                yield phase.mask
            if isinstance(phase.otherwise, Expression):
                yield phase.otherwise
            yield from phase.update.values()
        for conclusion in self.conclude.values():
            yield from parts(conclusion)


def GraphProgram(
    *,
    name: str,
    task: str,
    inputs: Mapping[str, str],
    hidden: tuple[Component, ...],
    init: Mapping[str, Expression | Number],
    select: Selection,
    update: Mapping[str, Expression | Number],
    hints: Mapping[str, Component],
    output: Mapping[str, Component],
    mask: Expression | None = None,
    steps: int | Fixpoint = fixpoint,
) -> Program:
    """The paper's form: one selection in a step; where nobody passes the mask, nodes keep.

    Returns:
        The program of one phase. See `Program` for what the arguments are.
    """
    as_given = {part: as_expression(value) for part, value in update.items()}
    return Program(
        name=name,
        task=task,
        inputs=inputs,
        hidden=hidden,
        init={part: as_expression(value) for part, value in init.items()},
        phases=(Phase(select=select, mask=mask, otherwise=keep, update=as_given),),
        hints=hints,
        output=output,
        steps=steps,
    )


def program_text(program: Program) -> str:
    """The Python text that makes a program, in the short form where that says all."""
    form = _short if program.is_short else _long
    declared = "".join(f"{c.name} = {c}\n" for c in program.hidden)
    inputs = ", ".join(f'"{ours}": "{theirs}"' for ours, theirs in program.inputs.items())
    hidden = ", ".join(c.name for c in program.hidden)
    kind = "GraphProgram" if program.is_short else "Program"
    return (
        f"{declared}\n{program.name} = {kind}(\n"
        f'    name="{program.name}",\n'
        f'    task="{program.task}",\n'
        f"    inputs={{{inputs}}},\n"
        f"    hidden=({hidden},),\n"
        f"{form(program)}"
        f"    steps={program.steps},\n"
        ")\n"
    )


def _short(program: Program) -> str:
    (phase,) = program.phases
    mask = "" if phase.mask is None else f"    mask={phase.mask},\n"
    return (
        f"    init={_named(program.init)},\n"
        f"    select={phase.select},\n"
        f"{mask}"
        f"    update={_named(phase.update)},\n"
        f"{_predictions(program)}"
    )


def _long(program: Program) -> str:
    phases = "".join(f"        {_phase(phase)},\n" for phase in program.phases)
    sees = "    sees_all=True,\n" if program.sees_all else ""
    init = f"    init={_named(program.init)},\n" if program.init else ""
    conclude = f"    conclude={_named(program.conclude)},\n" if program.conclude else ""
    reasons = "".join(f'        "{name}": "{why}",\n' for name, why in program.unclaimed.items())
    unclaimed = f"    unclaimed={{\n{reasons}    }},\n" if reasons else ""
    return f"{sees}{init}    phases=(\n{phases}    ),\n{conclude}{_predictions(program)}{unclaimed}"


def _phase(phase: Phase) -> str:
    inner = "            "
    mask = "" if phase.mask is None else f"{inner}mask={phase.mask},\n"
    otherwise = f"{inner}otherwise={phase.otherwise},\n"
    update = f"{inner}update={_named(phase.update, inner)},\n" if phase.update else ""
    return f"Phase(\n{inner}select={phase.select},\n{mask}{otherwise}{update}        )"


def _predictions(program: Program) -> str:
    def referred(parts: Mapping[str, Any]) -> str:
        return "{" + ", ".join(f'"{name}": {c.name}' for name, c in parts.items()) + "}"

    return f"    hints={referred(program.hints)},\n    output={referred(program.output)},\n"


def _named(parts: Mapping[str, Any], indent: str = "    ") -> str:
    lines = "".join(f"{indent}    {name}={value},\n" for name, value in parts.items())
    return f"dict(\n{lines}{indent})"
