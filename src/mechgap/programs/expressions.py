"""Expressions of graph programs: what a node can say about itself, another, its input, an edge.

`self.visit`, `other.idx`, `init.start`, `edge.weight` name values; `&`, `|`, `~` combine flags,
`+`, `-` and multiplication by a number combine numbers (a flag counts as 0 or 1). Programs with
phases also ask whether two pointers mean one node (`equal`) and choose between two (`where`). An
expression is a frozen tree: it can be compared, walked, and prints back as the text that made it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum

Number = int | float


class Side(Enum):
    """Whose value a name means."""

    SELF = "self"
    OTHER = "other"
    INIT = "init"
    EDGE = "edge"


class Expression:
    """Base of all expressions: operators, walking, printing."""

    precedence = 9

    def __and__(self, right: "Expression") -> "And":
        return And(self, as_expression(right))

    def __or__(self, right: "Expression") -> "Or":
        return Or(self, as_expression(right))

    def __invert__(self) -> "Not":
        return Not(self)

    def __add__(self, right: "Expression | Number") -> "Add":
        return Add(self, as_expression(right))

    def __radd__(self, left: "Number") -> "Add":
        return Add(as_expression(left), self)

    def __sub__(self, right: "Expression | Number") -> "Subtract":
        return Subtract(self, as_expression(right))

    def __rsub__(self, left: "Number") -> "Subtract":
        return Subtract(as_expression(left), self)

    def __mul__(self, factor: "Number") -> "Scale":
        return Scale(float(factor), self)

    def __rmul__(self, factor: "Number") -> "Scale":
        return Scale(float(factor), self)

    @property
    def children(self) -> tuple["Expression", ...]:
        """The expressions that this one is made of."""
        values = (getattr(self, f.name) for f in fields(self))  # pyright: ignore[reportArgumentType]
        return tuple(value for value in values if isinstance(value, Expression))

    def walk(self) -> Iterator["Expression"]:
        """This expression and all inside it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def _inside(self, child: "Expression", tighter: bool = False) -> str:
        """A child's text, in brackets where it binds less than this does."""
        loose = child.precedence < self.precedence + tighter
        return f"({child})" if loose else str(child)


@dataclass(frozen=True)
class Name(Expression):
    """A value by name: a component of the state, or an input of a node or an edge."""

    side: Side
    name: str

    def __str__(self) -> str:
        return f"{self.side.value}.{self.name}"


@dataclass(frozen=True)
class Constant(Expression):
    """A number."""

    value: float

    def __str__(self) -> str:
        return f"{self.value:g}"


@dataclass(frozen=True)
class Not(Expression):
    """The flag is not set."""

    flag: Expression
    precedence = 8

    def __str__(self) -> str:
        return f"~{self._inside(self.flag)}"


@dataclass(frozen=True)
class Scale(Expression):
    """A number of times a value."""

    factor: float
    value: Expression
    precedence = 7

    def __str__(self) -> str:
        return f"{self.factor:g} * {self._inside(self.value, tighter=True)}"


@dataclass(frozen=True)
class Add(Expression):
    """A sum."""

    left: Expression
    right: Expression
    precedence = 6

    def __str__(self) -> str:
        return f"{self._inside(self.left)} + {self._inside(self.right, tighter=True)}"


@dataclass(frozen=True)
class Subtract(Expression):
    """A difference."""

    left: Expression
    right: Expression
    precedence = 6

    def __str__(self) -> str:
        return f"{self._inside(self.left)} - {self._inside(self.right, tighter=True)}"


@dataclass(frozen=True)
class And(Expression):
    """Both flags are set."""

    left: Expression
    right: Expression
    precedence = 5

    def __str__(self) -> str:
        return f"{self._inside(self.left)} & {self._inside(self.right, tighter=True)}"


@dataclass(frozen=True)
class Or(Expression):
    """One of the flags is set, or both."""

    left: Expression
    right: Expression
    precedence = 4

    def __str__(self) -> str:
        return f"{self._inside(self.left)} | {self._inside(self.right, tighter=True)}"


@dataclass(frozen=True)
class Equal(Expression):
    """Two pointers, or a pointer and a position, mean the same node."""

    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"equal({self.left}, {self.right})"


@dataclass(frozen=True)
class Where(Expression):
    """One value where a flag is set, another where not."""

    flag: Expression
    then: Expression
    otherwise: Expression

    def __str__(self) -> str:
        return f"where({self.flag}, {self.then}, {self.otherwise})"


def equal(left: Expression, right: Expression) -> Equal:
    """Whether two pointers mean the same node: ``equal(other.pi, self.idx)``."""
    return Equal(left, right)


def where(flag: Expression, then: Expression, otherwise: "Expression | Number") -> Where:
    """One value where a flag is set, another where not."""
    return Where(flag, then, as_expression(otherwise))


def conjuncts(expression: Expression | None) -> Iterator[Expression]:
    """The parts of an And, or the expression itself; none where there is none."""
    if isinstance(expression, And):
        yield from conjuncts(expression.left)
        yield from conjuncts(expression.right)
    elif expression is not None:
        yield expression


def disjuncts(expression: Expression) -> Iterator[Expression]:
    """The parts of an Or, or the expression itself."""
    if isinstance(expression, Or):
        yield from disjuncts(expression.left)
        yield from disjuncts(expression.right)
    else:
        yield expression


def sides(expression: Expression) -> set[Side]:
    """Whose values an expression reads."""
    return {part.side for part in expression.walk() if isinstance(part, Name)}


def as_expression(value: "Expression | Number") -> Expression:
    """A number as a constant; an expression as it is."""
    return value if isinstance(value, Expression) else Constant(float(value))


@dataclass(frozen=True)
class Names:
    """A side whose attributes are names: ``other.visit``.

    >>> str(other.visit & ~self.visit)
    'other.visit & ~self.visit'
    """

    side: Side

    def __getattr__(self, name: str) -> Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(self.side, name)


self = Names(Side.SELF)
"""The node that is updated: its state and its inputs."""
other = Names(Side.OTHER)
"""The node that it attends to."""
init = Names(Side.INIT)
"""The updated node's inputs."""
edge = Names(Side.EDGE)
"""The edge between them; `edge.loop` is set where both are the same node."""
zero = Constant(0.0)
"""The number 0, as a starting value."""
