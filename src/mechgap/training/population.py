"""Many seeds side by side: one compiled program that trains, validates and tests a population.

A seed decides its initial parameters and all of its data, whoever else is trained beside it. Seeds
in one chunk run as one vectorised program. Chunks run at once, on every accelerator or on every
core; each runs the same program, so how many there are does not change a bit.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
from jaxtyping import Array, Bool, Float, Int, Key

from mechgap.network.network import Network, Prepared, unroll
from mechgap.tasks.batch import Batch
from mechgap.tasks.kinds import ER
from mechgap.tasks.official import NODES, SAMPLES, Split, official
from mechgap.tasks.sampling import TEST_P, sample
from mechgap.tasks.scores import output_scores
from mechgap.tasks.specs import Task
from mechgap.training import narrow
from mechgap.training.augmentation import on_a_grid, with_shifted_clocks
from mechgap.training.lesson import Lesson, by_length, groups_by_length
from mechgap.training.loss import (
    Learned,
    Objective,
    prepared_loss_and_gradient,
    window_loss_and_gradient,
)
from mechgap.training.options import Forcing, LearningRate, Optimizer, Regularizer
from mechgap.training.recipe import Recipe
from mechgap.training.start import starting_network
from mechgap.training.streams import Stream, noisy
from mechgap.training.supervision import Readouts, taught_on

VALIDATION_GRAPHS = 64
"""As in dm-clrs's run.py."""
SHORT_TEST_GRAPHS = 64
"""Where there is no length to generalise to, as the paper's numbers imply."""


class Learner(eqx.Module):
    """Everything that training one seed carries from step to step."""

    seed: Int[Array, ""]
    step: Int[Array, ""]
    network: Network
    optimizer: optax.OptState
    best: Network
    """The parameters of the highest validation score so far."""
    best_step: Int[Array, ""]
    best_validation: Float[Array, ""]
    diverged_at: Int[Array, ""]
    """The first step whose loss or gradient was not a number; -1 while there is none."""
    readouts: Readouts | None = None
    """Of a mechanism's signals, where they are supervised."""
    streams: tuple[Stream, ...] = ()
    """For every training length, where traces are learned in windows."""


class Report(NamedTuple):
    """What is known of a seed after some steps."""

    loss: Float[Array, ""]
    """Mean training loss since the last report."""
    validation: Float[Array, ""]
    test: Float[Array, ""]
    """NaN where it was not asked for."""
    test_of_best: Float[Array, ""]


class Trainer:
    """A recipe as compiled programs for a chunk: start its seeds, advance them, look at them.

    A program runs where its learners are, and is the same on every device.
    """

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self._start = jax.jit(jax.vmap(partial(initial, recipe)))
        self._advance = jax.jit(partial(advance, recipe), donate_argnums=0)
        self._report = jax.jit(partial(report, recipe, *held_out(recipe)), donate_argnums=0)

    def start(self, seeds: Sequence[int], device: Any = None) -> Learner:
        """Untrained learners, on a device."""
        return self._start(jax.device_put(np.asarray(seeds, np.int32), device))

    def advance(self, learners: Learner, steps: int) -> tuple[Learner, Float[Array, "chunk"]]:
        """Train on; the mean loss of each seed."""
        return self._advance(learners, jnp.int32(steps))

    def report(
        self, learners: Learner, loss: Float[Array, "chunk"], test: bool
    ) -> tuple[Learner, Report]:
        """Validate, keep the best, and test if asked for."""
        return self._report(learners, loss, jnp.asarray(test))


def initial(recipe: Recipe, seed: Int[Array, ""]) -> Learner:
    """A seed before its first step."""
    network = starting_network(recipe, _key(seed, "initial"))
    readouts = None
    if recipe.signals:
        key = _key(seed, "readouts")
        readouts = Readouts.initial(key, recipe.hidden_size, len(recipe.signals))
    return Learner(
        seed=seed,
        step=jnp.int32(0),
        network=network,
        optimizer=optimizer(recipe).init((network, readouts)),  # pyright: ignore[reportArgumentType]
        # Donated buffers must not be shared.
        best=jax.tree.map(jnp.copy, network),
        best_step=jnp.int32(0),
        best_validation=jnp.float32(-1.0),
        diverged_at=jnp.int32(-1),
        readouts=readouts,
        streams=_first_streams(recipe, network, seed) if recipe.window else (),
    )


