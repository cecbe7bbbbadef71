"""The native loss and gradient of minimal networks equal those of the network itself."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.tasks.sampling import sample
from mechgap.training import narrow
from mechgap.training.loss import loss

MINIMAL = NetworkConfig(hidden_size=4)

pytestmark = pytest.mark.skipif(not narrow.applies("bfs", MINIMAL), reason="no C++ compiler here")

CASES = {
    "bfs": ("bfs", {}),
    "bellman_ford": ("bellman_ford", {}),
    "without layer norm": ("bellman_ford", {"use_ln": False}),
    "edge information and bias": (
        "bellman_ford",
        {"use_edge_info": True, "use_pre_att_bias": True, "pre_att_bias_nodes": 6},
    ),
    "simplified decoders": ("bfs", {"simplify_decoders": True, "simplified_sharpness": 7.0}),
    "hints not fed": ("bellman_ford", {"hint_mode": "decoded_only"}),
    "no hints": ("bfs", {"hint_mode": "none", "use_edge_info": True}),
    "long traces": ("bfs_sequential", {}),
    "all pairs": ("bellman_ford", {"processor_type": "gatv2_full"}),
}


natively = jax.jit(narrow.loss_and_gradient)
plainly = eqx.filter_jit(eqx.filter_value_and_grad(loss))


def a_network(task: str, config: NetworkConfig, dtype) -> Network:
    """Random parameters, none of them zero, so that no gradient can be missed."""
    network = Network.initial(task, jax.random.key(1), config)
    leaves, structure = jax.tree.flatten(network)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    noisy = [
        leaf + 0.3 * jax.random.normal(key, leaf.shape)
        for leaf, key in zip(leaves, keys, strict=True)
    ]
    return jax.tree.map(lambda x: x.astype(dtype), jax.tree.unflatten(structure, noisy))


def a_batch(task: str, dtype, batch_size: int = 21, nodes: int = 6):
    batch = sample(task, jax.random.key(3), batch_size=batch_size, nodes=nodes, random_pos=True)
    return jax.tree.map(lambda x: x.astype(dtype) if x.dtype == jnp.float32 else x, batch)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("nodes", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_loss_and_gradient(case, nodes):
    task, given = CASES[case]
    if nodes == 1 and "pre_att_bias_nodes" in given:
        given = {**given, "pre_att_bias_nodes": 1}
    config = NetworkConfig(hidden_size=4, **given)
    with jax.enable_x64(True):
        network, batch = (
            a_network(task, config, jnp.float64),
            a_batch(task, jnp.float64, nodes=nodes),
        )
        expected, gradient = plainly(network, batch)
        found, ours = natively(network, batch)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        for (path, want), got in zip(
            jax.tree.leaves_with_path(gradient), jax.tree.leaves(ours), strict=True
        ):
            np.testing.assert_allclose(
                got, want, rtol=1e-9, atol=1e-13, err_msg=jax.tree_util.keystr(path)
            )


@pytest.mark.slow
@pytest.mark.parametrize("task", ["bfs", "bellman_ford"])
def test_single_precision(task):
    """Its own exponential and logarithm are as good as JAX's."""
    batch = a_batch(task, jnp.float32, 32, 16)
    network = Network.initial(task, jax.random.key(1), MINIMAL)
    expected, gradient = plainly(network, batch)
    found, ours = natively(network, batch)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for want, got in zip(jax.tree.leaves(gradient), jax.tree.leaves(ours), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


def test_seeds_side_by_side():
    batches = [a_batch("bfs", jnp.float32, 32, n) for n in (7, 7, 7)]
    networks = [Network.initial("bfs", jax.random.key(k), MINIMAL) for k in range(3)]
    together = jax.vmap(narrow.loss_and_gradient)(
        jax.tree.map(lambda *x: jnp.stack(x), *networks),
        jax.tree.map(lambda *x: jnp.stack(x), *batches),
    )
    for k in range(3):
        alone = narrow.loss_and_gradient(networks[k], batches[k])
        # The matrices are multiplied by XLA, whose products may round differently side by side.
        assert float(together[0][k]) == pytest.approx(float(alone[0]), rel=1e-6)


def test_a_network_that_is_not_a_number_has_such_a_loss():
    network = Network.initial("bfs", jax.random.key(0), MINIMAL)
    network = jax.tree.map(lambda x: x * jnp.nan, network)
    assert np.isnan(narrow.loss_and_gradient(network, a_batch("bfs", jnp.float32))[0])


@pytest.mark.parametrize(
    ("task", "given"),
    [
        ("bfs", {"hidden_size": 8}),
        ("bfs", {"nb_heads": 2}),
        ("bfs", {"nb_msg_passing_steps": 2}),
        ("bfs", {"dropout_prob": 0.1}),
        ("bfs", {"hint_teacher_forcing": 0.5}),
        ("bfs", {"hint_repred_mode": "hard"}),
        ("dfs", {}),
        ("dijkstra", {}),
        ("topological_sort", {}),
    ],
)
def test_does_not_apply(task, given):
    assert not narrow.applies(task, NetworkConfig(**{"hidden_size": 4, **given}))
