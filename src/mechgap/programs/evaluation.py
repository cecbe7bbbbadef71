"""What expressions are worth, for every receiver and sender, in NumPy or JAX."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

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


def changed(
    before: Mapping[str, Float[np.ndarray, "batch nodes"]],
    after: Mapping[str, Float[np.ndarray, "batch nodes"]],
) -> Bool[np.ndarray, "batch nodes"]:
    """Which nodes have another state than before."""
    return np.any([after[name] != before[name] for name in after], axis=0)


def pointed(
    values: Float[np.ndarray, "*times batch nodes"], positions: Float[np.ndarray, "batch nodes"]
) -> Int[np.ndarray, "*times batch nodes"]:
    """The nodes at given positions."""
    return np.abs(values[..., None] - positions[:, None, :]).argmin(-1)


class Foils(NamedTuple):
    """Whom a selection could have been wrong about; the selected sender where there is nobody."""

    key: Int[np.ndarray, "*batch receivers"]
    """Of those that pass the mask, the one that would be selected last."""
    mask: Int[np.ndarray, "*batch receivers"]
    """Of the others that are in sight and do not pass it, the one that would be selected first."""


def foils(
    score: Float[np.ndarray, "batch receivers senders"],
    support: Bool[np.ndarray, "batch receivers senders"],
    eligible: Bool[np.ndarray, "batch receivers senders"],
    sender: Int[np.ndarray, "batch receivers"],
) -> Foils:
    """A wrong sender by each part of a selection, where anyone was eligible."""
    anyone = eligible.any(-1)
    last = np.where(eligible, score, -np.inf).argmax(-1)
    barred = support & ~eligible & ~np.eye(score.shape[-1], dtype=bool)
    first = np.where(barred, score, np.inf).argmin(-1)
    return Foils(np.where(anyone, last, sender), np.where(anyone & barred.any(-1), first, sender))


def closest(
    score: Float[np.ndarray, "batch receivers senders"],
) -> Float[np.ndarray, "batch"]:
    """Per graph, the smallest difference between a receiver's best and second-best score."""
    if score.shape[-1] < 2:
        return np.full(len(score), np.inf)
    best, second = np.moveaxis(np.partition(score, 1, axis=-1)[..., :2], -1, 0)
    with np.errstate(invalid="ignore"):  # inf - inf where nobody was eligible
        return np.nan_to_num(second - best, nan=np.inf, posinf=np.inf).min(-1)
