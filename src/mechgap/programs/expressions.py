"""Expressions of graph programs: what a node can say about itself, another, its input, an edge.

`self.visit`, `other.idx`, `init.start`, `edge.weight` name values; `&`, `|`, `~` combine flags,
`+`, `-` and multiplication by a number combine numbers (a flag counts as 0 or 1). `equal` asks
whether two pointers mean one node, `where` chooses between two values. An expression is a frozen
tree: it can be compared and walked, prints as the text that made it, and is read from that text
without running it (`parse`).
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from math import isfinite
from numbers import Real

from mechgap.errors import InvalidInput

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
        return Scale(as_number(factor), self)

    def __rmul__(self, factor: "Number") -> "Scale":
        return Scale(as_number(factor), self)

    def __neg__(self) -> "Scale":
        return Scale(-1.0, self)

    def __bool__(self) -> bool:
        raise InvalidInput(
            f"'{self}' has no truth of its own before a program runs. Combine flags with &, | and "
            "~ (not `and`, `or`, `not`), and compare pointers with equal(…, …)"
        )

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

    def replaced(self, side: Side, by: Side) -> "Expression":
        """The same expression with the names of one side read at another."""
        changed = {
            f.name: value.replaced(side, by)
            for f in fields(self)  # pyright: ignore[reportArgumentType]
            if isinstance(value := getattr(self, f.name), Expression)
        }
        return replace(self, **changed)  # pyright: ignore[reportArgumentType]

    def _inside(self, child: "Expression", tighter: bool = False) -> str:
        """A child's text, in brackets where it binds less than this does."""
        loose = child.precedence < self.precedence + tighter
        return f"({child})" if loose else str(child)


@dataclass(frozen=True)
class Name(Expression):
    """A value by name: a component of the state, or an input of a node or an edge."""

    side: Side
    name: str

    def replaced(self, side: Side, by: Side) -> "Name":
        """The same name at another side, if it is of the first."""
        return Name(by, self.name) if self.side is side else self

    def __str__(self) -> str:
        return f"{self.side.value}.{self.name}"


@dataclass(frozen=True)
class Constant(Expression):
    """A number."""

    value: float

    def __str__(self) -> str:
        return number_text(self.value)


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
        return f"{number_text(self.factor)} * {self._inside(self.value, tighter=True)}"


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
    return Equal(as_expression(left), as_expression(right))


def where(flag: Expression, then: "Expression | Number", otherwise: "Expression | Number") -> Where:
    """One value where a flag is set, another where not."""
    return Where(as_expression(flag), as_expression(then), as_expression(otherwise))


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


def names(expression: Expression) -> set[str]:
    """The names that an expression reads, on any side."""
    return {part.name for part in expression.walk() if isinstance(part, Name)}


def as_expression(value: "Expression | Number") -> Expression:
    """A number as a constant; an expression as it is."""
    return value if isinstance(value, Expression) else Constant(as_number(value))


def as_number(value: object) -> float:
    """A number of the language; nothing else is one."""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise InvalidInput(
            f"a program is made of names such as self.visit, and of numbers; got {value!r}. "
            "Compare pointers with equal(…, …), not ==; multiply by numbers only"
        )
    return float(value)


def number_text(value: float) -> str:
    """A number's shortest text that means this number.

    >>> number_text(1.0), number_text(0.1 + 0.2)
    ('1', '0.30000000000000004')
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


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

    def __str__(self) -> str:
        return self.side.value


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


_BINARY: dict[type[ast.operator], type[Add | Subtract | And | Or]] = {
    ast.Add: Add,
    ast.Sub: Subtract,
    ast.BitAnd: And,
    ast.BitOr: Or,
}


def parse(text: str) -> Expression:
    """The expression that a text means. The text is read, never run.

    >>> parse("other.visit & ~self.visit") == other.visit & ~self.visit
    True
    """
    try:
        return _meaning(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InvalidInput(f"'{text}' is no expression of the language: {error}") from error


def _meaning(tree: ast.expr) -> Expression:
    match tree:
        case ast.Attribute(ast.Name(side), name) if side in {s.value for s in Side}:
            return Name(Side(side), name)
        case ast.Constant(value):
            return Constant(as_number(value))
        case ast.UnaryOp(ast.Invert(), flag):
            return Not(_meaning(flag))
        case ast.UnaryOp(ast.USub(), ast.Constant(value)):
            return Constant(-as_number(value))
        case ast.BinOp(left, ast.Mult(), right):
            factor = _meaning(left)
            if isinstance(factor, Constant):
                return Scale(factor.value, _meaning(right))
        case ast.BinOp(left, operator, right) if type(operator) in _BINARY:
            return _BINARY[type(operator)](_meaning(left), _meaning(right))
        case ast.Call(ast.Name("equal"), [left, right], []):
            return Equal(_meaning(left), _meaning(right))
        case ast.Call(ast.Name("where"), [flag, then, otherwise], []):
            return Where(_meaning(flag), _meaning(then), _meaning(otherwise))
    raise ValueError(f"'{ast.unparse(tree)}' is not part of it")
