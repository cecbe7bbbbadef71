"""Random directions in the space of parameters, filter-normalised after Li et al. 2018.

A filter is what makes one unit: a column of a matrix that maps inputs to units, a head's ω, a
receiver's row of the pre-attention bias. Each filter of a direction has the norm of the network's
own filter, so that a step of length 1 is as large as the parameters themselves, whatever their
scale; where the network's filter is zero (compiled networks have many) so is the direction's.
Biases and layer norm, which have no filters, stay as they are.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from mechgap.network.network import Network

_ROWS = {"attention", "pre_attention_bias"}
"""Arrays whose filters are rows."""


def random_direction(key: Key[Array, ""], network: Network) -> Network:
    """A direction in which to leave a network's parameters."""
    paths, tree = jax.tree_util.tree_flatten_with_path(network)
    keys = jax.random.split(key, len(paths))
    return jax.tree.unflatten(
        tree, [_filtered(k, path, x) for k, (path, x) in zip(keys, paths, strict=True)]
    )


def _filtered(key: Key[Array, ""], path: tuple[Any, ...], parameters: Array) -> Array:
    if parameters.ndim < 2:
        return jnp.zeros_like(parameters)
    axis = 1 if path[-1].name in _ROWS else 0
    noise = jax.random.normal(key, parameters.shape, parameters.dtype)
    norm = jnp.linalg.norm(parameters, axis=axis, keepdims=True)
    return noise * norm / jnp.linalg.norm(noise, axis=axis, keepdims=True)
