"""Attention patching: rows that are given, and a temperature for the others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.gatv2 import masked_softmax
from mechgap.network.network import Network
from mechgap.network.patch import Patch
from mechgap.network.trace import run
from mechgap.tasks.sampling import sample


@pytest.fixture(scope="module")
def batch():
    return sample("bfs", jax.random.key(0), batch_size=4, nodes=6).trim()


@pytest.fixture(scope="module")
def network():
    config = NetworkConfig(hidden_size=8, nb_heads=2, nb_msg_passing_steps=3)
    return Network.initial("bfs", jax.random.key(1), config)


def test_a_patch_that_changes_nothing_is_a_plain_run(network, batch):
    time, size, nodes = 3 * batch.steps, batch.size, batch.nodes
    given = jnp.zeros((time, size, 1, nodes, nodes))
    nobody, everybody = (jnp.full((time, size, nodes), which) for which in (False, True))
    plain = run(network, batch)
    patched = run(network, batch, patch=Patch(nobody, given, jnp.ones(time)))
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(patched), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    # All rows given is the same as replacing attention.
    uniform = jnp.full((time, size, 1, nodes, nodes), 1 / nodes)
    replaced = run(network, batch, replace={"attention": jnp.repeat(uniform, 2, axis=2)})
    whole = run(network, batch, patch=Patch(everybody, uniform, jnp.ones(time)))
    np.testing.assert_array_equal(np.asarray(whole.hidden), np.asarray(replaced.hidden))


def test_hardened_attention_is_the_largest_entry_of_what_it_would_have_been(network, batch):
    """Step by step: what it attends to later follows from what was hardened before."""
    time, size, nodes = 3 * batch.steps, batch.size, batch.nodes
    nobody = jnp.zeros((time, size, nodes), bool)
    hard = run(network, batch, patch=Patch(nobody, jnp.zeros((time, size, 1, nodes, nodes)),
                                           jnp.zeros(time)))  # fmt: skip
    support = jnp.repeat(hard.support, 3, axis=0)
    own = jax.vmap(masked_softmax)(hard.logits, support)
    wanted = jax.nn.one_hot(jnp.argmax(own, -1), nodes)
    np.testing.assert_array_equal(np.asarray(hard.attention), np.asarray(wanted))
    assert not np.array_equal(
        np.asarray(run(network, batch).logits[1:]), np.asarray(hard.logits[1:])
    )


def test_one_row_can_be_given(network, batch):
    time, size, nodes = 3 * batch.steps, batch.size, batch.nodes
    rows = jnp.zeros((time, size, nodes), bool).at[0, 0, 2].set(True)
    given = jnp.zeros((time, size, 1, nodes, nodes)).at[..., 1].set(1.0)
    plain = run(network, batch)
    found = run(network, batch, patch=Patch(rows, given, jnp.ones(time)))
    assert found.attention[0, 0, :, 2].tolist() == [given[0, 0, 0, 2].tolist()] * 2
    others = np.ones((size, nodes), bool)
    others[0, 2] = False
    same = np.asarray(found.hidden[0]) == np.asarray(plain.hidden[0])
    assert same[others].all()
    assert not same[~others].all()


def test_a_patch_of_another_shape_is_refused(network, batch):
    time, size, nodes = 3 * batch.steps, batch.size, batch.nodes
    rows, given = jnp.zeros((time, size, nodes), bool), jnp.zeros((time, size, 1, nodes, nodes))
    with pytest.raises(InvalidInput, match=r"a patch's rows must have the shape"):
        run(network, batch, patch=Patch(rows[1:], given, jnp.ones(time)))
    with pytest.raises(InvalidInput, match=r"a patch's given must have the shape"):
        run(network, batch, patch=Patch(rows, given[..., 1:], jnp.ones(time)))
