"""The options that dm-clrs does not have, against NumPy; what is random, against dm-clrs."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.interop.dm_clrs import baseline_model, from_haiku, to_feedback
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.tasks.sampling import sample
from mechgap.training.loss import loss

KEY = jax.random.key(0)


def one_step(network, batch):
    """The paper's equations of the first step, in NumPy, from the parameters by name."""
    gat, values = network.processor, {k: np.asarray(v) for k, v in batch.inputs.items()}
    values |= {"reach_h": np.asarray(batch.hints["reach_h"][0])}
    values |= {"pi_h": np.eye(batch.nodes)[np.asarray(batch.hints["pi_h"][0])]}
    encode = network.encoders.linears

    def encoded(*names: str) -> np.ndarray:
        parts = [values[k][..., None] * encode[k].weight[0] + encode[k].bias for k in names]
        return np.sum(parts, axis=0)

    node, edge = encoded("pos", "s", "reach_h"), encoded("A", "adj", "pi_h")
    hidden = network.config.hidden_size
    c = np.concatenate([node, np.zeros((*node.shape[:-1], hidden))], axis=-1)

    def through(linear, x):
        return x @ np.asarray(linear.weight) + np.asarray(linear.bias)

    zeta = through(gat.sender, c)[:, None] + through(gat.receiver, c)[:, :, None]
    zeta = zeta + through(gat.edge, edge) + np.asarray(gat.meta.bias)
    if gat.pre_attention_bias is not None:
        zeta = zeta + np.asarray(gat.pre_attention_bias)[None, :, :, None]
    heads, size = gat.attention.shape
    bent = np.where(zeta > 0, zeta, 0.01 * zeta).reshape(*zeta.shape[:-1], heads, size)
    logits = np.einsum("bijhf,hf->bhij", bent, gat.attention)
    support = (values["adj"] + values["adj"].swapaxes(1, 2)) > 0
    logits = np.where(support[:, None], logits, -np.inf)
    alpha = np.exp(logits - logits.max(-1, keepdims=True))
    alpha = alpha / alpha.sum(-1, keepdims=True)
    value = through(gat.value, c).reshape(*c.shape[:-1], heads, size)
    selected = np.einsum("bhij,bjhf->bihf", alpha, value)
    if gat.info is not None:
        selected = selected + np.einsum("bhij,bijf->bihf", alpha, edge @ np.asarray(gat.info))
    after = np.maximum(0, selected.reshape(*c.shape[:-1], hidden) + through(gat.skip, c))
    return alpha, after


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("info", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_edge_information_and_pre_attention_bias_are_the_papers_equations(heads, info, bias):
    batch = sample("bfs", KEY, batch_size=3, nodes=5).trim()
    config = NetworkConfig(
        hidden_size=6,
        nb_heads=heads,
        use_ln=False,
        use_edge_info=info,
        use_pre_att_bias=bias,
        pre_att_bias_nodes=5,
    )
    network = Network.initial("bfs", jax.random.key(2), config)
    if bias:
        assert not np.any(network.processor.pre_attention_bias)  # zero at the start
        drawn = jax.random.normal(KEY, (5, 5))
        network = eqx.tree_at(lambda net: net.processor.pre_attention_bias, network, drawn)
    alpha, hidden = one_step(network, batch)
    trace = run(network, batch)
    assert np.allclose(trace.attention[0], alpha, atol=1e-5)
    assert np.allclose(trace.hidden[0], hidden, atol=1e-5)


def test_simplified_decoder_points_to_the_nearest_position():
    batch = sample("bfs", KEY, batch_size=3, nodes=5).trim()
    config = NetworkConfig(hidden_size=4, simplify_decoders=True, simplified_sharpness=10.0)
    network = Network.initial("bfs", KEY, config)
    constant = eqx.tree_at(
        lambda net: (net.decoders["pi"].position.weight, net.decoders["pi"].position.bias),
        network,
        (jnp.zeros((12, 1)), jnp.full(1, 0.4)),
    )
    logits = run(constant, batch).outputs["pi"]
    expected = -10 * jnp.abs(0.4 - batch.inputs["pos"])
    assert np.allclose(logits, jnp.broadcast_to(expected[:, None], logits.shape), atol=1e-5)


def test_edge_information_adds_one_matrix_and_bias_one_per_pair():
    plain = NetworkConfig(hidden_size=4, nb_heads=2)
    count = Network.initial("bfs", KEY, plain).parameters
    informed = replace(plain, use_edge_info=True)
    assert Network.initial("bfs", KEY, informed).parameters == count + 4 * 2
    biased = replace(plain, use_pre_att_bias=True, pre_att_bias_nodes=7)
    assert Network.initial("bfs", KEY, biased).parameters == count + 49


@pytest.mark.parametrize(
    ("task", "hidden", "count"),
    [("bfs", 128, 397_316), ("bellman_ford", 128, 397_957), ("bfs", 4, 516)],
)
def test_parameter_counts_are_dm_clrs(task, hidden, count):
    config = NetworkConfig(hidden_size=hidden)
    assert Network.initial(task, KEY, config).parameters == count
    feedback = to_feedback(sample(task, KEY, batch_size=2, nodes=4))
    model = baseline_model(task, config, feedback)
    assert sum(np.size(leaf) for leaf in jax.tree.leaves(model.params)) == count


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", [{"dropout_prob": 0.4}, {"hint_teacher_forcing": 0.5}], ids=["dropout", "forcing"]
)
def test_random_parts_have_dm_clrs_expected_loss(option):
    """Keys cannot be compared, so the mean loss over many keys is, within its standard error."""
    config = NetworkConfig(hidden_size=8, **option)
    batch = sample("bellman_ford", jax.random.key(4), batch_size=8, nodes=7).trim()
    feedback = to_feedback(batch)
    model = baseline_model("bellman_ford", config, feedback, seed=1)
    network = from_haiku("bellman_ford", config, model.params)
    keys = 400
    ours = jax.jit(jax.vmap(lambda key: loss(network, batch, key)))(
        jax.random.split(jax.random.key(5), keys)
    )
    theirs = jax.jit(jax.vmap(lambda key: model._loss(model.params, key, feedback, 0)))(
        jax.random.split(jax.random.PRNGKey(6), keys)
    )
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    error = np.sqrt((np.var(ours) + np.var(theirs)) / keys)
    assert np.std(ours) > 0
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * error
    assert np.std(ours) == pytest.approx(np.std(theirs), rel=0.3)


