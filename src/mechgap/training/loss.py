"""dm-clrs's loss: the mean error of the output plus the mean error of every hint.

Squared error for scalars, cross-entropy for masks, categories and pointers. Prediction k is
compared with hint k + 1; steps after a sample's true length do not count. What an `Objective` adds
is no part of dm-clrs's.
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from mechgap.network.network import Carry, Network, Prepared, Step, Unrolled, unroll
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Type
from mechgap.training.lesson import Lesson
from mechgap.training.supervision import Readouts, Taught, attention_errors, taught_on


class Objective(eqx.Module):
    """What is added to dm-clrs's loss, or taken from it."""

    output_weight: Float[Array, ""] | None = None
    """Times the output's error; None for 1."""
    mechanism: Program | None = eqx.field(static=True, default=None)
    """The program that teaches; None for none."""
    attention_weight: float = eqx.field(static=True, default=0.0)
    """Times the error of attention, of all nodes."""
    active_weight: float = eqx.field(static=True, default=0.0)
    """Times the error of attention, of the nodes for whom anyone passes the mask."""
    state_weight: float = eqx.field(static=True, default=0.0)
    """Times the error of what is read of the mechanism's signals."""
    change_weight: float = eqx.field(static=True, default=0.0)
    """Times the error of hints where they change."""
    worst_weight: float = eqx.field(static=True, default=0.0)
    """Times the error of the worst node of each step: of attention, of signals and of hints."""
    ignored: tuple[str, ...] = eqx.field(static=True, default=())
    """Hints whose error does not count."""
    teaching_weight: Float[Array, ""] | None = None
    """Times all that the program teaches; None for 1."""
    forcing: Float[Array, ""] | None = None
    """The probability of the true hint; None for the configuration's."""


PLAIN = Objective()
"""dm-clrs's loss as it is."""


class Counts(eqx.Module):
    """What errors are divided by: how much there is to predict in the whole batch."""

    samples: int | Int[Array, ""]
    """Whose output counts."""
    hints: Int[Array, ""]
    """Steps whose hint counts, over all samples."""
    active: Int[Array, "phases"] | None
    """Rows of attention for whom anyone passes the mask."""
    changes: Mapping[str, Int[Array, ""]]
    """How often each hint changes that is no number."""

    @staticmethod
    def of(lesson: Lesson, objective: Objective) -> "Counts":
        """The counts of what is learned from at once."""
        batch, taught = lesson.batch, lesson.taught
        whole = lesson.begin is None
        active = None
        if taught is not None and objective.active_weight:
            active = jnp.sum(taught.active & lesson.counted[:, None, :, None], axis=(0, 2, 3))
        changes = {}
        if objective.change_weight:
            told = _changing(lesson, objective)
            changes = {f.name: jnp.sum(_changes(f, lesson)) for f in told}
        return Counts(
            samples=batch.size if whole else jnp.maximum(1, jnp.sum(lesson.ending)),
            hints=jnp.sum(jnp.maximum(0, jnp.minimum(batch.lengths - 1, batch.steps))),
            active=active,
            changes=changes,
        )


def loss(
    network: Network,
    batch: Batch,
    key: Key[Array, ""] | None = None,
    objective: Objective = PLAIN,
) -> Float[Array, ""]:
    """The training loss of a network on a batch: dm-clrs's, if not told otherwise.

    Args:
        network: To be trained; the loss is differentiable in it.
        batch: Graphs with their trace.
        key: Needed if there is dropout or partial teacher forcing.
        objective: What counts beside hints and outputs, such as attention against a mechanism's.
            What is read of the mechanism's signals is not in it.

    Returns:
        A number.
    """
    program = objective.mechanism
    lesson = Lesson(batch, None if program is None else taught_on(program, batch))
    counts = Counts.of(lesson, objective)
    return _loss((Prepared.of(network), None), network, lesson, key, objective, counts, None)[0]


Learned = tuple[Prepared, Readouts | None]
"""What a loss is differentiated by."""


def loss_and_gradient(
    network: Network,
    groups: Lesson,
    steps_needed: Int[Array, "groups"],
    key: Key[Array, ""] | None = None,
    objective: Objective = PLAIN,
    few_steps: int = 4,
) -> tuple[Float[Array, ""], Network]:
    """The loss of whole traces and its gradient, one group of samples after the other.

    Each group runs for as many steps as given (see `groups_by_length`). Most need only a few; for
    these there is a program of its own, which has less to skip.
    """
    prepared, backward = jax.vjp(Prepared.of, network)
    value, (gradient, _) = prepared_loss_and_gradient(
        (prepared, None), network, groups, steps_needed, key, objective, few_steps
    )
    return value, backward(gradient)[0]


