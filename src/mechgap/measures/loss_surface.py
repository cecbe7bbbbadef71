"""Loss and accuracy around a network's parameters: over a plane, along a line, at a radius."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from mechgap.network.directions import random_direction
from mechgap.network.network import Network, unroll
from mechgap.tasks.batch import Batch
from mechgap.tasks.scores import output_scores
from mechgap.training.engines import lanes
from mechgap.training.loss import prediction_error

CHUNK = 64
"""Points between two reports."""


class Heights(NamedTuple):
    """Loss and output accuracy at some points."""

    loss: Float[np.ndarray, "points"]
    accuracy: Float[np.ndarray, "points"]


class Plane(eqx.Module):
    """A network and two directions."""

    network: Network
    x: Network
    y: Network

    @staticmethod
    def random(network: Network, key: Key[Array, ""]) -> "Plane":
        """Two random directions, filter-normalised."""
        first, second = jax.random.split(key)
        return Plane(network, random_direction(first, network), random_direction(second, network))

    @staticmethod
    def line(start: Network, end: Network) -> "Plane":
        """The straight line from one network (x = 0) to another (x = 1); y leads nowhere."""
        return Plane(
            start,
            jax.tree.map(lambda a, b: b - a, start, end),
            jax.tree.map(jnp.zeros_like, start),
        )

    def at(self, point: Float[Array, "2"]) -> Network:
        """The network at a point."""
        return jax.tree.map(
            lambda w, x, y: w + point[0] * x + point[1] * y, self.network, self.x, self.y
        )


def height(network: Network, batch: Batch) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """A network's loss and accuracy on some graphs."""
    predicted = unroll(network, batch, training=False)
    accuracy = output_scores(batch, predicted.outputs)["score"]
    return prediction_error(network, batch, predicted), accuracy


@eqx.filter_jit
def _heights(plane: Plane, batch: Batch, points: Float[Array, "points 2"]):
    return jax.lax.map(lambda point: height(plane.at(point), batch), points)


def heights(
    plane: Plane, batch: Batch, points: Float[np.ndarray, "points 2"]
) -> Iterator[tuple[slice, Heights]]:
    """Loss and accuracy at points, chunk by chunk, in all lanes at once."""
    copies = [jax.device_put((plane, batch), device) for device in lanes()]

    def one(start: int, copy: tuple[Plane, Batch]) -> tuple[slice, Heights]:
        chunk = points[start : start + CHUNK]
        filled = np.concatenate([chunk, np.repeat(chunk[-1:], CHUNK - len(chunk), axis=0)])
        found = _heights(*copy, points=jnp.asarray(filled))
        return slice(start, start + len(chunk)), Heights(
            *(np.asarray(x)[: len(chunk)] for x in found)
        )

    starts = range(0, len(points), CHUNK)
    with ThreadPoolExecutor(len(copies)) as threads:
        for first in range(0, len(starts), len(copies)):
            now = starts[first : first + len(copies)]
            yield from threads.map(one, now, copies[: len(now)])


def grid(reach: float, points: int) -> Float[np.ndarray, "points_points 2"]:
    """A square of points around the origin, row by row."""
    ticks = np.linspace(-reach, reach, points, dtype=np.float32)
    y, x = np.meshgrid(ticks, ticks, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], axis=-1)


def circle(radius: float, angles: int) -> Float[np.ndarray, "angles 2"]:
    """Points at one distance from the origin."""
    at = np.linspace(0, 2 * np.pi, angles, endpoint=False, dtype=np.float32)
    return radius * np.stack([np.cos(at), np.sin(at)], axis=-1)
