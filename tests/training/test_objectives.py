"""Traces first, attention as a target: the parts of the loss that dm-clrs does not have."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_softmax

from mechgap.errors import InvalidInput
from mechgap.measures.reference import compile_reference
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network, unroll
from mechgap.network.trace import run
from mechgap.programs.interpreter import interpret
from mechgap.programs.library import LIBRARY, bfs_parent
from mechgap.tasks.sampling import sample
from mechgap.training.lesson import Lesson, groups_by_length
from mechgap.training.loss import Objective, loss, loss_and_gradient
from mechgap.training.population import initial, objective
from mechgap.training.presets import make_recipe
from mechgap.training.supervision import Readouts, attention_errors, taught_on

SMALL = NetworkConfig(hidden_size=8)


def graphs(task, nodes=9):
    return sample(task, jax.random.key(3), batch_size=16, nodes=nodes)


@pytest.mark.parametrize("name", ["bfs", "bfs_parent", "bellman_ford", "dfs_parent", "dijkstra"])
def test_the_program_runs_in_jax_as_in_numpy(name):
    program = LIBRARY[name]
    batch = graphs(program.task, 16)
    exact = interpret(program, jax.tree.map(np.asarray, batch.inputs), batch.steps)
    ours = jax.jit(taught_on, static_argnums=(0, 2))(program, batch, program.signals)
    valid = np.arange(batch.steps)[:, None] < np.asarray(batch.lengths) - 1
    by_phase = (batch.steps, program.selections, batch.size, batch.nodes)
    same = np.asarray(ours.senders) == exact.senders.reshape(by_phase)
    assert same.swapaxes(1, 2)[valid].all()


@pytest.mark.slow
def test_attention_error_is_the_mean_over_what_counts():
    """Against a loop over the network's own attention."""
    batch = graphs("bfs")
    network = Network.initial("bfs", jax.random.key(0), NetworkConfig(hidden_size=8, nb_heads=2))
    program = bfs_parent
    senders = interpret(program, jax.tree.map(np.asarray, batch.inputs), batch.steps).senders
    attention = np.asarray(run(network, batch).attention)
    errors = [
        -np.log(attention[t, b, h, i, senders[t, b, i]])
        for b in range(batch.size)
        for t in range(int(batch.lengths[b]) - 1)
        for h in range(2)
        for i in range(batch.nodes)
    ]
    plain = loss(network, batch)
    with_it = loss(network, batch, objective=Objective(None, program, 3.0))
    assert float(with_it - plain) == pytest.approx(3 * np.mean(errors), rel=1e-5)


def test_nobody_is_taught_to_look_where_it_cannot():
    """A network that is fed its own pointers, which are wrong, is blind along the right ones."""
    batch = sample("topological_sort", jax.random.key(3), batch_size=8, nodes=9)
    program = LIBRARY["topological_sort_parent"]
    config = NetworkConfig(hidden_size=8, nb_msg_passing_steps=3)
    network = Network.initial("topological_sort", jax.random.key(0), config)
    taught = taught_on(program, batch)
    steps = unroll(network, batch, training=False, keep_steps=True).steps
    assert steps is not None
    rows = np.broadcast_to(np.asarray(steps.support)[:, None], (*taught.senders.shape, 9))
    seen = np.take_along_axis(rows, np.asarray(taught.senders)[..., None], -1)[..., 0]
    assert not seen.all()
    error = np.asarray(attention_errors(taught, steps))
    assert (error[~seen] == 0).all()
    assert (error[seen] > 0).any()
    assert error.max() < 50


def test_the_worst_node_of_each_step():
    """Against a loop: the largest error of attention and of hints that nodes have."""
    batch = graphs("bfs")
    network = Network.initial("bfs", jax.random.key(0), SMALL)
    senders = interpret(LIBRARY["bfs"], jax.tree.map(np.asarray, batch.inputs), batch.steps).senders
    trace = run(network, batch)
    attention, hints = np.asarray(trace.attention), jax.tree.map(np.asarray, dict(trace.hints))
    errors = []
    for b in range(batch.size):
        for t in range(int(batch.lengths[b]) - 1):
            rows = attention[t, b, 0][np.arange(batch.nodes), senders[t, b]]
            pointers = log_softmax(hints["pi_h"][t, b], axis=-1)
            pointed = pointers[np.arange(batch.nodes), np.asarray(batch.hints["pi_h"][t + 1, b])]
            reached = np.asarray(batch.hints["reach_h"][t + 1, b]) > 0
            flags = expit(np.where(reached, 1, -1) * hints["reach_h"][t, b])
            errors.append(-np.log(rows).min() - pointed.min() - np.log(flags).min())
    taught = Objective(None, LIBRARY["bfs"], 1.0)
    plain = loss(network, batch, objective=taught)
    with_it = loss(network, batch, objective=Objective(None, LIBRARY["bfs"], 1.0, worst_weight=3.0))
    assert float(with_it - plain) == pytest.approx(3 * np.mean(errors), rel=1e-5)


