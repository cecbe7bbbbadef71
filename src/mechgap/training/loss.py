"""dm-clrs's loss: the mean error of the output plus the mean error of every hint.

Squared error for scalars, cross-entropy for masks, categories and pointers. Prediction k is
compared with hint k + 1; steps after a sample's true length do not count.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from mechgap.network.network import Network, unroll
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Type


def loss(network: Network, batch: Batch, key: Key[Array, ""] | None = None) -> Float[Array, ""]:
    """The training loss of a network on a batch."""
    predicted = unroll(network, batch, training=True, key=key)
    total = jnp.zeros((), network.dtype)
    for f in network.task.outputs:
        total += jnp.mean(_error(f, batch.outputs[f.name], predicted.outputs[f.name]))
    if network.config.decodes_hints:
        for f in network.task.hints:
            total += _hint_error(f, batch, predicted.hints[f.name])
    return total


def _hint_error(feature: Feature, batch: Batch, prediction: Array) -> Float[Array, ""]:
    truth = batch.hints[feature.name][1:]
    error = _error(feature, truth, prediction[: truth.shape[0]])
    valid = batch.lengths > jnp.arange(1, truth.shape[0] + 1)[:, None]
    valid = valid.reshape(*valid.shape, *[1] * (error.ndim - 2))
    counted = jnp.sum(jnp.broadcast_to(valid, error.shape))
    return jnp.sum(jnp.where(valid, error, 0)) / jnp.maximum(counted, 1)


def _error(feature: Feature, truth: Array, prediction: Array) -> Array:
    """The error of each predicted thing: per node, or per graph for one-of-the-nodes."""
    if feature.type is Type.SCALAR:
        return (prediction - truth) ** 2
    if feature.type is Type.MASK:
        softplus = jnp.log1p(jnp.exp(-jnp.abs(prediction)))
        return jnp.maximum(prediction, 0) - prediction * truth + softplus
    log_probability = jax.nn.log_softmax(prediction, axis=-1)
    if feature.type is Type.POINTER:
        truth = jax.nn.one_hot(truth, prediction.shape[-1], dtype=prediction.dtype)
    return -jnp.sum(truth * log_probability, axis=-1)
