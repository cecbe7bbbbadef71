"""Native code for lists of pairs does what plain JAX does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechgap.network import lists
from mechgap.network.lists import Pairs, Told, attend, point

needs_native = pytest.mark.skipif(not lists.runs_natively(), reason="no C++ compiler here")


def drawn(seed: int, nodes: int, heads: int, size: int, channels: int, whole: bool, dtype: str):
    """Pairs of any nodes, some nodes without any, with a tail of pairs that are none.

    Whole numbers make many scores equal.
    """
    rng = np.random.default_rng(seed)
    matrix = rng.random((nodes, nodes)) < rng.choice([0.0, 0.1, 0.9])
    receivers, senders = np.nonzero(matrix)
    tail = np.full(3, nodes)
    receivers, senders = (np.concatenate([x, tail]) for x in (receivers, senders))
    width = heads * size

    def numbers(*shape: int) -> jax.Array:
        found = rng.integers(-2, 3, shape) if whole else rng.normal(size=shape)
        return jnp.asarray(found, dtype)

    places = (jnp.asarray(x, jnp.int32) for x in (receivers, senders, np.zeros_like(receivers)))
    told = Told(Pairs(*places), numbers(len(receivers), channels), numbers(channels, width))
    sparse = numbers(heads, size) * jnp.asarray(rng.random((heads, size)) < 0.7, dtype)
    return numbers(nodes, width), numbers(nodes, width), numbers(nodes, width), told, sparse


def assert_alike(case, monkeypatch: pytest.MonkeyPatch) -> None:
    u, v, values, told, omega = case
    flat = omega.reshape(1, -1)

    def all_of_it():
        jax.clear_caches()
        along, everywhere = (
            attend(u, v, values, told, omega, everyone=everyone) for everyone in (False, True)
        )
        return along, everywhere, point(u, v, told, flat)

    native = all_of_it()
    with monkeypatch.context() as without:
        without.setattr(lists, "runs_natively", lambda: False)
        without.setattr(lists, "BLOCK", 100)
        plain = all_of_it()
    atol = 1e-4 if u.dtype == jnp.float32 else 1e-11
    for one, other in zip(jax.tree.leaves(native[:2]), jax.tree.leaves(plain[:2]), strict=True):
        np.testing.assert_allclose(one, other, atol=atol)
    np.testing.assert_array_equal(native[2], plain[2])


@needs_native
@pytest.mark.parametrize("whole", [False, True], ids=["any numbers", "many equal scores"])
@pytest.mark.parametrize(("nodes", "heads", "size", "channels"), [
    (1, 1, 1, 1), (7, 2, 4, 3), (33, 1, 5, 0), (1100, 1, 3, 2),
])  # fmt: skip
def test_native_code_and_jax_agree(nodes, heads, size, channels, whole, monkeypatch):
    assert_alike(drawn(0, nodes, heads, size, channels, whole, "float32"), monkeypatch)


@needs_native
def test_in_float64(monkeypatch):
    with jax.enable_x64(True):
        assert_alike(drawn(1, 40, 2, 3, 2, False, "float64"), monkeypatch)


@needs_native
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 90), st.integers(1, 6), st.booleans())
def test_a_pointer_is_the_best_of_all_nodes(seed, nodes, size, whole):
    """Against a matrix of all scores."""
    u, v, _, told, omega = drawn(seed, nodes, 1, size, 2, whole, "float32")
    scores = jnp.maximum(u[:, None], v[None]) @ omega[0]
    (receivers, senders, _), channels, weight = told
    own = jnp.maximum(u[receivers % nodes], v[senders % nodes] + channels @ weight) @ omega[0]
    scores = np.array(scores.at[receivers, senders].set(own, mode="drop"))
    found = np.asarray(point(u, v, told, omega))
    best = scores.max(1)
    np.testing.assert_allclose(scores[np.arange(nodes), found], best, atol=1e-5)
    if whole:  # then nothing is rounded, and of equals it is the first
        np.testing.assert_array_equal(found, scores.argmax(1))


def test_without_native_code_nothing_depends_on_blocks(monkeypatch):
    monkeypatch.setattr(lists, "runs_natively", lambda: False)
    monkeypatch.setattr(lists, "BLOCK", 100)
    u, v, _, told, omega = drawn(2, 9, 1, 4, 2, False, "float32")
    scores = np.array(jnp.maximum(u[:, None], v[None]) @ omega[0])
    (receivers, senders, _), channels, weight = told
    for r, s, c in zip(receivers, senders, channels, strict=True):
        if r < 9:
            scores[r, s] = jnp.maximum(u[r], v[s] + c @ weight) @ omega[0]
    np.testing.assert_array_equal(point(u, v, told, omega), scores.argmax(1))