def test_a_compiled_network_has_no_attention_error():
    compiled = compile_reference(make_recipe("bellman_ford"), 9).compiled
    assert compiled is not None
    batch = sample("bellman_ford", jax.random.key(3), batch_size=16, nodes=9, random_pos=False)
    compiled.check_inputs(batch)
    plain = loss(compiled.network, batch)
    with_it = loss(compiled.network, batch, objective=Objective(None, compiled.program, 1.0))
    assert float(with_it - plain) == pytest.approx(0.0, abs=1e-5)


def test_what_is_read_of_signals():
    """Against SciPy, one node at a time: a pointer is a choice among nodes by nearness."""
    program, names = LIBRARY["dfs"], ("found", "target")
    batch = graphs("dfs", 5)
    taught = taught_on(program, batch, names)
    rng = np.random.default_rng(0)
    readouts = Readouts(
        *(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((4, 2), 2, 2))
    )
    hidden = rng.normal(size=(*taught.senders.shape, 4)).astype(np.float32)
    pos = np.asarray(batch.inputs["pos"])
    found = np.asarray(readouts.errors(program, taught, jnp.asarray(hidden), jnp.asarray(pos)))
    read = hidden @ np.asarray(readouts.weight) + np.asarray(readouts.bias)
    sharpness = np.exp(float(readouts.sharpness[1]))
    flags, targets = (np.asarray(taught.signals[name]) for name in names)
    for at in np.ndindex(*found.shape):
        _, phase, sample, _ = at
        expected = 0.0
        if phase == 1:  # choose sets both, and only enter reads them
            flag, position = read[at]
            to = int(np.argmin(np.abs(pos[sample] - targets[at])))
            chances = log_softmax(-sharpness * np.abs(position - pos[sample]))
            expected = -np.log(expit(flag if flags[at] else -flag)) - chances[to]
        assert found[at] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("weight", "program"),
    [
        pytest.param(None, LIBRARY["bfs"], id="supervised"),
        pytest.param(0.25, None, id="weighted", marks=pytest.mark.slow),
    ],
)
def test_groups_have_the_batchs_loss_and_gradient(weight, program):
    with jax.enable_x64(True):
        output = None if weight is None else jnp.asarray(weight)
        wanted = Objective(output, program, 0.5, active_weight=0.3, change_weight=0.7)
        batch = graphs("bfs", 11)
        network = Network.initial("bfs", jax.random.key(2), SMALL)
        network = jax.tree.map(lambda x: x.astype(jnp.float64), network)
        value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss))(
            network, batch, None, wanted
        )
        lesson = Lesson(batch, program and taught_on(program, batch))
        cut, needed = groups_by_length(lesson, 4)
        grouped = eqx.filter_jit(loss_and_gradient)(network, cut, needed, None, wanted)
        assert abs(grouped[0] - value) <= 1e-12 * abs(value)
        for ours, theirs in zip(
            jax.tree.leaves(grouped[1]), jax.tree.leaves(gradient), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_an_ignored_hint_has_no_part_in_the_loss():
    network = Network.initial("dfs", jax.random.key(2), SMALL)
    ignoring = Objective(ignored=("v", "d"), change_weight=0.5)
    gradient = eqx.filter_grad(loss)(network, graphs("dfs", 4), None, ignoring)
    for name, decoder in gradient.decoders.items():
        reached = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(decoder)) > 0
        # What is fed goes on into later steps, through its own decoder.
        assert reached, name
    forced = Network.initial("dfs", jax.random.key(2), replace(SMALL, hint_teacher_forcing=1.0))
    gradient = eqx.filter_grad(loss)(forced, graphs("dfs", 4), jax.random.key(0), ignoring)
    for name, decoder in gradient.decoders.items():
        reached = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(decoder)) > 0
        assert reached == (name not in ("v", "d")), name


