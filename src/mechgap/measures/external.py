"""The external measure: how much of the algorithm's trace a network predicts.

A prediction counts if it lies within a margin of the true hint: scalars by their difference, masks
by the difference of the probability, pointers, categories and one-of-the-nodes by their most likely
answer. The paper's margin for scalars, 0.5, is wide where test distances reach only about 0.85, so
`fine` tells the same with 0.01.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mechgap.errors import InvalidInput
from mechgap.tasks.batch import Batch
from mechgap.tasks.scores import hint_scores
from mechgap.tasks.specs import Feature, Type

TIMES = 21
"""Points of the uniform time scale, from a sample's first prediction (0) to its last (1)."""


@dataclass(frozen=True)
class Margins:
    """How far a prediction may be off. The defaults are the paper's."""

    scalar: float = 0.5
    binary: float = 0.1

    def __post_init__(self):
        for name, value in vars(self).items():
            if not value > 0:
                raise InvalidInput(f"the {name} margin must be above 0; got {value}")


FINE = replace(Margins(), scalar=0.01)


@dataclass(frozen=True)
class External:
    """How well a network predicts the hints of some graphs."""

    accuracy: float
    """Mean over a graph's nodes and valid steps, then over graphs, then over hints."""
    accuracy_fine: float
    """The same with a margin of 0.01 for scalars."""
    hints: Mapping[str, float]
    """Each hint's own accuracy."""
    dm_clrs: Mapping[str, float]
    """dm-clrs's own score of each hint."""
    over_time: Mapping[str, Float[np.ndarray, "times"]]
    """Each hint's accuracy on the uniform time scale, mean over samples."""


def external(
    batch: Batch, predictions: Mapping[str, Array], margins: Margins | None = None
) -> External:
    """The trace accuracy of raw hint predictions ``[steps, batch, …]``."""
    missing = [f.name for f in batch.task.hints if f.name not in predictions]
    if missing:
        raise InvalidInput(
            f"the network predicts no {', '.join(missing)}: it was trained without traces "
            "(hint_mode none), so there is no external measure"
        )
    margins = margins or Margins()
    if batch.max_hints < 2:
        nothing = {f.name: float("nan") for f in batch.task.hints}
        empty = {name: np.full(TIMES, np.nan) for name in nothing}
        return External(float("nan"), float("nan"), nothing, nothing, empty)
    found, fine, theirs, along = jax.tree.map(
        np.asarray, _external(batch, dict(predictions), margins)
    )
    hints = {name: float(value) for name, value in found.items()}
    return External(
        accuracy=float(np.mean(list(hints.values()))),
        accuracy_fine=float(np.mean(list(fine.values()))),
        hints=hints,
        dm_clrs={name: float(value) for name, value in theirs.items()},
        over_time=along,
    )


@eqx.filter_jit
def _external(batch: Batch, predictions: Mapping[str, Array], margins: Margins):
    hits = {f.name: trace_hits(f, batch, predictions[f.name], margins) for f in batch.task.hints}
    fine = {
        f.name: trace_hits(f, batch, predictions[f.name], replace(margins, scalar=FINE.scalar))
        for f in batch.task.hints
    }
    along = {name: _on_uniform_time(hit, batch) for name, hit in hits.items()}
    return (
        {name: jnp.nanmean(hits_by_sample(hit, batch)) for name, hit in hits.items()},
        {name: jnp.nanmean(hits_by_sample(hit, batch)) for name, hit in fine.items()},
        hint_scores(batch, predictions),
        along,
    )


def trace_hits(
    feature: Feature, batch: Batch, prediction: Array, margins: Margins
) -> Float[Array, "steps batch"]:
    """The share of nodes whose prediction of the next hint is within the margin."""
    truth = batch.hints[feature.name][1:]
    prediction = prediction[: truth.shape[0]]
    if feature.type is Type.SCALAR:
        hit = jnp.abs(prediction - truth) < margins.scalar
    elif feature.type is Type.MASK:
        hit = jnp.abs(jax.nn.sigmoid(prediction) - truth) < margins.binary
    else:
        answer = truth if feature.type is Type.POINTER else jnp.argmax(truth, -1)
        hit = jnp.argmax(prediction, -1) == answer
    return jnp.mean(1.0 * hit.reshape(*hit.shape[:2], -1), axis=-1)


def _valid(batch: Batch) -> Bool[Array, "steps batch"]:
    return jnp.arange(1, batch.max_hints)[:, None] < batch.lengths


def hits_by_sample(hits: Float[Array, "steps batch"], batch: Batch) -> Float[Array, "batch"]:
    """Each graph's mean over its valid steps; NaN where nothing was predicted."""
    valid = _valid(batch)
    count = jnp.sum(valid, axis=0)
    total = jnp.sum(jnp.where(valid, hits, 0), axis=0)
    return jnp.where(count > 0, total / jnp.maximum(1, count), jnp.nan)


def _on_uniform_time(hits: Float[Array, "steps batch"], batch: Batch) -> Float[Array, "times"]:
    """Each sample's series stretched to [0, 1], then the mean of samples with any prediction."""
    scale = jnp.linspace(0, 1, TIMES)

    def stretched(series: Float[Array, "steps"], length: Array) -> Float[Array, "times"]:
        at = scale * jnp.maximum(0, length - 2)
        return jnp.interp(at, jnp.arange(series.shape[0]), series)

    each = jax.vmap(stretched, in_axes=(1, 0))(hits, batch.lengths)
    counts = (batch.lengths > 1)[:, None]
    return jnp.sum(jnp.where(counts, each, 0), 0) / jnp.sum(counts)