def _first_streams(recipe: Recipe, network: Network, seed: Int[Array, ""]) -> tuple[Stream, ...]:
    """Traces at their beginning, which end somewhere: so streams come apart."""
    streams = []
    for i, nodes in enumerate(recipe.train_lengths):
        key, apart = jax.random.split(jax.random.fold_in(_key(seed, "streams"), i))
        stream = Stream.start(network, _drawn(recipe, nodes, key), recipe.mechanism)
        streams.append(stream.staggered(apart))
    return tuple(streams)


def optimizer(recipe: Recipe) -> optax.GradientTransformation:
    """Clipping, then Adam, as in dm-clrs; or Muon."""
    clip = recipe.grad_clip_max_norm
    steps = [optax.clip_by_global_norm(clip)] if clip else []
    if recipe.optimizer == Optimizer.MUON:
        of_vectors = _learning_rate(recipe, recipe.learning_rate / 5)
        rate = _learning_rate(recipe, recipe.learning_rate)
        return optax.chain(*steps, optax.contrib.muon(rate, adam_learning_rate=of_vectors))
    return optax.chain(*steps, optax.adam(_learning_rate(recipe, recipe.learning_rate)))


def _learning_rate(recipe: Recipe, first: float) -> optax.ScalarOrSchedule:
    match recipe.learning_rate_schedule:
        case LearningRate.COSINE:
            return optax.cosine_decay_schedule(first, recipe.train_steps, alpha=0.01)
        case _:
            return first


def advance(
    recipe: Recipe, learners: Learner, steps: Int[Array, ""]
) -> tuple[Learner, Float[Array, "seeds"]]:
    """Train the seeds of a chunk for some steps; the mean loss of each."""

    def one(_, carry):
        learners, total = carry
        gradients_of = _in_windows if recipe.window else _of_whole_traces
        lengths = range(len(recipe.train_lengths))
        now = learners.step[0] % len(lengths)
        # What does not depend on the size of graphs is compiled once, not for every length.
        prepared, backward = jax.vjp(jax.vmap(Prepared.of), learners.network)
        loss, (of_prepared, of_readouts), streams = jax.lax.switch(
            now, [partial(gradients_of, recipe, i) for i in lengths], learners, prepared
        )
        learners = eqx.tree_at(lambda x: x.streams, learners, streams)
        gradients = (*backward(of_prepared), of_readouts)
        return jax.vmap(partial(update, recipe))(learners, loss, gradients), total + loss

    nothing = jnp.zeros(learners.seed.shape, jnp.float32)
    learners, total = jax.lax.fori_loop(0, steps, one, (learners, nothing))
    return learners, total / steps


Gradients = tuple[Float[Array, "seeds"], Learned, tuple[Stream, ...]]
"""Each seed's loss, the gradient of its prepared parameters, and how far it has come."""


def _of_whole_traces(recipe: Recipe, i: int, learners: Learner, prepared: Prepared) -> Gradients:
    """On a batch of new graphs of one of the training lengths, with their whole traces."""
    nodes = recipe.train_lengths[i]

    def of(learned: Learned, network: Network, groups: Lesson, steps, seed, step):
        key = jax.random.fold_in(_key(seed, "dropout"), step)
        few_steps = 2 if _is_narrow(recipe) else 4
        return prepared_loss_and_gradient(
            learned, network, groups, steps, key, objective(recipe, step), few_steps
        )

    def taught(batch: Batch) -> Lesson:
        program = recipe.mechanism
        return Lesson(batch, program and taught_on(program, batch, recipe.signals))

    batches = jax.vmap(partial(_new_graphs, recipe, nodes))(learners.seed, learners.step)
    if recipe.has_plain_loss and narrow.applies(recipe.posed, recipe.network_config):
        loss, gradient = jax.vmap(narrow.prepared_loss_and_gradient)(
            prepared, learners.network, jax.vmap(by_length)(batches)
        )
        return loss, (gradient, None), ()
    cut = partial(groups_by_length, groups=_groups(recipe, nodes))
    groups, needed = jax.vmap(lambda batch: cut(taught(batch)))(batches)
    # All seeds take as many steps as the longest needs, so that skipping is one decision.
    together = jnp.max(needed, axis=0)
    given = ((prepared, learners.readouts), learners.network, groups)
    return *_of_seeds(of, (0, 0, 0, None, 0, 0), *given, together, learners.seed, learners.step), ()


