"""Is the state missing, or only its decoding? Linear probes on hidden states.

For each hint, ridge regression from what a decoder reads of a node (its inputs, and its hidden
state after a step) to what the hint says then: a mask, a number, or the position of the node that
is pointed to. Inputs alone tell something, so an untrained network's probe is the baseline. The
probe is fitted on one half of the graphs and scored on the other, beside what the network's own
decoder says of the same nodes.

Where a task has no distance among its hints, the step at which a node was reached is probed as
`hops`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from mechgap.network.trace import Trace
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Location, Type

RIDGE = 1e-3


@dataclass(frozen=True)
class Probe:
    """How well a hint can be read from the hidden state, and how well it is decoded."""

    accuracy: float
    """Share of nodes and steps read rightly: masks above or below one half, positions nearest to
    the right node, numbers within 0.05."""
    r2: float
    """Share of the variance that the probe explains; NaN where there is none."""
    decoded: float
    """The decoder's accuracy by the same rule; NaN where there is no decoder."""


def probes(batch: Batch, trace: Trace) -> Mapping[str, Probe]:
    """A probe for every hint on nodes, from one run over a batch."""
    if batch.max_hints < 2 or batch.size < 2:
        return {}
    per_hint = trace.hidden.shape[0] // trace.steps
    hidden = np.asarray(trace.hidden[per_hint - 1 :: per_hint], np.float64)
    hidden = hidden[: batch.max_hints - 1]
    inputs = [
        np.broadcast_to(np.asarray(batch.inputs[f.name], np.float64), hidden.shape[:3])
        for f in batch.task.inputs
        if f.location is Location.NODE
    ]
    hidden = np.concatenate([hidden, np.stack(inputs, -1)], axis=-1)
    found = {}
    for feature in batch.task.hints:
        if feature.location is not Location.NODE or feature.type is Type.CATEGORICAL:
            continue
        target = _target(feature, batch)
        decoded = None
        if feature.name in trace.hints:
            decoded = _decoded(feature, batch, np.asarray(trace.hints[feature.name]))
        found[feature.name] = _probe(feature.type, batch, hidden, target, decoded)
    masks = [f.name for f in batch.task.hints if f.type is Type.MASK]
    if masks and not any(f.type is Type.SCALAR for f in batch.task.hints):
        found["hops"] = _probe(Type.SCALAR, batch, hidden, _hops(batch, masks[0]), None)
    return found


def _target(feature: Feature, batch: Batch) -> Float[np.ndarray, "steps batch nodes"]:
    """What the hidden state after each step should tell."""
    truth = np.asarray(batch.hints[feature.name][1:])
    if feature.type is Type.POINTER:
        positions = np.broadcast_to(np.asarray(batch.inputs["pos"]), truth.shape)
        return np.take_along_axis(positions, truth, -1).astype(np.float64)
    return truth.astype(np.float64)


def _hops(batch: Batch, mask: str) -> Float[np.ndarray, "steps batch nodes"]:
    """The step at which each node was reached, so far; NaN for those not reached yet."""
    reached = np.asarray(batch.hints[mask]) > 0.5
    first = np.argmax(reached, axis=0)
    return np.where(reached[1:], first, np.nan)


def _decoded(feature: Feature, batch: Batch, raw: np.ndarray) -> np.ndarray:
    raw = raw[: batch.max_hints - 1]
    if feature.type is Type.POINTER:
        positions = np.broadcast_to(np.asarray(batch.inputs["pos"]), raw.shape[:-1])
        return np.take_along_axis(positions, raw.argmax(-1), -1)
    if feature.type is Type.MASK_ONE:
        return 1.0 * (raw == raw.max(-1, keepdims=True))
    return 1.0 * (raw > 0) if feature.type is Type.MASK else raw


def _probe(
    kind: Type, batch: Batch, hidden: np.ndarray, target: np.ndarray, decoded: np.ndarray | None
) -> Probe:
    valid = np.arange(1, batch.max_hints)[:, None] < np.asarray(batch.lengths)
    counted = valid[..., None] & np.isfinite(target)
    fitting = counted & (np.arange(batch.size) % 2 == 0)[None, :, None]
    judging = counted & ~fitting
    if not fitting.any() or not judging.any():
        return Probe(float("nan"), float("nan"), float("nan"))
    weights = _ridge(hidden[fitting], target[fitting])
    read = _with_one(hidden[judging]) @ weights
    truth = target[judging]
    spread = np.var(truth)
    positions = np.broadcast_to(np.asarray(batch.inputs["pos"])[None, :, None, :],
                                (*target.shape, batch.nodes))[judging]  # fmt: skip
    return Probe(
        accuracy=_share_right(kind, read, truth, positions),
        r2=float(1 - np.mean((read - truth) ** 2) / spread) if spread > 0 else float("nan"),
        decoded=float("nan")
        if decoded is None
        else _share_right(kind, decoded[judging], truth, positions),
    )


def _share_right(
    kind: Type, read: np.ndarray, truth: np.ndarray, positions: Float[np.ndarray, "things nodes"]
) -> float:
    if kind is Type.SCALAR:
        return float(np.mean(np.abs(read - truth) < 0.05))
    if kind is Type.POINTER:
        nearest = np.abs(positions - read[:, None]).argmin(-1)
        return float(np.mean(np.take_along_axis(positions, nearest[:, None], -1)[:, 0] == truth))
    return float(np.mean((read > 0.5) == (truth > 0.5)))


def _ridge(inputs: Float[np.ndarray, "rows units"], target: np.ndarray) -> np.ndarray:
    """Least squares with a small penalty, relative to the inputs' own size."""
    x = _with_one(inputs)
    gram = x.T @ x
    penalty = RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    return np.linalg.solve(gram + penalty, x.T @ target)


def _with_one(inputs: np.ndarray) -> np.ndarray:
    return np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
