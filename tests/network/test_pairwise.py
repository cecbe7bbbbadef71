"""The pairwise score: native code and hand-written gradient against plain JAX's own."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from mechgap.network import native
from mechgap.network.pairwise import SLOPE, Activation, pairwise, runs_natively

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


def plain(activation, u, v, edges, weight, omega):
    """What the score is, written down with JAX's own activations."""
    zeta = v[:, None] + edges @ weight
    here = u[:, :, None]
    if activation is Activation.LEAKY_RELU:
        active = jax.nn.leaky_relu(here + zeta, SLOPE)
    else:
        active = jnp.maximum(here, zeta)
    return jnp.einsum("bijhf,hf->bhij", active.reshape(*active.shape[:-1], *omega.shape), omega)


def both(score, activation, given):
    def total(*given):
        return jnp.sum(jnp.sin(score(activation, *given)))

    return jax.jit(jax.value_and_grad(total, argnums=range(5)))(*given)


@pytest.fixture(params=["native", "plain JAX"])
def implementation(request, monkeypatch):
    if request.param == "plain JAX":
        monkeypatch.setattr(native, "available", lambda *_: False)
    elif not runs_natively(1):
        pytest.skip("no C++ compiler here")


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("activation", list(Activation))
@pytest.mark.parametrize("shape", [{}, {"nodes": 1}, {"channels": 1, "heads": 1}, {"channels": 5},
                                   {"channels": 6}, {"hidden": 36, "heads": 4}])  # fmt: skip
def test_value_and_gradient(activation, shape):
    with jax.enable_x64(True):
        given = operands(**shape)
        (ours, gradients), (value, expected) = (
            both(f, activation, given) for f in (pairwise, plain)
        )
        assert abs(ours - value) < 1e-12 * max(1, abs(value))
        for name, a, b in zip(OPERANDS, gradients, expected, strict=True):
            assert jnp.abs(a - b).max() <= 1e-12 * max(1, jnp.abs(b).max()), name


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("activation", list(Activation))
def test_ties_share_the_gradient_as_in_jax(activation):
    """Where both sides of a maximum are equal each gets half; a leaky relu has slope 1 at 0."""
    with jax.enable_x64(True):
        given = [jnp.round(x) for x in operands(nodes=7)]
        (_, gradients), (_, expected) = (both(f, activation, given) for f in (pairwise, plain))
        for a, b in zip(gradients, expected, strict=True):
            assert jnp.abs(a - b).max() <= 1e-12 * max(1, jnp.abs(b).max())


@pytest.mark.usefixtures("implementation")
def test_side_by_side_is_one_after_the_other():
    """Under vmap, with some operands shared: each group has its own weights."""
    u, v, edges, weight, omega = operands(dtype=jnp.float32)
    weights = jnp.stack([weight, 2 * weight, -weight])
    score = jax.vmap(lambda w: pairwise(Activation.LEAKY_RELU, u, v, edges, w, omega))(weights)
    for i in range(3):
        alone = pairwise(Activation.LEAKY_RELU, u, v, edges, weights[i], omega)
        assert jnp.abs(score[i] - alone).max() < 1e-5


def test_many_threads_give_the_same_bits():
    """The work of a large batch is shared between threads; nothing depends on who did what."""
    given = operands(batch=64, nodes=16, hidden=128, heads=1, dtype=jnp.float32)
    first = both(pairwise, Activation.MAXIMUM, given)
    for _ in range(5):
        again = both(pairwise, Activation.MAXIMUM, given)
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
            assert (a == b).all()


PROGRAM = (
    "import jax.numpy as jnp\n"
    "from mechgap.network.pairwise import Activation, pairwise, runs_natively\n"
    "one = jnp.ones\n"
    "score = pairwise(Activation.MAXIMUM, one((1, 2, 4)), one((1, 2, 4)), one((1, 2, 2, 1)), "
    "one((1, 4)), one((1, 4)))\n"
    "print(runs_natively(1), score.ravel().tolist())"
)


def in_a_process(cache, **variables):
    environment = {**os.environ, **variables, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split(maxsplit=1) == ["False", "[8.0, 8.0, 8.0, 8.0]\n"], done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("mechgap: ")]


def test_without_a_compiler_plain_jax_is_used_and_says_so(tmp_path):
    assert in_a_process(tmp_path, MECHGAP_NATIVE="0") == []  # as was asked for
    (said,) = in_a_process(tmp_path, CXX="", PATH="/nowhere")
    assert said == (
        "mechgap: there is no C++ compiler here (c++, g++ or CXX). Plain JAX is used instead, "
        "which is slower"
    )
    *_, said = in_a_process(tmp_path, CXX="no-such-compiler")
    assert "pairwise.cc cannot be compiled or loaded here: " in said


def test_a_failed_build_is_said_and_not_tried_again(tmp_path):
    compiler = tmp_path / "broken"
    compiler.write_text(f"#!/bin/sh\necho tried >> {tmp_path / 'count'}\necho no luck >&2\nexit 1")
    compiler.chmod(0o755)
    *_, first = in_a_process(tmp_path, CXX=str(compiler))
    assert f"pairwise.cc did not compile with {compiler}" in first
    (again,) = in_a_process(tmp_path, CXX=str(compiler))
    assert "pairwise.cc did not compile" in again
    assert "remove it to try again" in again
    assert (tmp_path / "count").read_text() == "tried\n"
    (failed,) = (tmp_path / "mechgap").glob("pairwise-*.failed")
    assert failed.read_text() == "no luck\n"


def test_libraries_of_other_processors_are_told_apart(tmp_path):
    x86 = "processor\t: 0\nmodel name\t: A\nflags\t\t: fpu avx2\n"
    arm = "processor\t: 0\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n"
    kinds = [x86, x86.replace("avx2", "avx512f"), arm, arm.replace("0xd0c", "0xd40"), "", None]
    named = set()
    for i, text in enumerate(kinds):
        path = tmp_path / str(i)
        if text is not None:
            path.write_text(text)
        named.add(native._processor(path))
    assert len(named) == len(kinds) - 1  # without any information it is this machine's own name
    assert all(len(name) > len("x86_64 ") for name in named)
