"""What a graph program means, step by step, in plain NumPy and float64.

This is the reference: compiled networks are compared with it, and its selection (0 or 1) is the
ground-truth attention α* of the measures.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.programs.expressions import (
    Add,
    And,
    Constant,
    Expression,
    Name,
    Not,
    Or,
    Scale,
    Side,
    Subtract,
)
from mechgap.programs.language import Component, Extreme, Fixpoint, GraphProgram, Kind
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Type


class Execution(NamedTuple):
    """A program's run over a batch of graphs."""

    states: Mapping[str, Float[np.ndarray, "times batch nodes"]]
    """Every component at every time; time 0 is the initial state."""
    senders: Int[np.ndarray, "steps batch nodes"]
    """Whom each node attends to in each step: the selected node, or itself."""
    selected: Bool[np.ndarray, "steps batch nodes"]
    """Whether anyone passed the mask; where not, the node kept its state."""
    acceptable: Bool[np.ndarray, "steps batch receivers senders"]
    """Whom a node could attend to as well: those that tie with the selected one but for their
    index, which only breaks ties. Where nobody passed the mask, the node itself."""
    gaps: Float[np.ndarray, "steps batch"]
    """How close the closest race was: the smallest difference between a selected value and the
    next one that competed with it (infinite where nobody competed)."""

    @property
    def attention(self) -> Float[np.ndarray, "steps batch receivers senders"]:
        """The ground-truth attention α*: 1 at the sender attended to, else 0."""
        return np.eye(self.senders.shape[-1])[self.senders]


_Values = Callable[[Name], np.ndarray]


def evaluate(expression: Expression, values: _Values) -> np.ndarray:
    """An expression's value, given that of every name. Flags are 0 and 1."""

    def of(part: Expression) -> np.ndarray:
        return evaluate(part, values)

    match expression:
        case Name():
            return values(expression)
        case Constant(value):
            return np.array(value)
        case Not(flag):
            return 1.0 - of(flag)
        case Scale(factor, value):
            return factor * of(value)
        case Add(left, right):
            return of(left) + of(right)
        case Subtract(left, right):
            return of(left) - of(right)
        case And(left, right):
            return np.minimum(of(left), of(right))
        case Or(left, right):
            return np.maximum(of(left), of(right))
    raise TypeError(f"not an expression: {expression!r}")


def interpret(
    program: GraphProgram, inputs: Mapping[str, np.ndarray], steps: int | None = None
) -> Execution:
    """Run a program on a batch's inputs: `steps` times, or as long as the program says."""
    given = {
        ours: np.asarray(inputs[theirs], np.float64) for ours, theirs in program.inputs.items()
    }
    adjacent = np.asarray(inputs["adj"]) > 0
    support = adjacent | adjacent.swapaxes(-1, -2)
    loop = np.broadcast_to(np.eye(support.shape[-1]), support.shape)
    state = _initial_state(program, given)
    limit = program.steps if steps is None else steps

    states, senders, selected, acceptable, gaps = [state], [], [], [], []
    while not isinstance(limit, int) or len(senders) < limit:
        values = _pairwise(given, state, loop)
        eligible = support.copy()
        if program.mask is not None:
            eligible &= evaluate(program.mask, values) > 0.5
        anyone = eligible.any(-1)
        sign = 1.0 if program.select.extreme is Extreme.MINIMUM else -1.0
        score = np.broadcast_to(sign * evaluate(program.select.expression, values), support.shape)
        score = np.where(eligible, score, np.inf)
        itself = np.arange(support.shape[-1])
        sender = np.where(anyone, score.argmin(-1), itself)
        acceptable.append(_acceptable(program, values, eligible, sender, sign))
        state = {
            component.name: np.where(
                anyone,
                _at(sender, evaluate(program.update[component.name], values), support.shape),
                state[component.name],
            )
            for component in program.hidden
        }
        changed = any(not np.array_equal(state[name], states[-1][name]) for name in state)
        if isinstance(limit, Fixpoint) and not changed:
            break
        states.append(state)
        senders.append(sender)
        selected.append(anyone)
        gaps.append(_closest(score))
    acceptable = acceptable[: len(senders)]
    return Execution(
        states={name: np.stack([s[name] for s in states]) for name in state},
        senders=np.stack(senders) if senders else np.zeros((0, *support.shape[:2]), int),
        selected=np.stack(selected) if selected else np.zeros((0, *support.shape[:2]), bool),
        acceptable=np.stack(acceptable) if acceptable else np.zeros((0, *support.shape), bool),
        gaps=np.stack(gaps) if gaps else np.zeros((0, len(support))),
    )


