"""Attention patching: whom a network attends to is changed while it runs, and it goes on from it.

A patch sharpens or softens the network's own attention by a temperature, and puts given attention
into some rows. What the network attends to in later steps follows from what was changed before.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Attention = Float[Array, "*batch heads receivers senders"]


class Patch(eqx.Module):
    """What is done to attention in every message-passing step, before it is used."""

    rows: Bool[Array, "*time batch receivers"]
    """Where attention is given."""
    given: Float[Array, "*times graphs heads nodes senders"]
    """By one head for all, or by each; in as many steps."""
    temperature: Float[Array, "*steps"]
    """Of the other rows: 1 leaves them, less sharpens, 0 leaves their largest entry alone."""

    def __call__(self, attention: Attention) -> Attention:
        """The attention of one message-passing step, patched."""
        own = at_temperature(attention, self.temperature)
        return jnp.where(self.rows[..., None, :, None], self.given, own)


def at_temperature(attention: Attention, temperature: Float[Array, ""]) -> Attention:
    """Attention as if its logits had been divided by a temperature.

    >>> sharper = at_temperature(jnp.array([[[0.8, 0.2]]]), jnp.array(0.5))
    >>> round(float(sharper[0, 0, 0]), 3)
    0.941
    >>> at_temperature(jnp.array([[[0.8, 0.2]]]), jnp.array(0.0)).tolist()
    [[[1.0, 0.0]]]
    """
    logits = jnp.log(jnp.maximum(attention, jnp.finfo(attention.dtype).tiny))
    tempered = jax.nn.softmax(logits / jnp.where(temperature > 0, temperature, 1), axis=-1)
    tempered = jnp.where(temperature == 1, attention, tempered)
    largest = jax.nn.one_hot(
        jnp.argmax(attention, axis=-1), attention.shape[-1], dtype=attention.dtype
    )
    return jnp.where(temperature > 0, tempered, largest)