def _in_windows(recipe: Recipe, i: int, learners: Learner, prepared: Prepared) -> Gradients:
    """On the next window of the streams of one of the training lengths."""
    program = recipe.mechanism

    def of(learned: Learned, network: Network, stream: Stream, seed, step):
        batch = _new_graphs(recipe, recipe.train_lengths[i], seed, step)
        stream = stream.renewed(Stream.start(network, batch, program))
        key = jax.random.fold_in(_key(seed, "dropout"), step)
        if recipe.hidden_noise:
            noise_key = jax.random.fold_in(_key(seed, "noise"), step)
            stream = noisy(stream, noise_key, recipe.hidden_noise)
        state, lesson = stream.window(recipe.window, program, recipe.signals)
        loss, gradient, end = window_loss_and_gradient(
            learned, network, lesson, key, objective(recipe, step)
        )
        return loss, gradient, stream.further(recipe.window, end, state)

    given = ((prepared, learners.readouts), learners.network, learners.streams[i])
    loss, gradient, stream = _of_seeds(of, 0, *given, learners.seed, learners.step)
    streams = (*learners.streams[:i], stream, *learners.streams[i + 1 :])
    return loss, gradient, streams


def _of_seeds(of: Callable[..., Any], in_axes: Any, *given: Any) -> Any:
    """What a function finds for each seed."""
    (seeds,) = given[-1].shape
    if seeds > 1:
        return jax.vmap(of, in_axes=in_axes)(*given)
    # Without a seed axis XLA finds its plain matrix products.
    axes = in_axes if isinstance(in_axes, tuple) else [in_axes] * len(given)
    own = [
        x if axis is None else jax.tree.map(lambda leaf: leaf[0], x)
        for x, axis in zip(given, axes, strict=True)
    ]
    return jax.tree.map(lambda x: x[None], of(*own))


def _new_graphs(recipe: Recipe, nodes: int, seed: Int[Array, ""], step: Int[Array, ""]) -> Batch:
    """A seed's graphs of a step."""
    return _drawn(recipe, nodes, jax.random.fold_in(_key(seed, "data"), step))


def _drawn(recipe: Recipe, nodes: int, key: Key[Array, ""]) -> Batch:
    batch = sample(
        recipe.posed,
        key,
        batch_size=recipe.batch_size,
        nodes=nodes,
        random_pos=recipe.random_pos,
        graphs=recipe.train_graphs,
    )
    if recipe.position_grid:
        batch = on_a_grid(batch, jax.random.fold_in(key, 1), recipe.position_grid)
    if recipe.clock_shift:
        batch = with_shifted_clocks(batch, jax.random.fold_in(key, 2), recipe.clock_shift)
    return batch


def objective(recipe: Recipe, step: Int[Array, ""]) -> Objective:
    """What the loss is made of at a step."""
    after_hints = teaching = forcing = None
    if recipe.curriculum_steps:
        after_hints = (step >= recipe.curriculum_steps).astype(jnp.float32)
    if recipe.supervision_begins or recipe.supervision_ends:
        teaching = recipe.is_taught_at(step).astype(jnp.float32)
    if recipe.teacher_forcing_schedule == Forcing.LINEAR:
        forcing = recipe.hint_teacher_forcing * (1 - step / recipe.train_steps)
    return Objective(
        output_weight=after_hints,
        mechanism=recipe.mechanism,
        attention_weight=recipe.attention_supervision,
        active_weight=recipe.active_supervision,
        state_weight=recipe.state_supervision,
        change_weight=recipe.change_weight,
        worst_weight=recipe.worst_weight,
        ignored=recipe.ignored,
        teaching_weight=teaching,
        forcing=forcing,
    )


def _groups(recipe: Recipe, nodes: int) -> int:
    """How many groups a batch is cut into, as was measured to be fastest.

    More groups run fewer steps for nothing; fewer have larger matrices, which wide networks need.
    """
    size = recipe.batch_size
    if recipe.posed.fixed_length:  # no group would be shorter than another
        return 1
    counts = (1, 2, 4, 8) if _is_narrow(recipe) else (1, 2, 4)
    rows = 16 if _is_narrow(recipe) else 112
    fitting = [k for k in counts if size % k == 0 and size * nodes >= rows * k]
    return max(fitting, default=1)


def _is_narrow(recipe: Recipe) -> bool:
    return recipe.hidden_size <= 16