def prepared_loss_and_gradient(
    learned: Learned,
    network: Network,
    groups: Lesson,
    steps_needed: Int[Array, "groups"],
    key: Key[Array, ""] | None = None,
    objective: Objective = PLAIN,
    few_steps: int = 4,
) -> tuple[Float[Array, ""], Learned]:
    """The same, with the gradient of the prepared parameters."""
    whole = jax.vmap(lambda group: Counts.of(group, objective))(groups)
    counts = jax.tree.map(lambda x: jnp.sum(x, axis=0), whole)

    def add(total, xs):
        group, steps, index = xs
        group_key = None if key is None else jax.random.fold_in(key, index)

        def within(hints: int) -> tuple[Float[Array, ""], Learned]:
            # Where all samples are equally long there is nothing to skip.
            needed = None if group.batch.task.fixed_length else steps
            (value, _), gradient = eqx.filter_value_and_grad(_loss, has_aux=True)(
                learned, network, group.cut(hints), group_key, objective, counts, needed
            )
            return value, gradient

        batch = group.batch
        if batch.task.fixed_length or batch.steps <= 2 * few_steps:
            found = within(batch.max_hints)
        else:
            found = jax.lax.cond(
                steps <= few_steps, lambda: within(few_steps + 1), lambda: within(batch.max_hints)
            )
        return jax.tree.map(jnp.add, total, found), None

    nothing = (jnp.zeros((), network.dtype), jax.tree.map(jnp.zeros_like, learned))
    indices = jnp.arange(len(steps_needed))
    (value, gradient), _ = jax.lax.scan(add, nothing, (groups, steps_needed, indices))
    return value, gradient


def window_loss_and_gradient(
    learned: Learned,
    network: Network,
    lesson: Lesson,
    key: Key[Array, ""] | None = None,
    objective: Objective = PLAIN,
) -> tuple[Float[Array, ""], Learned, Carry]:
    """The loss of a window and its gradient, and where the network has come to."""
    counts = Counts.of(lesson, objective)
    (value, end), gradient = eqx.filter_value_and_grad(_loss, has_aux=True)(
        learned, network, lesson, key, objective, counts, None
    )
    return value, gradient, end


def _loss(
    learned: Learned,
    network: Network,
    lesson: Lesson,
    key: Key[Array, ""] | None,
    objective: Objective,
    counts: Counts,
    steps_needed: Int[Array, ""] | None,
) -> tuple[Float[Array, ""], Carry]:
    """The part of a loss that some samples have, and where the network has come to."""
    prepared, readouts = learned
    predicted = unroll(
        network,
        lesson.batch,
        training=True,
        prepared=prepared,
        key=key,
        steps_needed=steps_needed,
        keep_steps=lesson.taught is not None,
        begin=lesson.begin,
        forcing=objective.forcing,
    )
    total = _prediction_error(network, lesson, predicted, objective, counts)
    if lesson.taught is not None and predicted.steps is not None:
        total += _teaching_error(
            lesson, lesson.taught, predicted.steps, readouts, objective, counts
        )
    if network.config.decodes_hints and (objective.change_weight or objective.worst_weight):
        total += _emphasis(lesson, predicted, objective, counts)
    return total, predicted.end


def _emphasis(
    lesson: Lesson, predicted: Unrolled, objective: Objective, counts: Counts
) -> Float[Array, ""]:
    """One more error of hints where they change, and of the worst node of each step."""
    total = jnp.zeros(())
    for f in _changing(lesson, objective):
        error = _hint_errors(f, lesson.batch, predicted)
        if objective.change_weight:
            changed = jnp.sum(jnp.where(_changes(f, lesson), error, 0))
            total += objective.change_weight * changed / jnp.maximum(1, counts.changes[f.name])
        if objective.worst_weight and error.ndim == 3:  # of every node, not of one of them
            total += objective.worst_weight * _worst(error, lesson, counts)
    return total


def _worst(
    error: Float[Array, "steps *phases batch nodes"], lesson: Lesson, counts: Counts
) -> Float[Array, ""]:
    """The largest error in each graph, its mean over the steps that count, summed over phases."""
    counted = lesson.counted[: len(error)]
    if error.ndim == 4:
        counted = counted[:, None]
    return jnp.sum(jnp.where(counted, jnp.max(error, axis=-1), 0)) / jnp.maximum(1, counts.hints)


