"""The pairwise score: native code and hand-written gradient against plain JAX's own."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from mechgap.network import native
from mechgap.network.pairwise import SLOPE, Meeting, pairwise, runs_natively

OPERANDS = ("u", "v", "edges", "weight", "omega")


def operands(batch=3, nodes=5, hidden=8, channels=3, heads=2, dtype=jnp.float64):
    shapes = [
        (batch, nodes, hidden),
        (batch, nodes, hidden),
        (batch, nodes, nodes, channels),
        (channels, hidden),
        (heads, hidden // heads),
    ]
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return [jax.random.normal(k, s, dtype) for k, s in zip(keys, shapes, strict=True)]


def plain(meeting, u, v, edges, weight, omega):
    """What the score is, written down with JAX's own activations."""
    zeta = v[:, None] + edges @ weight
    here = u[:, :, None]
    if meeting is Meeting.LEAKY_RELU:
        active = jax.nn.leaky_relu(here + zeta, SLOPE)
    else:
        active = jnp.maximum(here, zeta)
    return jnp.einsum("bijhf,hf->bhij", active.reshape(*active.shape[:-1], *omega.shape), omega)


def both(score, meeting, given):
    def total(*given):
        return jnp.sum(jnp.sin(score(meeting, *given)))

    return jax.jit(jax.value_and_grad(total, argnums=range(5)))(*given)


@pytest.fixture(params=["native", "plain JAX"])
def implementation(request, monkeypatch):
    if request.param == "plain JAX":
        monkeypatch.setattr(native, "available", lambda *_: False)
    elif not runs_natively(1):
        pytest.skip("no C++ compiler here")


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("meeting", list(Meeting))
@pytest.mark.parametrize("shape", [{}, {"nodes": 1}, {"channels": 1, "heads": 1}, {"channels": 5},
                                   {"channels": 6}, {"hidden": 36, "heads": 4}])  # fmt: skip
def test_value_and_gradient(meeting, shape):
    with jax.enable_x64(True):
        given = operands(**shape)
        (ours, gradients), (value, expected) = (both(f, meeting, given) for f in (pairwise, plain))
        assert abs(ours - value) < 1e-12 * max(1, abs(value))
        for name, a, b in zip(OPERANDS, gradients, expected, strict=True):
            assert jnp.abs(a - b).max() <= 1e-12 * max(1, jnp.abs(b).max()), name


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("meeting", list(Meeting))
def test_ties_share_the_gradient_as_in_jax(meeting):
    """Where both sides of a maximum are equal each gets half; a leaky relu has slope 1 at 0."""
    with jax.enable_x64(True):
        given = [jnp.round(x) for x in operands(nodes=7)]
        (_, gradients), (_, expected) = (both(f, meeting, given) for f in (pairwise, plain))
        for a, b in zip(gradients, expected, strict=True):
            assert jnp.abs(a - b).max() <= 1e-12 * max(1, jnp.abs(b).max())


@pytest.mark.usefixtures("implementation")
def test_side_by_side_is_one_after_the_other():
    """Under vmap, with some operands shared: each group has its own weights."""
    u, v, edges, weight, omega = operands(dtype=jnp.float32)
    weights = jnp.stack([weight, 2 * weight, -weight])
    score = jax.vmap(lambda w: pairwise(Meeting.LEAKY_RELU, u, v, edges, w, omega))(weights)
    for i in range(3):
        alone = pairwise(Meeting.LEAKY_RELU, u, v, edges, weights[i], omega)
        assert jnp.abs(score[i] - alone).max() < 1e-5


def test_many_threads_give_the_same_bits():
    """The work of a large batch is shared between threads; nothing depends on who did what."""
    given = operands(batch=64, nodes=16, hidden=128, heads=1, dtype=jnp.float32)
    first = both(pairwise, Meeting.MAXIMUM, given)
    for _ in range(5):
        again = both(pairwise, Meeting.MAXIMUM, given)
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
            assert (a == b).all()


@pytest.mark.parametrize(
    ("variable", "value"), [("MECHGAP_NATIVE", "0"), ("CXX", "no-such-compiler")]
)
def test_without_a_compiler_plain_jax_is_used(variable, value, tmp_path):
    program = (
        "import jax.numpy as jnp\n"
        "from mechgap.network.pairwise import Meeting, pairwise, runs_natively\n"
        "one = jnp.ones\n"
        "score = pairwise(Meeting.MAXIMUM, one((1, 2, 4)), one((1, 2, 4)), one((1, 2, 2, 1)), "
        "one((1, 4)), one((1, 4)))\n"
        "print(runs_natively(1), score.ravel().tolist())"
    )
    environment = {**os.environ, variable: value, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split(maxsplit=1) == ["False", "[8.0, 8.0, 8.0, 8.0]\n"], done.stderr