def test_encoders_of_a_location_sum_to_one_map():
    network = Network.initial("bfs", KEY, NetworkConfig(hidden_size=4))
    edge = network.encoders.together.edge
    assert edge is not None
    assert edge.weight.shape == (3, 4)  # A, adj, pi_h
    assert network.encoders.together.graph is None


def test_a_biased_network_runs_at_one_size():
    config = NetworkConfig(hidden_size=4, use_pre_att_bias=True, pre_att_bias_nodes=5)
    network = Network.initial("bfs", KEY, config)
    with pytest.raises(ValueError, match="the one size that it was made for, 5 nodes; got 6"):
        run(network, sample("bfs", KEY, batch_size=2, nodes=6))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"nb_heads": 3},
            r"nb_heads must divide hidden_size; got 3 and 128. Choose one of 1,",
        ),
        ({"nb_heads": 0}, "nb_heads must be at least 1; got 0"),
        ({"hidden_size": 0}, "hidden_size must be at least 1"),
        ({"nb_msg_passing_steps": 0}, "nb_msg_passing_steps must be at least 1"),
        ({"use_lstm": True}, "use_lstm is not supported"),
        ({"dropout_prob": 1.0}, r"dropout_prob must lie in \[0, 1\); got 1.0"),
        ({"hint_teacher_forcing": -0.1}, "hint_teacher_forcing must lie in"),
        ({"hint_mode": "encoded"}, "unknown hint_mode 'encoded'. Did you mean 'encoded_decoded'"),
        ({"hint_repred_mode": "x"}, "unknown hint_repred_mode 'x'"),
        ({"encoder_init": "xavier"}, "Did you mean 'xavier_on_scalars'"),
        ({"processor_type": "gat"}, "unknown processor_type 'gat'. Did you mean 'gatv2'"),
        ({"use_pre_att_bias": True}, "needs the number of nodes that the bias is made for"),
    ],
)
def test_impossible_networks_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        NetworkConfig(**wrong)
