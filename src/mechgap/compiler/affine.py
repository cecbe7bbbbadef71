"""Affine forms: an expression as numbers times names, plus a constant.

Every linear layer of the network computes affine forms, so this is what the compiler works with.
A flag is 0 or 1, so ``~f`` is ``1 - f``. The updated node's input `init.x` is the same as `self.x`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mechgap.errors import InvalidInput
from mechgap.programs.expressions import (
    Add,
    Constant,
    Expression,
    Name,
    Not,
    Scale,
    Side,
    Subtract,
)


class NotAffine(InvalidInput):
    """An expression that no single linear layer computes."""


@dataclass(frozen=True)
class Affine:
    """``Σ coefficient · name + constant``."""

    terms: Mapping[Name, float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, right: "Affine | float") -> "Affine":
        if not isinstance(right, Affine):
            return Affine(self.terms, self.constant + right)
        names = {**self.terms, **right.terms}
        sums = {name: self.terms.get(name, 0.0) + right.terms.get(name, 0.0) for name in names}
        kept = {name: value for name, value in sums.items() if value != 0.0}
        return Affine(kept, self.constant + right.constant)

    def __sub__(self, right: "Affine | float") -> "Affine":
        return self + (-1.0 * right)

    def __rmul__(self, factor: float) -> "Affine":
        scaled = {name: factor * value for name, value in self.terms.items()}
        return Affine({n: v for n, v in scaled.items() if v != 0.0}, factor * self.constant)

    def side(self, *sides: Side) -> "Affine":
        """Only the terms of these sides, without the constant."""
        return Affine({name: value for name, value in self.terms.items() if name.side in sides})

    def range(self, bounds: Callable[[Name], tuple[float, float]]) -> tuple[float, float]:
        """The smallest and largest value, given those of every name."""
        low = high = self.constant
        for name, value in self.terms.items():
            ends = [value * end for end in bounds(name)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def __str__(self) -> str:
        parts = [f"{value:g}·{name}" for name, value in self.terms.items()]
        return " + ".join([*parts, f"{self.constant:g}"])


def term(side: Side, name: str, coefficient: float = 1.0) -> Affine:
    """One name, times a number."""
    return Affine({Name(side, name): coefficient})


def affine(expression: Expression) -> Affine:
    """An expression as an affine form, or the reason why it is none.

    >>> from mechgap.programs.expressions import edge, other, self
    >>> str(affine(other.dist + edge.weight - 2 * self.dist))
    '1·other.dist + 1·edge.weight + -2·self.dist + 0'
    """
    match expression:
        case Name(side, name):
            return term(Side.SELF if side is Side.INIT else side, name)
        case Constant(value):
            return Affine({}, value)
        case Not(flag):
            return Affine({}, 1.0) - affine(flag)
        case Scale(factor, value):
            return factor * affine(value)
        case Add(left, right):
            return affine(left) + affine(right)
        case Subtract(left, right):
            return affine(left) - affine(right)
    raise NotAffine(f"'{expression}' is not affine: & and | of flags are not sums")