def prediction_error(network: Network, batch: Batch, predicted: Unrolled) -> Float[Array, ""]:
    """dm-clrs's loss of predictions that were made already."""
    lesson = Lesson(batch)
    return _prediction_error(network, lesson, predicted, PLAIN, Counts.of(lesson, PLAIN))


def _prediction_error(
    network: Network,
    lesson: Lesson,
    predicted: Unrolled,
    objective: Objective,
    counts: Counts,
) -> Float[Array, ""]:
    batch = lesson.batch
    total = jnp.zeros((), network.dtype)
    for f in network.task.outputs:
        error = prediction_errors(f, batch.outputs[f.name], predicted.outputs[f.name])
        if lesson.begin is not None:
            error = jnp.where(_wide(lesson.ending, error), error, 0)
        total += jnp.sum(error) / (counts.samples * _things(error, 1))
    if objective.output_weight is not None:
        total *= objective.output_weight
    if network.config.decodes_hints:
        for f in _told(lesson, objective):
            error = _hint_errors(f, batch, predicted)
            error = jnp.where(_wide(lesson.counted[: len(error)], error), error, 0)
            total += jnp.sum(error) / jnp.maximum(1, counts.hints * _things(error, 2))
    return total


def _teaching_error(
    lesson: Lesson,
    taught: Taught,
    steps: Step,
    readouts: Readouts | None,
    objective: Objective,
    counts: Counts,
) -> Float[Array, ""]:
    """Means over the steps that count and over nodes, summed over phases."""
    counted = lesson.counted[:, None, :, None]
    rows = jnp.maximum(1, counts.hints) * lesson.batch.nodes
    attention = attention_errors(taught, steps)
    total = objective.attention_weight * jnp.sum(jnp.where(counted, attention, 0)) / rows
    if objective.worst_weight and (objective.attention_weight or objective.active_weight):
        total += objective.worst_weight * _worst(attention, lesson, counts)
    if counts.active is not None:
        active = jnp.sum(jnp.where(counted & taught.active, attention, 0), axis=(0, 2, 3))
        total += objective.active_weight * jnp.sum(active / jnp.maximum(1, counts.active))
    if readouts is not None and objective.mechanism is not None:
        pos = lesson.batch.inputs["pos"]
        signals = readouts.errors(objective.mechanism, taught, steps.hidden, pos)
        total += objective.state_weight * jnp.sum(jnp.where(counted, signals, 0)) / rows
        if objective.worst_weight:
            total += objective.worst_weight * _worst(signals, lesson, counts)
    return total if objective.teaching_weight is None else objective.teaching_weight * total


def _told(lesson: Lesson, objective: Objective) -> list[Feature]:
    """The hints whose error counts."""
    return [f for f in lesson.batch.task.hints if f.name not in objective.ignored]


def _changing(lesson: Lesson, objective: Objective) -> list[Feature]:
    """Of these, those that can be said to change: no numbers."""
    return [f for f in _told(lesson, objective) if f.type is not Type.SCALAR]


def _changes(feature: Feature, lesson: Lesson) -> Bool[Array, "steps batch ..."]:
    """Where a hint is another than before: at a node, or in the graph for one of the nodes."""
    hints = lesson.batch.hints[feature.name]
    changed = hints[1:] != hints[:-1]
    if feature.type in (Type.CATEGORICAL, Type.MASK_ONE):
        changed = jnp.any(changed, axis=-1)
    return changed & _wide(lesson.counted[: len(changed)], changed)


def _hint_errors(feature: Feature, batch: Batch, predicted: Unrolled) -> Array:
    truth = batch.hints[feature.name][1:]
    return prediction_errors(feature, truth, predicted.hints[feature.name][: truth.shape[0]])


def _wide(flags: Bool[Array, "..."], like: Array) -> Bool[Array, "..."]:
    """Flags with as many axes as an array."""
    return flags.reshape(*flags.shape, *[1] * (like.ndim - flags.ndim))


def _things(error: Array, axes: int) -> int:
    """How many things are predicted for each sample and step: one per node or one."""
    return int(np.prod(error.shape[axes:]))


def prediction_errors(feature: Feature, truth: Array, prediction: Array) -> Array:
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