def update(
    recipe: Recipe,
    learner: Learner,
    loss: Float[Array, ""],
    gradients: tuple[Network, Readouts | None],
) -> Learner:
    """One seed after one step of the optimiser."""
    network, readouts = learned = learner.network, learner.readouts
    gradient, of_readouts = gradients
    if recipe.regularization:
        penalty = jax.grad(partial(weight_penalty, recipe.regularizer))(network)
        gradient = jax.tree.map(
            lambda g, p: g + recipe.regularization_weight * p, gradient, penalty
        )
    if recipe.freeze_processor:
        frozen = jax.tree.map(jnp.zeros_like, gradient.processor)
        gradient = eqx.tree_at(lambda n: n.processor, gradient, frozen)
    gradients = gradient, of_readouts
    updates, state = optimizer(recipe).update(gradients, learner.optimizer, learned)  # pyright: ignore[reportArgumentType]
    network, readouts = eqx.apply_updates(learned, updates)
    finite = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(gradients))
    diverged = learner.diverged_at >= 0
    diverged_at = jnp.where(finite | diverged, learner.diverged_at, learner.step)
    return Learner(
        seed=learner.seed,
        step=learner.step + 1,
        network=network,
        optimizer=state,
        best=learner.best,
        best_step=learner.best_step,
        best_validation=learner.best_validation,
        diverged_at=diverged_at,
        readouts=readouts,
        streams=learner.streams,
    )


def weight_penalty(regularizer: str, network: Network) -> Float[Array, ""]:
    """The sum of squares or of absolute values of all weights; biases and layer norm are free."""
    matrices = [leaf for leaf in jax.tree.leaves(network) if leaf.ndim >= 2]
    size = jnp.square if regularizer == Regularizer.L2 else jnp.abs
    return sum((jnp.sum(size(matrix)) for matrix in matrices), jnp.zeros(()))


def report(
    recipe: Recipe,
    validation: Batch,
    test: Batch,
    learners: Learner,
    loss: Float[Array, "seeds"],
    testing: Bool[Array, ""],
) -> tuple[Learner, Report]:
    """Validate the seeds of a chunk and keep the best of each; test if asked for."""

    def one(learner: Learner) -> tuple[Learner, Float[Array, ""]]:
        found = score(learner.network, validation)
        # NaN is never better.
        better = found > learner.best_validation
        if recipe.latest_best:
            better |= found == learner.best_validation
        keep = partial(jnp.where, better)
        learner = eqx.tree_at(
            lambda x: (x.best, x.best_step, x.best_validation),
            learner,
            (
                jax.tree.map(keep, learner.network, learner.best),
                keep(learner.step, learner.best_step),
                keep(found, learner.best_validation),
            ),
        )
        return learner, found

    def tests(learner: Learner) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return score(learner.network, test), score(learner.best, test)

    learners, found = jax.lax.map(one, learners)
    untested = (jnp.full(found.shape, jnp.nan),) * 2
    tested = jax.lax.cond(testing, lambda: jax.lax.map(tests, learners), lambda: untested)
    return learners, Report(loss, found, *tested)


def score(network: Network, batch: Batch) -> Float[Array, ""]:
    """A network's output score on some graphs."""
    return output_scores(batch, unroll(network, batch, training=False).outputs)["score"]


def held_out(recipe: Recipe) -> tuple[Batch, Batch]:
    """Validation and test graphs, the same for all seeds."""
    return validation_graphs(recipe), test_graphs(recipe)


def validation_graphs(recipe: Recipe) -> Batch:
    """New graphs of the kind that is trained on, as large as the largest of these."""
    key = jax.random.key(0x7A11D)
    batch = sample(
        recipe.posed,
        key,
        batch_size=VALIDATION_GRAPHS,
        nodes=recipe.validation_nodes,
        random_pos=recipe.random_pos,
        graphs=recipe.train_graphs,
    )
    if recipe.position_grid:
        batch = on_a_grid(batch, jax.random.fold_in(key, 1), recipe.position_grid)
    return batch.trim()


def test_graphs(recipe: Recipe) -> Batch:
    """The official test set, as many graphs of its size and another kind, or of the training
    length."""
    if recipe.length_generalize and recipe.test_graphs == ER:
        return official(recipe.posed, Split.TEST)
    if recipe.length_generalize:
        return graphs_to_test(recipe.posed, recipe.test_graphs, NODES[Split.TEST], SAMPLES)
    return graphs_to_test(
        recipe.posed, recipe.test_graphs, recipe.validation_nodes, SHORT_TEST_GRAPHS
    )


def graphs_to_test(task: Task, graphs: str, nodes: int, count: int) -> Batch:
    """New graphs of one kind, with the edge parameter and the positions of the official sets."""
    return sample(
        task,
        jax.random.key(0x7E57),
        batch_size=count,
        nodes=nodes,
        p=TEST_P,
        random_pos=False,
        graphs=graphs,
    ).trim()


_USES = ("initial", "data", "dropout", "readouts", "streams", "noise")


def _key(seed: Int[Array, ""], use: str) -> Key[Array, ""]:
    """A seed's own stream of random numbers for one use."""
    return jax.random.fold_in(jax.random.key(seed), _USES.index(use))
