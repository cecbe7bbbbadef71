"""What a gap is to be held against: attention that knows nothing of the algorithm.

`uniform` attends to all neighbours alike, `self` only to itself; an untrained network is what
training began with. A compiled network of any target is the other end: a gap of 0.
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.measures.data import Data

Attention = Float[Array, "time batch 1 receivers senders"]


def uniform_attention(data: Data) -> Attention:
    """Every neighbour in the graph, and oneself, alike."""
    support = data.support.astype(jnp.float32)
    return _at_every_step(support / jnp.sum(support, -1, keepdims=True), data)


def self_attention(data: Data) -> Attention:
    """Nobody but oneself."""
    nodes = data.batch.nodes
    return _at_every_step(jnp.broadcast_to(jnp.eye(nodes), (data.batch.size, nodes, nodes)), data)


def random_attention(data: Data, number: int) -> Attention:
    """In every row one neighbour, or oneself, by chance."""
    return _random_attention(data.support, jnp.asarray(number), data.batch.steps)


@eqx.filter_jit
def _random_attention(
    support: Bool[Array, "batch receivers senders"], number: Int[Array, ""], steps: int
) -> Attention:
    key = jax.random.fold_in(jax.random.key(0xF100), number)
    drawn = jax.random.uniform(key, (steps, *support.shape))
    chosen = jnp.argmax(jnp.where(support, drawn, -1), axis=-1)
    return jax.nn.one_hot(chosen, support.shape[-1])[:, :, None]


def fixed_baselines(data: Data) -> Mapping[str, Attention]:
    """The baselines that need no network, by name."""
    return {"uniform": uniform_attention(data), "self": self_attention(data)}


def _at_every_step(attention: Float[Array, "batch receivers senders"], data: Data) -> Attention:
    return jnp.broadcast_to(
        attention[None, :, None], (data.batch.steps, data.batch.size, 1, *attention.shape[1:])
    )
