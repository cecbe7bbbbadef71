"""What expressions are worth, for every receiver and sender, in NumPy or JAX.

`xp` is the arrays' library, `numpy` or `jax.numpy`: a program means the same in both.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from mechgap.programs.expressions import (
    Add,
    And,
    Constant,
    Equal,
    Expression,
    Name,
    Not,
    Or,
    Scale,
    Side,
    Subtract,
    Where,
)
from mechgap.programs.program import Program

Values = Callable[[Name], Any]
State = Mapping[str, Any]
"""Components by name, and the flags of every class; ``[batch, nodes]``."""


def evaluate(expression: Expression, values: Values) -> Any:
    """An expression's value, given that of every name: NumPy's or JAX's. Flags are 0 and 1."""
    if isinstance(expression, Name):
        return values(expression)
    if isinstance(expression, Constant):
        return expression.value
    parts = [evaluate(part, values) for part in expression.children]
    match expression, parts:
        case Not(), [flag]:
            return 1.0 - flag
        case Scale(factor=factor), [value]:
            return factor * value
        case Add(), [left, right]:
            return left + right
        case Subtract(), [left, right]:
            return left - right
        case And(), [left, right]:
            return left * right
        case Or(), [left, right]:
            return left + right - left * right
        case Equal(), [left, right]:
            return (left == right) * 1.0
        case Where(), [flag, then, otherwise]:
            return flag * then + (1.0 - flag) * otherwise
    raise TypeError(f"not an expression: {expression!r}")


@runtime_checkable
class Sight(Protocol):
    """What a program is given, and who sees whom: matrices of all pairs, or lists of some."""

    @property
    def named(self) -> Mapping[str, Any]:
        """Inputs by the program's names."""
        ...

    @property
    def positions(self) -> Any:
        """Of the nodes: ``[batch, nodes]``."""
        ...

    @property
    def support(self) -> Any:
        """Which pairs see each other: neighbours in either direction, and everybody itself."""
        ...

    def of_pairs(self, state: State) -> Values:
        """Every name's value for every pair of a receiver and a sender."""
        ...

    def chosen(self, eligible: Any, score: Any, xp: Any) -> tuple[Any, Any]:
        """For every receiver whether any pair is eligible, and the sender of its smallest score."""
        ...

    def at_sender(self, expression: Expression, state: State, sender: Any, xp: Any) -> Any:
        """An expression for every receiver, with the node attended to as `other`."""
        ...

    def nodes_at(self, values: Any) -> Any:
        """The nodes whose positions these are."""
        ...

    def least(self, score: Any) -> Any:
        """For every pair, the smallest score of its receiver's pairs."""
        ...

    def closest(self, eligible: Any, score: Any, xp: Any) -> Any:
        """Per graph, the smallest difference between a receiver's best and second-best score."""
        ...

    def several(self, eligible: Any, xp: Any) -> Any:
        """Per graph, whether any receiver has more than one eligible sender."""
        ...

    def passes_beyond(self, mask: Expression | None, state: State, pointer: Any, xp: Any) -> Any:
        """Per graph, whether anyone passes the mask who is out of sight, at either end of a
        pointer."""
        ...


class Given(NamedTuple):
    """As matrices, in which the first axis is the receivers' and the second the senders'."""

    named: Mapping[str, Any]
    positions: Any
    support: Any

    def of_pairs(self, state: State) -> Values:
        """Every name's value for every receiver and sender."""
        return of_pairs(self, state)

    def chosen(self, eligible: Any, score: Any, xp: Any) -> tuple[Any, Any]:
        """The smallest of each row, of equals the first."""
        return eligible.any(-1), xp.where(eligible, score, xp.inf).argmin(-1)

    def at_sender(self, expression: Expression, state: State, sender: Any, xp: Any) -> Any:
        """An expression for every receiver, with the node attended to as `other`."""
        return at_sender(expression, self.of_pairs(state), sender, xp)

    def nodes_at(self, values: Any) -> Any:
        """The nodes at given positions."""
        return pointed(values, self.positions)

    def least(self, score: Any) -> Any:
        """For every pair, the smallest score of its row."""
        return score.min(-1, keepdims=True)

    def closest(self, eligible: Any, score: Any, xp: Any) -> Any:
        """Per graph, the smallest difference between a receiver's best and second-best score."""
        score = xp.where(eligible, score, xp.inf)
        best = xp.arange(score.shape[-1]) == score.argmin(-1)[..., None]
        second = xp.where(best, xp.inf, score).min(-1)
        return (second - xp.where(xp.isinf(second), 0.0, score.min(-1))).min(-1)

    def several(self, eligible: Any, xp: Any) -> Any:
        """Per graph, whether any receiver has more than one eligible sender."""
        return (xp.sum(eligible, -1) > 1).any(-1)

    def passes_beyond(self, mask: Expression | None, state: State, pointer: Any, xp: Any) -> Any:
        """Per graph, whether anyone passes the mask who is out of sight, at either end of a
        pointer."""
        along = xp.eye(pointer.shape[-1], dtype=bool)[pointer]
        beyond = (along | xp.swapaxes(along, -1, -2)) & ~self.support
        if mask is not None:
            beyond = beyond & (evaluate(mask, self.of_pairs(state)) > 0.5)
        return beyond.any((-1, -2))


def given(program: Program, inputs: Mapping[str, Any], dtype: Any) -> Given:
    """A batch's inputs as a program reads them."""
    adjacent = inputs["adj"] > 0
    oneself = np.eye(adjacent.shape[-1], dtype=bool)
    return Given(
        {ours: inputs[theirs].astype(dtype) for ours, theirs in program.inputs.items()},
        inputs["pos"].astype(dtype),
        adjacent | adjacent.swapaxes(-1, -2) | oneself | program.sees_all,
    )


def of_pairs(given: Given, state: State) -> Values:
    """Every name's value for every receiver (first axis) and sender (second)."""
    return partial(_of_pairs, given, state)


def _of_pairs(given: Given, state: State, name: Name) -> Any:
    if name.side is Side.EDGE:
        return np.eye(given.support.shape[-1]) if name.name == "loop" else given.named[name.name]
    node = of_node(given, state)(name)
    return node[:, None, :] if name.side is Side.OTHER else node[:, :, None]


def of_node(given: Sight, state: State) -> Values:
    """Every name's value at each node itself."""
    return lambda name: state[name.name] if name.name in state else given.named[name.name]


def at_sender(expression: Expression, values: Values, sender: Any, xp: Any) -> Any:
    """An expression for every receiver, with the node attended to as `other`."""
    pairs = xp.broadcast_to(evaluate(expression, values), (*sender.shape, sender.shape[-1]))
    return xp.take_along_axis(pairs, sender[..., None], axis=-1)[..., 0]


def pointed(values: Any, positions: Any) -> Int[Any, "*times batch nodes"]:
    """The nodes at given positions."""
    return abs(values[..., None] - positions[:, None, :]).argmin(-1)
