"""Programs that select several times in a hint step: phases, and what they conclude.

A *phase* is a selection with its own mask, as in a `GraphProgram`. A *signal* is evaluated in its
phase for every node, where nobody was selected with the `default` as `other`: the node itself, or
the node that a pointer of its own means. It lasts until its phase comes again.

At the end of the step the program *concludes*: classes and choices are decided from the signals,
and totals grow.
Through the step they are read as they were before it.

In the beginning flags are not set, a class is its first, a choice is the lowest node, a pointer
means the node itself, numbers are 0, and `init` says what else: CLRS's first hint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mechgap.programs.expressions import Add, Expression, Name, Not, Scale, Side, Where
from mechgap.programs.language import (
    GraphProgram,
    Program,
    Selection,
    named,
    opening,
    referred,
)


@dataclass(frozen=True)
class Becomes:
    """The next class of a node: the last of these whose condition holds, else the one it has."""

    conditions: Mapping[str, Expression]

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={condition}" for name, condition in self.conditions.items())
        return f"becomes({listed})"


def becomes(**conditions: Expression) -> Becomes:
    """Change a node's class: ``becomes(black=self.finished)``."""
    return Becomes(conditions)


@dataclass(frozen=True)
class First:
    """One node of the whole graph: that with the first flag, or, if nobody has it, the second, ….

    Of several, one that has later flags as well; then the lowest.
    """

    flags: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"first({', '.join(map(str, self.flags))})"


def first(*flags: Expression) -> First:
    """Choose a node: ``first(self.entered, self.white)``."""
    return First(flags)


@dataclass(frozen=True)
class Grows:
    """A total that grows by so much for each of the flags that any node has."""

    by: float
    flags: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"grows({self.by:g}, {', '.join(map(str, self.flags))})"


def grows(by: float, *flags: Expression) -> Grows:
    """Count steps in which something happens: ``grows(0.01, self.finished)``."""
    return Grows(by, flags)


@dataclass(frozen=True)
class Linked:
    """A pointer to the one node that has a flag, where there is one and a node links to it."""

    links: Expression
    """Whether the node links."""
    to: Expression
    """The flag of the node that it links to; at most one has it."""
    otherwise: Expression

    def __str__(self) -> str:
        return f"linked({self.links}, {self.to}, {self.otherwise})"


def linked(links: Expression, to: Expression, otherwise: Expression) -> Linked:
    """Point to the node that has a flag: ``linked(self.finished, self.tail, self.idx)``."""
    return Linked(links, to, otherwise)


Conclusion = Becomes | First | Grows | Linked | Expression


@dataclass(frozen=True)
class Phase:
    """One selection."""

    select: Selection
    mask: Expression | None = None
    """Who may be selected; everyone if None."""
    default: Name | Where | None = None
    """Whom to attend to where nobody passes: a pointer's node, or, by a flag, one of two; the node
    itself if None."""
    signal: Mapping[str, Expression] = field(default_factory=dict)
    """Flags, pointers and numbers, for every node."""

    @property
    def defaults(self) -> Mapping[str, Expression | None]:
        """The pointers that are followed by default, and where: None for everywhere."""
        match self.default:
            case Where(flag, Name(_, then), Name(_, otherwise)):
                return {then: flag, otherwise: Not(flag)}
            case Name(_, name):
                return {name: None}
        return {}

    def __str__(self) -> str:
        inner = "            "
        mask = "" if self.mask is None else f"{inner}mask={self.mask},\n"
        default = "" if self.default is None else f"{inner}default={self.default},\n"
        signal = f"{inner}signal={named(self.signal, inner)},\n" if self.signal else ""
        return f"Phase(\n{inner}select={self.select},\n{mask}{default}{signal}        )"


@dataclass(frozen=True, kw_only=True)
class PhasedProgram(Program):
    """A graph algorithm whose hint step has several phases."""

    phases: tuple[Phase, ...]
    conclude: Mapping[str, Conclusion]
    """Classes, choices, totals, and pointers that follow from others, at the end of the step."""
    init: Mapping[str, Expression] = field(default_factory=dict)
    """What starts otherwise than all else, from each node's own inputs."""
    sees_all: bool = False
    """Whether nodes look at all nodes; else, at their neighbours and themselves."""

    def __str__(self) -> str:
        return source(self)

    def __hash__(self) -> int:
        return hash(source(self))

    @property
    def selections(self) -> int:
        """How often a node selects in a step."""
        return len(self.phases)

    def set_in(self, name: str) -> int | None:
        """The phase that a signal is set in; None for what is no signal."""
        return next((i for i, phase in enumerate(self.phases) if name in phase.signal), None)

    @property
    def counts(self) -> Mapping[str, tuple[float, Name]]:
        """The numbers that go up by so much with a flag, ``self.n + 0.01 * other.flag``."""
        found = {}
        for phase in self.phases:
            for name, value in phase.signal.items():
                match value:
                    case Add(Name(Side.SELF, own), Scale(by, Name() as flag)) if own == name:
                        found[name] = (by, flag)
        return found

    def fed_back(self, name: str) -> bool:
        """Whether a component is a hint that is claimed, and so comes back in the next step."""
        claimed = (c.name for hint, c in self.hints.items() if hint not in self.unclaimed)
        return name in claimed


AnyProgram = GraphProgram | PhasedProgram
"""A program, however often it selects in a step."""


def source(program: PhasedProgram) -> str:
    """The program as Python text; running it gives an equal program."""
    phases = "".join(f"        {phase},\n" for phase in program.phases)
    reasons = "".join(f'        "{name}": "{why}",\n' for name, why in program.unclaimed.items())
    init = f"    init={named(program.init)},\n" if program.init else ""
    sees = "    sees_all=True,\n" if program.sees_all else ""
    unclaimed = f"    unclaimed={{\n{reasons}    }},\n" if reasons else ""
    return (
        f"{opening(program)}{sees}{init}"
        f"    phases=(\n{phases}    ),\n"
        f"    conclude={named(program.conclude)},\n"
        f"    hints={referred(program.hints)},\n"
        f"    output={referred(program.output)},\n"
        f"{unclaimed}"
        ")\n"
    )
