"""The words that a rule can be made of: what a task's inputs and trace give a meaning to.

A word is an expression of the language, so a rule that is found is a piece of a program. Besides
inputs and hints there are words for what follows from the trace: `was_visit` (the flag one step
ago) and `level` (the step in which it was set). In a phase after the first there are also words for
what a node has seen in earlier ones: `met_0` is whom it attended to in phase 0, `saw_0_visit` that
node's flag.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mechgap.programs.components import HINT_TYPE, Bool, Class, Component, Float, Kind, Pointer
from mechgap.programs.expressions import Expression, Name, Not, Side, edge, equal
from mechgap.programs.library import mechanisms
from mechgap.tasks.specs import Feature, Location, Task, Type

INPUTS: Mapping[str, str] = {"idx": "pos", "start": "s", "weight": "A", "link": "adj"}
"""The names that programs give to CLRS's inputs."""
LEVEL, WAS, MET, SAW = "level", "was_", "met_", "saw_"
_KINDS = {type: kind for kind, type in HINT_TYPE.items() if kind is not Kind.TOTAL}
"""Of hints that nodes have."""


@dataclass(frozen=True)
class Words:
    """What rules of one phase can say."""

    inputs: Mapping[str, str]
    """The names of the task's inputs."""
    hints: Mapping[str, Component]
    """Which component each hint of the trace is."""
    derived: tuple[Component, ...] = ()
    """What follows from the trace, or was seen in earlier phases."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Of what is derived, the flag that it is derived from."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of flags that nodes have."""
        found = ["start"] if "start" in self.inputs else []
        for component in self._components:
            if component.kind in (Kind.BOOL, Kind.CHOICE):
                found.append(component.name)
            found += component.classes
        return tuple(found)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of numbers that nodes have."""
        kept = [c.name for c in self._components if c.kind is Kind.FLOAT]
        return ("idx", *kept)

    @property
    def pointers(self) -> tuple[str, ...]:
        """Names of pointers."""
        return tuple(c.name for c in self._components if c.kind is Kind.POINTER)

    @property
    def _components(self) -> Iterator[Component]:
        yield from dict.fromkeys((*self.hints.values(), *self.derived))

    @property
    def keys(self) -> tuple[Expression, ...]:
        """What a key is a sum of: numbers of the sender and of the edge."""
        weight = [edge.weight] if "weight" in self.inputs else []
        return (*(Name(Side.OTHER, name) for name in self.numbers), *weight)

    @property
    def literals(self) -> tuple[Expression, ...]:
        """Flags of the pair, and their negations."""
        pairs: list[Expression] = [edge.loop, edge.link]
        for name in self.pointers:
            pairs.append(equal(Name(Side.OTHER, name), Name(Side.SELF, "idx")))
            pairs.append(equal(Name(Side.SELF, name), Name(Side.OTHER, "idx")))
        return tuple(literal for flag in pairs for literal in (flag, Not(flag)))

    @property
    def of_a_node(self) -> tuple[Expression, ...]:
        """Flags of a node: whom a rule is about, and who passes its mask."""
        own: list[Expression] = [Name(Side.SELF, name) for name in self.flags]
        return (*own, *(equal(Name(Side.SELF, p), Name(Side.SELF, "idx")) for p in self.pointers))

    def after_phase(self, phase: int) -> "Words":
        """The words of the next phase: what a node has seen in this one can be said, too."""
        seen = [Bool(f"{SAW}{phase}_{flag}") for flag in self.flags]
        sources = {f"{SAW}{phase}_{flag}": flag for flag in self.flags}
        return replace(
            self,
            derived=(*self.derived, Pointer(f"{MET}{phase}"), *seen),
            sources={**self.sources, **sources},
        )


def is_derived(name: str) -> bool:
    """Whether a word is neither input nor hint."""
    return name == LEVEL or name.startswith((WAS, MET, SAW))


def length(*expressions: Expression) -> int:
    """How many words some expressions have; those that no hint says count twice."""
    read = [part.name for e in expressions for part in e.walk() if isinstance(part, Name)]
    return sum(1 + is_derived(name) for name in read)


def words_of(task: Task, without: Collection[str] = ()) -> Words:
    """The words of a task's first phase, under the names that the library's programs use.

    Args:
        task: With hints of nodes.
        without: Hints that there are to be no words for.
    """
    named = {name: c for program in mechanisms(task) for name, c in program.hints.items()}
    hints = {
        f.name: named.get(f.name) or _component(f)
        for f in task.hints
        if f.location is Location.NODE and f.name not in without
    }
    inputs = {ours: theirs for ours, theirs in INPUTS.items() if _is_given(theirs, task)}
    lasting = [label for c in hints.values() for label in _flags(c)]
    derived = [Bool(WAS + flag) for flag in lasting]
    sources = {WAS + flag: flag for flag in lasting}
    flag = next((c.name for c in hints.values() if c.kind is Kind.BOOL), None)
    if flag is not None and not any(c.name == LEVEL for c in hints.values()):
        derived.append(Float(LEVEL))
        sources[LEVEL] = flag
    return Words(inputs, hints, tuple(derived), sources)


def _is_given(name: str, task: Task) -> bool:
    """Whether an input says anything: weights do where there are any."""
    if name == "A":
        return task.weighted
    return name in {f.name for f in task.inputs}


def _flags(component: Component) -> tuple[str, ...]:
    """The flags of a component that last (a choice is made anew in every step), but for the first
    of a class, which says that no other is set."""
    return (component.name,) if component.kind is Kind.BOOL else component.classes[1:]


def _component(feature: Feature) -> Component:
    name = feature.name.removesuffix("_h")
    if feature.type is Type.CATEGORICAL:
        return Class(name, *(f"{name}{k}" for k in range(feature.categories)))
    return Component(name, _KINDS[feature.type])
