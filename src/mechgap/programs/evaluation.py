"""What expressions are worth, for every receiver and sender, in NumPy or JAX."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

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
from mechgap.programs.language import Program

Values = Callable[[Name], Any]


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


def pairwise(given: Mapping[str, Any], state: Mapping[str, Any]) -> Values:
    """Every name's value for every receiver (first axis) and sender (second)."""
    return partial(_pairwise, given, state)


def _pairwise(given: Mapping[str, Any], state: Mapping[str, Any], name: Name) -> Any:
    if name.side is Side.EDGE:
        return np.eye(given["adj"].shape[-1]) if name.name == "loop" else given[name.name]
    node = state[name.name] if name.name in state else given[name.name]
    return node[:, None, :] if name.side is Side.OTHER else node[:, :, None]


def program_inputs(program: Program, inputs: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """A batch's inputs by the program's names, and the adjacency."""
    named = {**program.inputs, "adj": "adj"}
    return {ours: inputs[theirs].astype(dtype) for ours, theirs in named.items()}


def pointed(
    values: Float[np.ndarray, "*times batch nodes"], positions: Float[np.ndarray, "batch nodes"]
) -> Int[np.ndarray, "*times batch nodes"]:
    """The nodes at given positions."""
    return np.abs(values[..., None] - positions[:, None, :]).argmin(-1)


def closest(
    score: Float[np.ndarray, "batch receivers senders"],
) -> Float[np.ndarray, "batch"]:
    """Per graph, the smallest difference between a receiver's best and second-best score."""
    if score.shape[-1] < 2:
        return np.full(len(score), np.inf)
    best, second = np.moveaxis(np.partition(score, 1, axis=-1)[..., :2], -1, 0)
    with np.errstate(invalid="ignore"):  # inf - inf where nobody was eligible
        return np.nan_to_num(second - best, nan=np.inf, posinf=np.inf).min(-1)
