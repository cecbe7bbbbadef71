"""What a node's state is made of: named variables of a few kinds."""

from dataclasses import dataclass
from enum import Enum

from mechgap.tasks.specs import Feature, Location, Stage, Type


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

    def feature(self, name: str, stage: Stage) -> Feature:
        """The prediction, of that name, that this component is."""
        location = Location.GRAPH if self.kind is Kind.TOTAL else Location.NODE
        return Feature(name, stage, location, HINT_TYPE[self.kind], max(1, len(self.classes)))


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
