"""Training graphs as they are, told otherwise: the same algorithm has the same answer on them.

Both changes are for networks that are to run on larger graphs than they were trained on, where
positions lie closer together and clocks go on for longer.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Location, Type


def on_a_grid(batch: Batch, key: Key[Array, ""], cells: int) -> Batch:
    """The graphs with positions ``i / cells``, as larger graphs have them.

    Every other graph lies over all of the grid, as graphs that are tested do; the nodes of the
    others lie closer together, in a stretch that is anything from as short as can be to all of it.
    """
    size, nodes = batch.size, batch.nodes
    low, width, chosen = jax.random.split(key, 3)
    all_of_it = (jnp.arange(size) % 2 == 0)[:, None]
    first = jax.random.randint(low, (size, 1), 0, cells - nodes + 1)
    last = jax.random.randint(width, (size, 1), first + nodes, cells + 1)
    first, last = jnp.where(all_of_it, 0, first), jnp.where(all_of_it, cells, last)
    cell = jnp.arange(cells)
    inside = (cell >= first) & (cell < last)
    order = jnp.where(inside, jax.random.uniform(chosen, (size, cells)), 2.0)
    taken = jnp.sort(jnp.argsort(order, axis=-1)[:, :nodes], axis=-1)
    grid = (taken / cells).astype(batch.inputs["pos"].dtype)
    return Batch(
        batch.task, {**batch.inputs, "pos": grid}, batch.hints, batch.outputs, batch.lengths
    )


def with_shifted_clocks(batch: Batch, key: Key[Array, ""], most: float) -> Batch:
    """Clocks that begin at a time of their own, between 0 and some; with them the times of nodes.

    A node's time is 0 until it has one.
    """
    begin: Float[Array, "batch"] = jax.random.uniform(key, (batch.size,), maxval=most)

    def shifted(feature: Feature, hint: Array) -> Array:
        if feature.type is not Type.SCALAR:
            return hint
        if feature.location is Location.GRAPH:
            return hint + begin
        return jnp.where(hint > 0, hint + begin[:, None], hint)

    hints = {f.name: shifted(f, batch.hints[f.name]) for f in batch.task.hints}
    return Batch(batch.task, batch.inputs, hints, batch.outputs, batch.lengths)
