"""Graphs as lists of edges, for sizes at which a matrix of all pairs is too much.

A list has every pair of nodes between which there is an edge, in both directions, and every node
with itself, ordered by receiver and then by sender. Graphs of a batch have as many nodes and may
have fewer pairs than the longest list: what is missing is the node that does not exist.
"""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from mechgap.errors import InvalidInput
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Location, Task, Type


class EdgeLists(eqx.Module):
    """A batch of graphs as lists of edges, with what is known before the first step."""

    task: Task = eqx.field(static=True)
    receivers: Int[Array, "*batch pairs"]
    senders: Int[Array, "*batch pairs"]
    offsets: Int[Array, "*batch nodes_and_one"]
    """Where each receiver's pairs begin in the list, and where the last one's end."""
    opposite: Int[Array, "*batch pairs"]
    """Where the pair the other way round is."""
    inputs: Mapping[str, Array]
    """``[batch, nodes]`` on nodes, ``[batch, pairs]`` on edges."""
    hints: Mapping[str, Array]
    """The first hints; pointers are nodes."""
    lengths: Int[Array, "*batch"]
    """How many hints each graph has."""
    steps: int = eqx.field(static=True)

    @property
    def nodes(self) -> int:
        """How many nodes each graph has."""
        return self.offsets.shape[-1] - 1

    @staticmethod
    def of(batch: Batch) -> "EdgeLists":
        """A batch's graphs as lists.

        Raises:
            InvalidInput: hints of the task are told for pairs of nodes.
        """
        task = batch.task
        check_lists(task)
        on_edges = [f for f in task.inputs if f.location is Location.EDGE]
        matrices = {f.name: np.asarray(batch.inputs[f.name]) for f in on_edges}
        linked = np.any([matrix != 0 for matrix in matrices.values()], axis=0)
        linked = linked | linked.swapaxes(1, 2) | np.eye(batch.nodes, dtype=bool)
        pairs = [np.argwhere(graph) for graph in linked]
        longest = max(map(len, pairs))
        padded = [
            np.pad(p, [(0, longest - len(p)), (0, 0)], constant_values=batch.nodes) for p in pairs
        ]
        receivers, senders = np.moveaxis(np.stack(padded), -1, 0)
        inputs = {f.name: batch.inputs[f.name] for f in task.inputs if f not in on_edges}
        at = np.minimum(receivers, batch.nodes - 1), np.minimum(senders, batch.nodes - 1)
        graph = np.arange(batch.size)[:, None]
        real = receivers < batch.nodes
        for name, matrix in matrices.items():
            inputs[name] = jnp.asarray(np.where(real, matrix[graph, *at], 0))
        return EdgeLists(
            task=task,
            receivers=jnp.asarray(receivers, jnp.int32),
            senders=jnp.asarray(senders, jnp.int32),
            offsets=jnp.asarray([_offsets(r, batch.nodes) for r in receivers], jnp.int32),
            opposite=jnp.asarray(
                [_opposite(r, s) for r, s in zip(receivers, senders, strict=True)], jnp.int32
            ),
            inputs=inputs,
            hints={f.name: batch.hints[f.name][0] for f in task.hints},
            lengths=batch.lengths,
            steps=batch.steps,
        )


def check_lists(task: Task) -> None:
    """Refuse a task whose state does not go with edges.

    Raises:
        InvalidInput: a hint or an output is told for pairs of nodes.
    """
    for feature in (*task.hints, *task.outputs):
        if feature.location is Location.EDGE or _is_pairs(feature):
            raise InvalidInput(
                f"'{feature.name}' of {task.name} is told for pairs of nodes, and lists of edges "
                "have no place for it. Run it on matrices"
            )


def _is_pairs(feature: Feature) -> bool:
    return feature.type is Type.POINTER and feature.location is not Location.NODE


def _offsets(receivers: np.ndarray, nodes: int) -> np.ndarray:
    return np.searchsorted(receivers, np.arange(nodes + 1))


def _opposite(receivers: np.ndarray, senders: np.ndarray) -> np.ndarray:
    """The pairs sorted by sender and then by receiver are the opposites of the list, in order."""
    return np.lexsort((receivers, senders))
