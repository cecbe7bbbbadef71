"""What a hint step concludes when its phases are over: classes, choices, totals, further pointers.

Through the step they are read as they were before it; all are decided at once at its end.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mechgap.programs.expressions import Expression, as_expression, number_text


@dataclass(frozen=True)
class Becomes:
    """The next class of a node: the last of these whose condition holds, else the one it has."""

    conditions: Mapping[str, Expression]

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={condition}" for name, condition in self.conditions.items())
        return f"becomes({listed})"


def becomes(**conditions: Expression) -> Becomes:
    """Change a node's class: ``becomes(black=self.finished)``."""
    return Becomes({name: as_expression(value) for name, value in conditions.items()})


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
    return First(tuple(map(as_expression, flags)))


@dataclass(frozen=True)
class Grows:
    """A total that grows by so much for each of the flags that any node has."""

    by: float
    flags: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"grows({number_text(self.by)}, {', '.join(map(str, self.flags))})"


def grows(by: float, *flags: Expression) -> Grows:
    """Count steps in which something happens: ``grows(0.01, self.finished)``."""
    return Grows(float(by), tuple(map(as_expression, flags)))


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
    return Linked(as_expression(links), as_expression(to), as_expression(otherwise))


Conclusion = Becomes | First | Grows | Linked | Expression


def parts(conclusion: Conclusion) -> Iterator[Expression]:
    """The expressions that a conclusion is made of."""
    match conclusion:
        case Becomes(conditions):
            yield from conditions.values()
        case First(flags) | Grows(_, flags):
            yield from flags
        case Linked(links, to, otherwise):
            yield from (links, to, otherwise)
        case Expression():
            yield conclusion