@pytest.mark.slow
def test_hints_first():
    """Before the curriculum's end no gradient reaches the output's own decoder; after it does."""
    recipe = make_recipe("bfs", overrides={"curriculum_steps": 10, "hidden_size": 8})
    network = initial(recipe, jnp.int32(0)).network
    for step, reaches in ((0, False), (9, False), (10, True)):
        now = objective(recipe, jnp.int32(step))
        gradient = eqx.filter_grad(loss)(network, graphs("bfs"), None, now)
        found = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(gradient.decoders["pi"]))
        assert (found > 0) == reaches
        hints = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(gradient.decoders["pi_h"]))
        assert hints > 0


def test_teaching_begins_and_ends():
    """Outside of these steps the loss is that of hints and output alone."""
    given = {"attention_supervision": 2.0, "supervision_begins": 3, "supervision_ends": 5}
    recipe = make_recipe("bfs", overrides={**given, "hidden_size": 8, "train_steps": 9})
    network = initial(recipe, jnp.int32(0)).network
    found = [float(loss(network, graphs("bfs"), None, objective(recipe, jnp.int32(step))))
             for step in range(9)]  # fmt: skip
    plain = float(loss(network, graphs("bfs")))
    taught = float(loss(network, graphs("bfs"), None, Objective(None, LIBRARY["bfs"], 2.0)))
    assert found == pytest.approx([plain] * 3 + [taught] * 2 + [plain] * 4, rel=1e-6)
    assert taught > plain + 1


@pytest.mark.parametrize(
    ("task", "given", "says"),
    [
        ("bfs", {"curriculum_steps": 5, "hint_mode": "none"}, "needs hints"),
        ("bfs", {"curriculum_steps": -1}, "must not be negative"),
        ("bfs", {"supervised_mechanism": "bfs"}, "nothing is supervised"),
        ("bfs", {"supervision_ends": 5}, "supervision_ends is 5 but nothing is supervised"),
        (
            "bfs",
            {"attention_supervision": 1.0, "supervision_begins": 5, "supervision_ends": 5},
            "must begin before it ends",
        ),
        (
            "bfs",
            {"attention_supervision": 1.0, "supervision_ends": 20_000},
            "end within train_steps",
        ),
        ("bfs", {"active_supervision": -1.0}, "must not be negative"),
        ("bfs", {"worst_weight": -1.0}, "must not be negative"),
        ("bfs", {"simplified_sharpness": 0.0}, "must be above 0"),
        ("bfs", {"window": -1}, "must not be negative"),
        ("dfs", {"window": 12}, "at most 11 steps on 4 nodes; got window = 12"),
        ("dfs", {"window": 4, "hint_teacher_forcing": 1.5}, "hint_teacher_forcing"),
        (
            "dfs",
            {"teacher_forcing_schedule": "cosine"},
            "unknown teacher_forcing_schedule 'cosine'",
        ),
        ("dfs", {"learning_rate_schedule": "step"}, "unknown learning_rate_schedule 'step'"),
        ("bfs", {"optimizer": "sgd"}, "unknown optimizer 'sgd'"),
        ("dfs", {"hidden_noise": 0.1}, "traces are whole"),
        ("dfs", {"ignored_hints": "d,g"}, "unknown hint of dfs 'g'"),
        ("dfs", {"position_grid": 8}, "a place for each of 16 nodes; got 8"),
        ("bfs", {"clock_shift": 0.5}, "bfs has no such hint"),
        ("dfs", {"attention_supervision": 1.0}, "dfs needs 3"),
        ("bfs", {"supervised_signals": "found"}, "state_supervision is 0"),
        ("bfs", {"state_supervision": 1.0}, "nothing to act on"),
        (
            "dfs",
            {
                "state_supervision": 1.0,
                "nb_msg_passing_steps": 3,
                "supervised_signals": "found,targt",
            },
            "unknown signal of dfs 'targt'. Did you mean 'target'",
        ),
        (
            "bfs",
            {"attention_supervision": 1.0, "supervised_mechanism": "bfs_paren"},
            "Did you mean",
        ),
        ("dfs_simplified", {"attention_supervision": 1.0}, "no exact program of dfs_simplified"),
        ("bfs", {"attention_supervision": 1.0, "nb_msg_passing_steps": 2}, "bfs needs 1"),
    ],
)
def test_what_cannot_be(task, given, says):
    with pytest.raises(InvalidInput, match=says):
        make_recipe(task, overrides=given)
