"""Affine maps and layer norm, with dm-clrs's (Haiku's) layout and initialisation."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Linear(eqx.Module):
    """``x ↦ x W + b`` over the last axis."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]

    @staticmethod
    def initial(
        key: Key[Array, ""], inputs: int, outputs: int, scale: float | None = None
    ) -> "Linear":
        """Normal numbers cut at two deviations, times `scale` (1/√inputs); no bias."""
        unscaled = jax.random.truncated_normal(key, -2.0, 2.0, (inputs, outputs))
        return Linear(unscaled * (inputs**-0.5 if scale is None else scale), jnp.zeros(outputs))

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        return x @ self.weight + self.bias

    def of_parts(self, *parts: Float[Array, "*batch _"]) -> Float[Array, "*batch outputs"]:
        """This map of ``[part | part | …]``, as one product of two matrices.

        The bias is one more row, met by a column of ones, so that its gradient is part of the one
        product that the weight's is: XLA on a CPU multiplies matrices well and sums columns badly.
        """
        rows = jnp.concatenate([*parts, jnp.ones_like(parts[0][..., :1])], axis=-1)
        weight = jnp.concatenate([self.weight, self.bias[None]])
        product = rows.reshape(-1, rows.shape[-1]) @ weight
        return product.reshape(*rows.shape[:-1], -1)

    def after(self, first: "Linear") -> "Linear":
        """This map applied to the result of another, as one map.

        Encoders have few channels, so ``W_edge (E x)`` costs far less as ``(W_edge E) x``.
        """
        return Linear(first.weight @ self.weight, self(first.bias))

    def on_channels(self, encoder: "Linear") -> "Linear":
        """This map over ``[features | rest]``, as one over ``[channels | rest]``."""
        width = encoder.bias.shape[0]
        features = Linear(self.weight[:width], self.bias).after(encoder)
        return Linear(jnp.concatenate([features.weight, self.weight[width:]]), features.bias)


def side_by_side(linears: Sequence[Linear]) -> Linear:
    """Several maps of one thing as one map, their results in a row."""
    return Linear(
        jnp.concatenate([linear.weight for linear in linears], axis=1),
        jnp.concatenate([linear.bias for linear in linears]),
    )


class LayerNorm(eqx.Module):
    """Layer norm over the last axis, with scale and offset."""

    scale: Float[Array, "hidden"]
    offset: Float[Array, "hidden"]

    @staticmethod
    def initial(hidden: int) -> "LayerNorm":
        """The plain norm: scale 1, offset 0."""
        return LayerNorm(jnp.ones(hidden), jnp.zeros(hidden))

    def __call__(self, x: Float[Array, "*batch hidden"]) -> Float[Array, "*batch hidden"]:
        mean = jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.var(x, axis=-1, keepdims=True)
        return self.scale * jax.lax.rsqrt(variance + 1e-5) * (x - mean) + self.offset
