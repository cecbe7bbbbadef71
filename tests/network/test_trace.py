"""Every intermediate value, by name, and any of them forced."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.trace import outputs, run
from mechgap.tasks import memory
from mechgap.tasks.sampling import sample

CONFIG = NetworkConfig(hidden_size=8, nb_heads=2, nb_msg_passing_steps=3)


@pytest.fixture(scope="module")
def batch():
    return sample("bfs", jax.random.key(0), batch_size=4, nodes=6).trim()


@pytest.fixture(scope="module")
def network():
    return Network.initial("bfs", jax.random.key(1), CONFIG)


@pytest.fixture(scope="module")
def trace(network, batch):
    return run(network, batch)


def test_shapes(trace, batch):
    steps = batch.max_hints - 1
    assert trace.attention.shape == trace.logits.shape == (3 * steps, 4, 2, 6, 6)
    assert trace.hidden.shape == (3 * steps, 4, 6, 8)
    assert trace.support.shape == (steps, 4, 6, 6)
    assert trace.hints["pi_h"].shape == (steps, 4, 6, 6)
    assert trace.outputs["pi"].shape == (4, 6, 6)


def test_attention_is_the_softmax_of_the_logits_on_the_support(trace):
    support = jnp.repeat(trace.support, 3, axis=0)[:, :, None]
    expected = jax.nn.softmax(jnp.where(support, trace.logits, -jnp.inf), axis=-1)
    assert np.allclose(trace.attention, expected, atol=1e-6)
    assert (
        np.asarray(trace.attention)[~np.broadcast_to(support, trace.attention.shape)] == 0
    ).all()


def test_support_is_edges_and_self_and_confident_pointers(trace, batch):
    adjacent = np.asarray(batch.inputs["adj"]) > 0
    truth = np.asarray(jax.nn.one_hot(batch.hints["pi_h"][0], 6)) > 0
    assert np.array_equal(trace.support[0], adjacent | truth | truth.swapaxes(1, 2))
    soft = np.asarray(jax.nn.softmax(trace.hints["pi_h"][0], axis=-1))
    assert np.array_equal(trace.support[1], adjacent | (soft + soft.swapaxes(1, 2) > 0.5))


def test_all_pairs_attend_in_the_full_processor(network, batch):
    config = replace(CONFIG, processor_type="gatv2_full")
    trace = run(replace(network, config=config), batch)
    assert trace.support.all()
    assert np.allclose(trace.attention, jax.nn.softmax(trace.logits, axis=-1), atol=1e-6)


def test_only_steps_that_the_output_depends_on_are_valid(trace, batch):
    per_sample = np.asarray(trace.valid).sum(axis=0)
    assert per_sample.tolist() == (3 * np.maximum(1, np.asarray(batch.lengths) - 1)).tolist()


@pytest.mark.parametrize("name", ["attention", "logits", "hidden", "support", "hints", "outputs"])
def test_forcing_a_value_to_itself_changes_nothing(name, trace, network, batch):
    again = run(network, batch, replace={name: getattr(trace, name)})
    for ours, theirs in zip(jax.tree.leaves(again), jax.tree.leaves(trace), strict=True):
        assert np.allclose(ours, theirs, atol=1e-6)


def test_a_forced_attention_is_followed(trace, network, batch):
    uniform = jnp.full_like(trace.attention, 1 / 6)
    forced = run(network, batch, replace={"attention": uniform})
    assert np.array_equal(forced.attention, uniform)
    assert not np.allclose(forced.outputs["pi"], trace.outputs["pi"], atol=1e-3)


def test_forced_hints_are_fed_back(network, batch):
    """With the true hints forced, every step reads what teacher forcing would feed it."""
    truth = {
        "reach_h": jnp.where(batch.hints["reach_h"][1:] > 0.5, 50.0, -50.0),
        "pi_h": 50.0 * jax.nn.one_hot(batch.hints["pi_h"][1:], 6),
    }
    forced = run(network, batch, replace={"hints": truth})
    edges = np.asarray(batch.inputs["adj"]) > 0
    pointers = np.asarray(jax.nn.one_hot(batch.hints["pi_h"][1], 6)) > 0
    assert np.array_equal(forced.support[1], edges | pointers | pointers.swapaxes(1, 2))
    assert np.array_equal(forced.hints["pi_h"], truth["pi_h"])


def test_forced_outputs_are_returned(network, batch):
    outputs = {"pi": jnp.zeros((4, 6, 6))}
    assert not run(network, batch, replace={"outputs": outputs}).outputs["pi"].any()


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        ({"atention": 0}, "unknown value to replace 'atention'. Did you mean 'attention'"),
        ({"attention": np.zeros(3)}, r"must have the shape of the run's own, \[\d+, 4, 2, 6, 6\]"),
        ({"hints": np.zeros(3)}, "given by name: one of pi_h, reach_h"),
        ({"hints": {"pi": np.zeros(3)}}, "unknown value to replace in hints 'pi'"),
        ({"outputs": {"pi": np.zeros(3)}}, r"outputs\['pi'\] must have the shape"),
    ],
)
def test_impossible_replacements_are_refused(replace, message, network, batch):
    with pytest.raises(ValueError, match=message):
        run(network, batch, replace=replace)


def test_a_network_of_another_task_is_refused(network):
    other = sample("bellman_ford", jax.random.key(0), batch_size=2, nodes=4)
    with pytest.raises(ValueError, match="for bfs cannot run on a batch of bellman_ford"):
        run(network, other)


def test_training_does_not_compute_what_a_trace_keeps(network, batch):
    """Attention over time is in the traced program only."""
    from mechgap.training.loss import loss

    stacked = f"f32[{batch.steps},3,4,2,6,6]"
    assert stacked in str(eqx.filter_make_jaxpr(run)(network, batch)[0])
    assert stacked not in str(eqx.filter_make_jaxpr(loss)(network, batch)[0])


@pytest.mark.parametrize("hint_mode", ["encoded_decoded", "decoded_only", "none"])
@pytest.mark.parametrize("task", ["bellman_ford", "dfs"])
def test_outputs_alone_are_those_of_a_whole_run(task, hint_mode):
    batch = sample(task, jax.random.key(1), batch_size=5, nodes=6)
    config = NetworkConfig(hidden_size=8, hint_mode=hint_mode)
    network = Network.initial(task, jax.random.key(2), config)
    whole, alone = run(network, batch).outputs, outputs(network, batch)
    assert whole.keys() == alone.keys()
    for name, value in whole.items():
        np.testing.assert_allclose(alone[name], value, rtol=1e-5, atol=1e-5)


def test_outputs_alone_need_no_memory_for_steps():
    batch = sample("bfs", jax.random.key(1), batch_size=1, nodes=64)
    network = Network.initial("bfs", jax.random.key(2), NetworkConfig(hidden_size=8))
    compiled = [
        jax.jit(lambda batch: outputs(network, batch)).lower(batch.pad(hints)).compile()
        for hints in (64, 512)
    ]
    sizes = [each.memory_analysis() for each in compiled]
    few, many = (size.temp_size_in_bytes for size in sizes if size is not None)
    assert many < 1.1 * few + 100_000


def test_a_run_without_room_is_refused(monkeypatch):
    batch = sample("bfs", jax.random.key(0), batch_size=2, nodes=8)
    network = Network.initial("bfs", jax.random.key(1))
    run(network, batch)
    monkeypatch.setattr(memory, "available_memory", lambda: 10_000)
    with pytest.raises(InvalidInput, match=r"2 graphs of 8 nodes needs .* as lists"):
        run(network, batch)
