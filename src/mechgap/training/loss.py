"""dm-clrs's loss: the mean error of the output plus the mean error of every hint.

Squared error for scalars, cross-entropy for masks, categories and pointers. Prediction k is
compared with hint k + 1; steps after a sample's true length do not count.

`loss_and_gradient` is the same for training: samples of similar length run together, so that few
steps are spent on samples that have finished.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from mechgap.network.network import Network, Prepared, Unrolled, unroll
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Type
from mechgap.training.supervision import attention_error


class Counts(eqx.Module):
    """What errors are divided by: how much there is to predict in the whole batch."""

    samples: int = eqx.field(static=True)
    hints: Int[Array, ""]
    """Steps whose hint counts, over all samples."""

    @staticmethod
    def of(batch: Batch) -> "Counts":
        """The counts of one batch."""
        return Counts(batch.size, jnp.sum(jnp.maximum(0, batch.lengths - 1)))


class Objective(eqx.Module):
    """What is added to dm-clrs's loss, or taken from it."""

    output_weight: Float[Array, ""] | None = None
    """Times the output's error; None for 1."""
    mechanism: Program | None = eqx.field(static=True, default=None)
    """The program whose attention the network is to have; None for none."""
    attention_weight: float = eqx.field(static=True, default=0.0)
    """Times the error of attention."""


PLAIN = Objective()
"""dm-clrs's loss as it is."""


def loss(
    network: Network,
    batch: Batch,
    key: Key[Array, ""] | None = None,
    objective: Objective = PLAIN,
) -> Float[Array, ""]:
    """The training loss of a network on a batch."""
    return _loss(Prepared.of(network), network, batch, key, objective, Counts.of(batch), None)


def loss_and_gradient(
    network: Network,
    groups: Batch,
    steps_needed: Int[Array, "groups"],
    key: Key[Array, ""] | None = None,
    objective: Objective = PLAIN,
    few_steps: int = 4,
) -> tuple[Float[Array, ""], Network]:
    """The loss of a batch and its gradient, one group of samples after the other.

    Each group runs for as many steps as given (see `groups_by_length`). Most need only a few; for
    these there is a program of its own, which has less to skip.
    """
    prepared, backward = jax.vjp(Prepared.of, network)
    value, gradient = prepared_loss_and_gradient(
        prepared, network, groups, steps_needed, key, objective, few_steps
    )
    return value, backward(gradient)[0]


def prepared_loss_and_gradient(
    prepared: Prepared,
    network: Network,
    groups: Batch,
    steps_needed: Int[Array, "groups"],
    key: Key[Array, ""] | None = None,
    objective: Objective = PLAIN,
    few_steps: int = 4,
) -> tuple[Float[Array, ""], Prepared]:
    """The same, with the gradient of the prepared parameters."""
    whole = groups.lengths.size
    counts = Counts(whole, jnp.sum(jnp.maximum(0, groups.lengths - 1)))

    def add(total, xs):
        group, steps, index = xs
        group_key = None if key is None else jax.random.fold_in(key, index)

        def within(hints: int) -> tuple[Float[Array, ""], Prepared]:
            cut = group.cut(hints)
            # Where all samples are equally long there is nothing to skip.
            needed = None if group.task.fixed_length else steps
            return eqx.filter_value_and_grad(_loss)(
                prepared, network, cut, group_key, objective, counts, needed
            )

        if group.task.fixed_length or group.steps <= 2 * few_steps:
            found = within(group.max_hints)
        else:
            found = jax.lax.cond(
                steps <= few_steps, lambda: within(few_steps + 1), lambda: within(group.max_hints)
            )
        return jax.tree.map(jnp.add, total, found), None

    nothing = (jnp.zeros((), network.dtype), jax.tree.map(jnp.zeros_like, prepared))
    indices = jnp.arange(len(steps_needed))
    (value, gradient), _ = jax.lax.scan(add, nothing, (groups, steps_needed, indices))
    return value, gradient


def by_length(batch: Batch) -> Batch:
    """The same samples, shortest first."""
    return batch[jnp.argsort(batch.lengths)]


def groups_by_length(batch: Batch, groups: int) -> tuple[Batch, Int[Array, "groups"]]:
    """A batch cut into equal groups, shortest samples first, and the steps that each needs."""
    ordered = by_length(batch)
    size = batch.size // groups

    def cut(axis: int, x: Array) -> Array:
        split = x.reshape(*x.shape[:axis], groups, size, *x.shape[axis + 1 :])
        return jnp.moveaxis(split, axis, 0)

    cut_batch = Batch(
        batch.task,
        {name: cut(0, x) for name, x in ordered.inputs.items()},
        {name: cut(1, x) for name, x in ordered.hints.items()},
        {name: cut(0, x) for name, x in ordered.outputs.items()},
        cut(0, ordered.lengths),
    )
    return cut_batch, jnp.maximum(1, jnp.max(cut_batch.lengths, axis=1) - 1)


def _loss(
    prepared: Prepared,
    network: Network,
    batch: Batch,
    key: Key[Array, ""] | None,
    objective: Objective,
    counts: Counts,
    steps_needed: Int[Array, ""] | None,
) -> Float[Array, ""]:
    """The part of a batch's loss that some of its samples have."""
    predicted = unroll(
        network,
        batch,
        training=True,
        prepared=prepared,
        key=key,
        steps_needed=steps_needed,
        keep_steps=objective.mechanism is not None,
    )
    return _total(network, batch, predicted, objective, counts)


def prediction_error(network: Network, batch: Batch, predicted: Unrolled) -> Float[Array, ""]:
    """dm-clrs's loss of predictions that were made already."""
    return _total(network, batch, predicted, PLAIN, Counts.of(batch))


def _total(
    network: Network, batch: Batch, predicted: Unrolled, objective: Objective, counts: Counts
) -> Float[Array, ""]:
    total = jnp.zeros((), network.dtype)
    for f in network.task.outputs:
        error = _error(f, batch.outputs[f.name], predicted.outputs[f.name])
        total += jnp.sum(error) / (counts.samples * _things(error, 1))
    if objective.output_weight is not None:
        total *= objective.output_weight
    if network.config.decodes_hints:
        for f in network.task.hints:
            total += _hint_error(f, batch, predicted.hints[f.name], counts.hints)
    if objective.mechanism is not None:
        assert predicted.steps is not None
        error = attention_error(objective.mechanism, batch, predicted.steps, counts.hints)
        total += objective.attention_weight * error
    return total


def _hint_error(
    feature: Feature, batch: Batch, prediction: Array, steps: Int[Array, ""]
) -> Float[Array, ""]:
    truth = batch.hints[feature.name][1:]
    error = _error(feature, truth, prediction[: truth.shape[0]])
    valid = batch.lengths > jnp.arange(1, truth.shape[0] + 1)[:, None]
    valid = valid.reshape(*valid.shape, *[1] * (error.ndim - 2))
    return jnp.sum(jnp.where(valid, error, 0)) / jnp.maximum(1, steps * _things(error, 2))


def _things(error: Array, axes: int) -> int:
    """How many things are predicted for each sample and step: one per node or one."""
    return int(np.prod(error.shape[axes:]))


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
