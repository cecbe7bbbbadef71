"""Traces learned in windows: the same loss, gradient and run as whole traces."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network, Prepared, unroll
from mechgap.programs.library import LIBRARY
from mechgap.tasks.sampling import sample
from mechgap.training.augmentation import on_a_grid, with_shifted_clocks
from mechgap.training.lesson import groups_by_length
from mechgap.training.loss import (
    PLAIN,
    Objective,
    prepared_loss_and_gradient,
    window_loss_and_gradient,
)
from mechgap.training.population import Trainer, initial
from mechgap.training.presets import make_recipe
from mechgap.training.store import _pack, _unpack
from mechgap.training.streams import Stream, noisy
from mechgap.training.supervision import Readouts

DFS = LIBRARY["dfs"]
TAUGHT = Objective(None, DFS, 0.5, 0.25, 2.0, 0.75)
WINDOWED = {"window": 3, "hidden_size": 4, "train_lengths": (4, 6), "batch_size": 4}
TEACHING = {
    "nb_msg_passing_steps": 3,
    "attention_supervision": 1.0,
    "active_supervision": 1.0,
    "state_supervision": 1.0,
    "change_weight": 1.0,
    "hidden_noise": 0.1,
    "position_grid": 8,
    "optimizer": "muon",
    "clock_shift": 1.0,
    "hint_teacher_forcing": 1.0,
    "teacher_forcing_schedule": "linear",
}


def network_for(task: str, substeps: int) -> Network:
    config = NetworkConfig(hidden_size=8, nb_msg_passing_steps=substeps)
    return Network.initial(task, jax.random.key(2), config)


def graphs(task: str, seed: int = 3, nodes: int = 5):
    return sample(task, jax.random.key(seed), batch_size=6, nodes=nodes)


@pytest.mark.parametrize(
    ("task", "objective"), [("dfs", PLAIN), ("dfs", TAUGHT), ("bellman_ford", PLAIN)]
)
def test_a_window_as_long_as_the_trace_is_the_trace(task, objective):
    """Loss and gradient, in float64."""
    with jax.enable_x64(True):
        program = objective.mechanism
        signals = program.signals if program else ()
        network = network_for(task, program.selections if program else 1)
        network = jax.tree.map(lambda x: x.astype(jnp.float64), network)
        readouts = Readouts.initial(jax.random.key(5), 8, len(signals)) if signals else None
        learned = (Prepared.of(network), readouts)
        batch = graphs(task)
        _, lesson = Stream.start(network, batch, program).window(batch.steps, program, signals)
        value, gradient, _ = eqx.filter_jit(window_loss_and_gradient)(
            learned, network, lesson, None, objective
        )
        whole = eqx.tree_at(lambda x: x.begin, lesson, None)
        groups, needed = groups_by_length(whole, 1)
        expected, of_whole = eqx.filter_jit(prepared_loss_and_gradient)(
            learned, network, groups, needed, None, objective
        )
        assert float(value) == pytest.approx(float(expected), rel=1e-12)
        for ours, theirs in zip(jax.tree.leaves(gradient), jax.tree.leaves(of_whole), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def test_windows_one_after_the_other_are_a_run():
    """What is carried on is all that a run takes from step to step."""
    network, batch = network_for("dfs", 3), graphs("dfs")
    whole = unroll(network, batch, training=True)
    stream, hints = Stream.start(network, batch, DFS), []
    for _ in range(batch.steps // 2):
        state, lesson = stream.window(2, DFS)
        part = unroll(network, lesson.batch, training=True, begin=lesson.begin)
        hints.append(part.hints)
        stream = stream.further(2, part.end, state)
    assert batch.steps % 2 == 0
    together = jax.tree.map(lambda *x: jnp.concatenate(x), *hints)
    for name, found in together.items():
        np.testing.assert_allclose(found, whole.hints[name], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(stream.carry.hidden, whole.end.hidden, rtol=1e-5, atol=1e-5)
    assert (stream.time >= stream.end).all()


def test_a_window_has_the_hints_of_its_time_and_says_who_ends_in_it():
    network, batch = network_for("bellman_ford", 1), graphs("bellman_ford", nodes=9)
    time = jnp.asarray([0, 1, 2, 0, 1, 0])
    stream = eqx.tree_at(lambda s: s.time, Stream.start(network, batch, None), time)
    _, lesson = stream.window(2, None)
    for i, t in enumerate(time.tolist()):
        length = int(batch.lengths[i])
        for k in range(3):
            if t + k < length:
                assert (lesson.batch.hints["d"][k, i] == batch.hints["d"][t + k, i]).all()
        assert bool(lesson.ending[i]) == (length - 1 <= t + 2)
        assert lesson.counted[:, i].tolist() == [t + k + 1 < length for k in range(2)]


def test_only_ended_traces_begin_anew():
    network = network_for("dfs", 3)
    old, new = (Stream.start(network, graphs("dfs", seed), DFS) for seed in (3, 4))
    moved = eqx.tree_at(
        lambda s: (s.time, s.carry.hidden),
        old,
        (jnp.asarray([0, 14, 3, 14, 13, 20]), 1 + old.carry.hidden),
    )
    renewed = moved.renewed(new)
    for i, ended in enumerate([False, True, False, True, False, True]):
        source = new if ended else moved
        assert (renewed.batch.inputs["A"][i] == source.batch.inputs["A"][i]).all()
        assert (renewed.batch.hints["pi_h"][:, i] == source.batch.hints["pi_h"][:, i]).all()
        assert (renewed.carry.hidden[i] == (0 if ended else 1)).all()
        assert int(renewed.time[i]) == (0 if ended else int(moved.time[i]))
        assert (renewed.mechanism["pi"][i] == source.mechanism["pi"][i]).all()
    disturbed = noisy(renewed, jax.random.key(0), 0.5)
    same = (disturbed.carry.hidden == renewed.carry.hidden).all(axis=(1, 2))
    assert same.tolist() == [True, True, False, True, False, True], "a run begins without noise"


def test_positions_on_a_grid():
    batch = sample("dfs", jax.random.key(0), batch_size=400, nodes=8)
    pos = np.asarray(on_a_grid(batch, jax.random.key(1), 64).inputs["pos"])
    assert (pos * 64 == np.round(pos * 64)).all()
    assert (np.diff(pos) > 0).all()
    width = 64 * (pos[:, -1] - pos[:, 0]) + 1
    wide, any_width = width[::2], width[1::2]
    assert 48 < wide.mean() < 52, "eight of 64 cells, drawn at random: 7 / 9 of 65"
    assert any_width.min() < 12
    assert any_width.max() > 52
    assert any_width.mean() < 40
    assert pos.max() <= 63 / 64


def test_a_clock_that_began_earlier():
    batch = sample("dfs", jax.random.key(0), batch_size=50, nodes=5)
    later = with_shifted_clocks(batch, jax.random.key(1), 2.0)
    begin = np.asarray(later.hints["time"] - batch.hints["time"])
    assert (np.ptp(begin, axis=0) < 1e-6).all()
    assert 0 <= begin.min() < 0.2
    assert 1.8 < begin.max() <= 2
    for name in ("d", "f"):
        before, after = np.asarray(batch.hints[name]), np.asarray(later.hints[name])
        expected = np.where(before > 0, before + begin[..., None], 0)
        np.testing.assert_allclose(after, expected, atol=1e-6)
    for name in ("pi_h", "color", "s", "u"):
        assert (batch.hints[name] == later.hints[name]).all()


@pytest.mark.parametrize("overrides", [{}, TEACHING], ids=["hints", "taught"])
def test_a_resumed_learner_has_the_same_bits(overrides):
    recipe = make_recipe("dfs", overrides={**WINDOWED, **overrides})
    trainer = Trainer(recipe)
    straight, _ = trainer.advance(trainer.start([0, 1]), 9)
    half, _ = trainer.advance(trainer.start([0, 1]), 4)
    stored = _unpack(_pack(half), half)
    resumed, _ = trainer.advance(jax.tree.map(jnp.asarray, stored), 5)
    for ours, theirs in zip(jax.tree.leaves(resumed), jax.tree.leaves(straight), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_streams_are_at_different_places_of_their_traces():
    recipe = make_recipe("dfs", overrides={**WINDOWED, "batch_size": 16, "window": 2})
    (small, large) = initial(recipe, jnp.int32(0)).streams
    assert small.batch.nodes == 4
    assert large.batch.nodes == 6
    assert (large.time == 0).all()
    assert len(set(large.end.tolist())) > 5
    assert int(large.end.max()) <= 17