def _acceptable(
    program: GraphProgram, values: _Values, eligible: np.ndarray, sender: np.ndarray, sign: float
) -> np.ndarray:
    """Eligible senders whose score is the best if indices do not count; else the node itself."""

    def without_indices(name: Name) -> np.ndarray:
        return np.zeros_like(values(name)) if name.name == "idx" else values(name)

    score = sign * evaluate(program.select.expression, without_indices)
    score = np.where(eligible, np.broadcast_to(score, eligible.shape), np.inf)
    tied = eligible & (score <= score.min(-1, keepdims=True))
    chosen = np.arange(eligible.shape[-1]) == sender[..., None]
    return tied | chosen


def _initial_state(program: GraphProgram, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    shape = given["idx"].shape
    return {
        name: np.broadcast_to(evaluate(value, lambda at: given[at.name]), shape).astype(float)
        for name, value in program.init.items()
    }


def _pairwise(
    given: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray], loop: np.ndarray
) -> _Values:
    """Every name's value for every receiver (first axis) and sender (second)."""

    def value(name: Name) -> np.ndarray:
        if name.side is Side.EDGE:
            return loop if name.name == "loop" else given[name.name]
        node = state[name.name] if name.name in state else given[name.name]
        return node[:, None, :] if name.side is Side.OTHER else node[:, :, None]

    return value


def _at(sender: np.ndarray, pairwise: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A pairwise value at each receiver's own sender."""
    whole = np.broadcast_to(pairwise, shape)
    return np.take_along_axis(whole, sender[..., None], axis=-1)[..., 0]


def _closest(score: np.ndarray) -> np.ndarray:
    """Per graph, the smallest difference between a receiver's best and second-best score."""
    if score.shape[-1] < 2:
        return np.full(len(score), np.inf)
    best, second = np.moveaxis(np.partition(score, 1, axis=-1)[..., :2], -1, 0)
    with np.errstate(invalid="ignore"):  # inf - inf where nobody was eligible
        return np.nan_to_num(second - best, nan=np.inf, posinf=np.inf).min(-1)


def execution_batch(program: GraphProgram, inputs: Mapping[str, np.ndarray]) -> Batch:
    """The program's own trace as a batch of the task that it poses.

    Hint k is the state after k steps; a sample's length is where its own state stops changing.
    """
    task = program.posed()
    run = interpret(program, inputs)
    times = len(run.senders) + 1
    changed = np.zeros((times, run.senders.shape[1]), bool)
    for values in run.states.values():
        changed[1:] |= (values[1:] != values[:-1]).any(-1)
    lengths = 1 + np.max(np.where(changed, np.arange(times)[:, None], 0), axis=0)
    valid = np.arange(times)[:, None, None] < lengths[:, None]
    positions = np.asarray(inputs["pos"], np.float64)

    def read(component: Component, values: np.ndarray) -> np.ndarray:
        if component.kind is Kind.POINTER:
            return pointed(values, positions).astype(np.int32)
        return values.astype(np.float32)

    hints = {name: read(c, run.states[c.name]) * valid for name, c in program.hints.items()}
    outputs = {name: read(c, run.states[c.name][-1]) for name, c in program.output.items()}
    kinds = {f.name: np.int32 if f.type is Type.POINTER else np.float32 for f in task.features}
    return Batch(
        task,
        {f.name: jnp.asarray(inputs[f.name], jnp.float32) for f in task.inputs},
        {name: jnp.asarray(values.astype(kinds[name])) for name, values in hints.items()},
        {name: jnp.asarray(values) for name, values in outputs.items()},
        jnp.asarray(lengths, jnp.int32),
    )


def pointed(
    values: Float[np.ndarray, "*times batch nodes"], positions: Float[np.ndarray, "batch nodes"]
) -> Int[np.ndarray, "*times batch nodes"]:
    """The nodes at given positions."""
    return np.abs(values[..., None] - positions[:, None, :]).argmin(-1)
