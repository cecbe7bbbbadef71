"""What every algorithm takes and gives.

Comes in: a weight matrix ``A[i, j]`` (edge from i to j, 0 where there is none) and a source.
Goes out: every hint of every step (a static number of steps, zero after the true length),
the output, and the true length.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Weights = Float[Array, "nodes nodes"]
Node = Int[Array, ""]


class Traced(NamedTuple):
    """One run of an algorithm."""

    hints: Mapping[str, Array]
    outputs: Mapping[str, Array]
    length: Int[Array, ""]


Algorithm = Callable[[Weights, Node], Traced]
"""Runs on a weight matrix from a source (which depth-first algorithms do not look at)."""


def until(length: Int[Array, ""], hints: Mapping[str, Array]) -> Mapping[str, Array]:
    """Zero every hint after the true length, as dm-clrs pads."""

    def pad(hint: Array) -> Array:
        valid = jnp.arange(hint.shape[0]) < length
        return jnp.where(valid.reshape(-1, *[1] * (hint.ndim - 1)), hint, 0)

    return {name: pad(hint) for name, hint in hints.items()}
