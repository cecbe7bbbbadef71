"""How CLRS scores predictions, computed on device and equal to dm-clrs's `evaluate`.

Pointers, categories and one-of-the-nodes: the share of right answers. Masks: F1. Scalars: mean
squared error (lower is better). Predictions are raw, as networks give them.
"""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Type


def output_scores(batch: Batch, predictions: Mapping[str, Array]) -> dict[str, Float[Array, ""]]:
    """The score of each output, as CLRS counts it, and as ``score`` their mean.

    More is better. So a number counts by the share of nodes where it is right (see
    `SCALAR_MARGIN`), since a squared error is better the lower it is. CLRS's own tasks have no
    numbers as outputs.

    Args:
        batch: Graphs with their true outputs.
        predictions: Raw predictions by name, such as `Trace.outputs`.

    Returns:
        By output, and ``score``: shares of nodes, mean over graphs.
    """
    everyone = jnp.ones(batch.size, bool)
    found = [(f, batch.outputs[f.name], predictions[f.name]) for f in batch.task.outputs]
    scores = {f.name: _score(f, truth, said, everyone) for f, truth, said in found}
    shares = [
        jnp.mean(_right(f, truth, said)) if f.type is Type.SCALAR else scores[f.name]
        for f, truth, said in found
    ]
    return {**scores, "score": jnp.mean(jnp.stack(shares))}


SCALAR_MARGIN = 0.01
"""How far a number may be off and still count as right at its node."""


def right_nodes(batch: Batch, predictions: Mapping[str, Array]) -> Bool[Array, "batch nodes"]:
    """Which nodes have every output right. One-of-the-nodes is of the graph, not of a node."""
    of_nodes = [f for f in batch.task.outputs if f.type is not Type.MASK_ONE]
    right = [_right(f, batch.outputs[f.name], predictions[f.name]) for f in of_nodes]
    return jnp.all(jnp.stack(right), axis=0)


def right_graphs(batch: Batch, predictions: Mapping[str, Array]) -> Bool[Array, "batch"]:
    """Which graphs have every output right, at every node."""
    right = [
        _right(f, batch.outputs[f.name], predictions[f.name]).reshape(batch.size, -1)
        for f in batch.task.outputs
    ]
    return jnp.all(jnp.concatenate(right, axis=1), axis=1)


def _right(feature: Feature, truth: Array, prediction: Array) -> Bool[Array, "batch ..."]:
    """Whether each answer is right: of every node, or of the graph for one-of-the-nodes."""
    if feature.type is Type.SCALAR:
        return jnp.abs(prediction - truth) < SCALAR_MARGIN
    if feature.type is Type.MASK:
        return (prediction > 0) == (truth > 0.5)
    answer = truth if feature.type is Type.POINTER else jnp.argmax(truth, axis=-1)
    return jnp.argmax(prediction, axis=-1) == answer


def hint_scores(batch: Batch, predictions: Mapping[str, Array]) -> dict[str, Float[Array, ""]]:
    """The score of each hint, as CLRS counts it.

    The mean over steps, weighted by how many samples still run. NaN where no sample has a second
    hint, since then nothing was predicted.

    Args:
        batch: Graphs with their true hints.
        predictions: Raw predictions by name, such as `Trace.hints`; prediction k is of hint k + 1.

    Returns:
        By hint: for numbers a squared error, for all else a share of nodes.
    """
    scores = {}
    for name, along in hint_scores_along_time(batch, predictions).items():
        times = jnp.arange(1, along.shape[0] + 1)
        running = jnp.sum(times[:, None] < batch.lengths, axis=1)
        scores[name] = jnp.sum(along * running) / jnp.sum(batch.lengths - 1)
    return scores


def hint_scores_along_time(
    batch: Batch, predictions: Mapping[str, Array]
) -> dict[str, Float[Array, "steps"]]:
    """The score of each hint at each step, over the samples that still run (0 if none)."""
    running = jnp.arange(1, batch.max_hints)[:, None] < batch.lengths
    scores = {}
    for f in batch.task.hints:
        truth = batch.hints[f.name][1:]
        each = jax.vmap(partial(_score, f))(truth, predictions[f.name][: len(truth)], running)
        scores[f.name] = jnp.where(jnp.any(running, axis=1), each, 0.0)
    return scores


def _score(
    feature: Feature, truth: Array, prediction: Array, counted: Bool[Array, "batch"]
) -> Float[Array, ""]:
    """The score of one prediction over the counted samples."""

    def mean(values: Array) -> Float[Array, ""]:
        weight = counted.reshape(-1, *[1] * (values.ndim - 1)) & jnp.ones(values.shape, bool)
        return jnp.sum(jnp.where(weight, values, 0)) / jnp.sum(weight)

    if feature.type is Type.SCALAR:
        return mean((prediction - truth) ** 2)
    if feature.type is Type.MASK:
        weight = counted[:, None]
        said, true = prediction > 0, truth > 0.5
        hits = jnp.sum(said & true & weight)
        false_alarms = jnp.sum(said & ~true & weight)
        misses = jnp.sum(~said & true & weight)
        precision = jnp.where(hits + false_alarms > 0, hits / (hits + false_alarms), 1.0)
        recall = jnp.where(hits + misses > 0, hits / (hits + misses), 1.0)
        both = precision + recall
        return jnp.where(both > 0, 2 * precision * recall / both, 0.0)
    return mean(1.0 * _right(feature, truth, prediction))
