"""The pairwise score: what receiver i and sender j make of each other, summed over hidden units.

Both places where GATv2 looks at pairs of nodes have one form. With ``ζ_ij = v_j + e_ij W``:

    attention         a_ij = Σ_f ω_f · leaky_relu(u_i + ζ_ij)_f
    pointer decoder   a_ij = Σ_f ω_f · max(u_i, ζ_ij)_f

Written plainly, both make a tensor of nodes × nodes × hidden, the largest of a training step, and
its gradient makes several more. So the gradient is written by hand. With s the derivative of the
activation with respect to ζ and g that of a_ij, everything follows from three sums of ``g s``: over
senders (rows), over receivers (columns) and over both, weighted by the edge's channels (mixed).
Even dω does, since both activations are homogeneous: ``leaky_relu(z) = s z`` and
``max(u, ζ) = (1 - s) u + s ζ``.

On a CPU with a C++ compiler both directions run as native code (`native`), which never stores the
tensor; elsewhere as plain JAX.
"""

from enum import IntEnum
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mechgap.network import native


class Activation(IntEnum):
    """What joins the receiver's value with the sender's and the edge's.

    LeakyReLU of their sum, or the larger of the two.
    """

    LEAKY_RELU = 0
    MAXIMUM = 1


SLOPE = 0.01
"""dm-clrs's slope of the leaky relu."""

NATIVE = (Path(__file__).with_suffix(".cc"), ("pairwise_forward", "pairwise_backward"))
"""The source of the native code, and its functions."""
MOST_CHANNELS = 5
"""The largest number of edge channels that the native code is made for."""

Nodes = Float[Array, "batch nodes hidden"]
Edges = Float[Array, "batch nodes nodes channels"]
Weight = Float[Array, "channels hidden"]
Omega = Float[Array, "heads head_size"]
Scores = Float[Array, "batch heads nodes nodes"]


def _scores(
    activation: Activation, u: Nodes, v: Nodes, edges: Edges, weight: Weight, omega: Omega
) -> Scores:
    """The scores ``[batch, heads, receivers, senders]`` of all pairs."""
    if runs_natively(edges.shape[-1]):
        batch, nodes, _ = u.shape
        shapes = [(batch, omega.shape[0], nodes, nodes)]
        return _call("pairwise_forward", shapes, activation, u, v, edges, weight, omega)[0]
    zeta = v[:, None] + edges @ weight
    if activation is Activation.LEAKY_RELU:
        active = jax.nn.leaky_relu(u[:, :, None] + zeta, SLOPE)
    else:
        active = jnp.maximum(u[:, :, None], zeta)
    active = active.reshape(*active.shape[:-1], *omega.shape)
    return jnp.einsum("bijhf,hf->bhij", active, omega)


pairwise = jax.custom_vjp(_scores, nondiff_argnums=(0,))


def runs_natively(channels: int) -> bool:
    """Whether native code is used for edges of so many channels."""
    return channels <= MOST_CHANNELS and native.available(*NATIVE)


def _call(function: str, shapes: list[tuple[int, ...]], activation: Activation, *operands: Array):
    return native.call(
        function, shapes, *operands, kind=np.int64(activation), slope=np.float64(SLOPE)
    )


def _forward(activation: Activation, *operands: Array):
    return pairwise(activation, *operands), operands


def _backward(activation: Activation, operands: tuple[Array, ...], grad: Scores):
    u, v, edges, weight, omega = operands
    if runs_natively(edges.shape[-1]):
        each = [(u.shape[0], *weight.shape), (u.shape[0], *omega.shape)]  # per sample
        shapes = [u.shape, v.shape, edges.shape, *each]
        d_u, d_v, d_edges, d_weight, d_omega = _call(
            "pairwise_backward", shapes, activation, *operands, grad
        )
        return d_u, d_v, d_edges, jnp.sum(d_weight, 0), jnp.sum(d_omega, 0)
    zeta = v[:, None] + edges @ weight
    here = u[:, :, None]
    if activation is Activation.LEAKY_RELU:
        s = jnp.where(here + zeta >= 0, 1.0, SLOPE).astype(u.dtype)
    else:
        s = jnp.where(zeta > here, 1.0, jnp.where(zeta == here, 0.5, 0.0)).astype(u.dtype)
    each_head = s.reshape(*s.shape[:-1], *omega.shape)
    gs = (each_head * jnp.moveaxis(grad, 1, -1)[..., None]).reshape(s.shape)
    rows, columns = jnp.sum(gs, 2), jnp.sum(gs, 1)
    mixed = jnp.einsum("bijc,bijf->cf", edges, gs)
    if activation is Activation.MAXIMUM:  # the receiver has what the maximum did not take from ζ
        whole = jnp.repeat(jnp.einsum("bhij->bih", grad), omega.shape[1], axis=-1)
        rows = whole - rows
    d_omega = jnp.sum(u * rows + v * columns, (0, 1)) + jnp.sum(weight * mixed, 0)
    flat = omega.reshape(-1)
    d_edges = gs @ (flat * weight).T
    return rows * flat, columns * flat, d_edges, mixed * flat, d_omega.reshape(omega.shape)


pairwise.defvjp(_forward, _backward)
