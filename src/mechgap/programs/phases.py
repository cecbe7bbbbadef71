"""A phase: every node selects one of those that it sees, and updates its state by it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from mechgap.errors import InvalidInput
from mechgap.programs.expressions import (
    Expression,
    Name,
    Names,
    Not,
    Number,
    Side,
    Where,
    as_expression,
    names,
    parse,
    self,
)


class Extreme(Enum):
    """Which end of an expression's values is selected."""

    MINIMUM = "minimum"
    MAXIMUM = "maximum"


@dataclass(frozen=True)
class Selection:
    """Attend to the sender with the smallest or largest value; of equals, to the lowest node."""

    extreme: Extreme
    expression: Expression

    @property
    def sign(self) -> float:
        """Times the expression, the value that is smallest where it is selected."""
        return 1.0 if self.extreme is Extreme.MINIMUM else -1.0

    def __str__(self) -> str:
        return f"{self.extreme.value}({self.expression})"


def minimum(expression: Expression | Number) -> Selection:
    """Select the sender whose value is smallest."""
    return Selection(Extreme.MINIMUM, as_expression(expression))


def maximum(expression: Expression | Number) -> Selection:
    """Select the sender whose value is largest."""
    return Selection(Extreme.MAXIMUM, as_expression(expression))


@dataclass(frozen=True)
class Keep:
    """Where nobody passes the mask, a node attends to itself and nothing of it changes."""

    def __str__(self) -> str:
        return "keep"


keep = Keep()

Otherwise = Keep | Names | Name | Where
"""What a node does where nobody passes the mask. `keep`; or it attends to itself (`self`), to a
pointer's node (`self.pi`), or by a flag to one of two, and updates its state by whom it attends
to."""


@dataclass(frozen=True)
class Phase:
    """One selection, and what it changes."""

    select: Selection
    mask: Expression | None = None
    """Who may be selected; everyone in sight if None."""
    otherwise: Otherwise = self
    """What happens where nobody passes the mask."""
    update: Mapping[str, Expression] = field(default_factory=dict)
    """The next values of flags, pointers and numbers, with the node attended to as `other`. They
    last until the phase comes again."""

    def __post_init__(self):
        if not isinstance(self.select, Selection):
            raise InvalidInput(f"a phase selects by minimum(…) or maximum(…); got {self.select!r}")
        if self.mask is not None and not isinstance(self.mask, Expression):
            raise InvalidInput(
                f"a mask is made of flags such as other.visit, with &, | and ~; got {self.mask!r}. "
                "Leave it out where everyone may be selected; compare with equal(…, …), not =="
            )
        elsewhere = isinstance(self.otherwise, Names) and self.otherwise.side is not Side.SELF
        if not isinstance(self.otherwise, Otherwise) or elsewhere:
            raise InvalidInput(
                "where nobody passes the mask a node can keep, or attend to self, to a pointer "
                f"self.… or where(flag, self.…, self.…); got {self.otherwise!r}"
            )
        update = {name: as_expression(value) for name, value in self.update.items()}
        object.__setattr__(self, "update", update)

    @property
    def reads(self) -> set[str]:
        """The names of all that it reads."""
        asked = [e for e in (self.mask, self.otherwise) if isinstance(e, Expression)]
        return set().union(*map(names, [self.select.expression, *self.update.values(), *asked]))

    @property
    def keeps(self) -> bool:
        """Whether nothing changes where nobody passes the mask."""
        return isinstance(self.otherwise, Keep)

    @property
    def followed(self) -> Mapping[str, Expression | None]:
        """The pointers that are followed where nobody passes, and where: None for everywhere."""
        match self.otherwise:
            case Where(flag, Name(_, then), Name(_, otherwise)):
                return {then: flag, otherwise: Not(flag)}
            case Name(_, name):
                return {name: None}
        return {}


def parse_selection(text: str) -> Selection:
    """The selection that a text means, such as ``minimum(other.idx)``."""
    for extreme in Extreme:
        opening = f"{extreme.value}("
        if text.startswith(opening) and text.endswith(")"):
            return Selection(extreme, parse(text[len(opening) : -1]))
    raise InvalidInput(f"a selection is minimum(…) or maximum(…); got '{text}'")


def parse_otherwise(text: str) -> Otherwise:
    """What a text says is done where nobody passes a mask."""
    if text in ("keep", "self"):
        return keep if text == "keep" else self
    found = parse(text)
    if not isinstance(found, Name | Where):
        raise InvalidInput(f"a node can keep, or attend to self or to a pointer; got '{text}'")
    return found
