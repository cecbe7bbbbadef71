"""Graphs as lists of edges, for sizes at which a matrix of all pairs is too much.

A list has every pair of nodes between which there is an edge, in both directions, and every node
with itself, ordered by receiver and then by sender. Graphs of a batch have as many nodes and may
have fewer pairs than the longest list: what is missing is the node that does not exist.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mechgap.errors import InvalidInput
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Location, Task, Type


@dataclass(frozen=True)
class Edges:
    """One graph's list."""

    nodes: int
    receivers: Int[np.ndarray, "pairs"]
    senders: Int[np.ndarray, "pairs"]

    @staticmethod
    def of(nodes: int, one: Int[np.ndarray, "edges"], other: Int[np.ndarray, "edges"]) -> "Edges":
        """The list of a graph with edges from some nodes to others; an edge can be told twice.

        Raises:
            InvalidInput: there is no node, or an edge has an end that is none.
        """
        if nodes < 1:
            raise InvalidInput(f"a graph has at least 1 node; got {nodes}")
        for end in (one, other):
            wrong = np.flatnonzero((end < 0) | (end >= nodes))
            if wrong.size:
                k = int(wrong[0])
                raise InvalidInput(
                    f"the ends of edges are nodes from 0 to {nodes - 1}; got {one[k]}-{other[k]}"
                )
        everyone = np.arange(nodes)
        receivers, senders = (
            np.concatenate([a, b, everyone]).astype(np.int64)
            for a, b in ((one, other), (other, one))
        )
        keys = np.unique(receivers * nodes + senders)
        return Edges(nodes, keys // nodes, keys % nodes)

    @cached_property
    def offsets(self) -> Int[np.ndarray, "nodes_and_one"]:
        """Where each receiver's pairs begin in the list, and where the last one's end."""
        return np.searchsorted(self.receivers, np.arange(self.nodes + 1))

    @cached_property
    def opposite(self) -> Int[np.ndarray, "pairs"]:
        """Where the pair the other way round is.

        The pairs sorted by sender and then by receiver are the opposites of the list, in order.
        """
        return np.lexsort((self.receivers, self.senders))

    @cached_property
    def _keys(self) -> Int[np.ndarray, "pairs"]:
        return self.receivers * self.nodes + self.senders

    def place(
        self, receivers: Int[np.ndarray, "some"], senders: Int[np.ndarray, "some"]
    ) -> tuple[Bool[np.ndarray, "some"], Int[np.ndarray, "some"]]:
        """Whether pairs are in the list, and where."""
        keys = receivers.astype(np.int64) * self.nodes + senders
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return self._keys[at] == keys, at


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
        lists = [Edges.of(batch.nodes, *np.nonzero(graph)) for graph in linked]
        longest = roomy(max(len(each.receivers) for each in lists))

        def padded(rows: Iterable[np.ndarray], fill: int) -> np.ndarray:
            wide = (np.pad(r, (0, longest - len(r)), constant_values=fill) for r in rows)
            return np.stack(list(wide))

        def of_nodes(name: str) -> Int[Array, "batch pairs"]:
            rows = (getattr(each, name) for each in lists)
            return jnp.asarray(padded(rows, batch.nodes), jnp.int32)

        inputs = {f.name: batch.inputs[f.name] for f in task.inputs if f not in on_edges}
        for name, matrix in matrices.items():
            rows = (m[each.receivers, each.senders] for m, each in zip(matrix, lists, strict=True))
            inputs[name] = jnp.asarray(padded(rows, 0))
        return EdgeLists(
            task=task,
            receivers=of_nodes("receivers"),
            senders=of_nodes("senders"),
            offsets=jnp.asarray(np.stack([each.offsets for each in lists]), jnp.int32),
            opposite=jnp.asarray(padded((each.opposite for each in lists), 0), jnp.int32),
            inputs=inputs,
            hints={f.name: batch.hints[f.name][0] for f in task.hints},
            lengths=batch.lengths,
            steps=batch.steps,
        )

    def graph(self, k: int) -> tuple[Edges, Mapping[str, Float[np.ndarray, "places"]]]:
        """One of the graphs, and its inputs on nodes and on its pairs, without what is missing."""
        receivers = np.asarray(self.receivers[k], np.int64)
        real = receivers < self.nodes
        edges = Edges(self.nodes, receivers[real], np.asarray(self.senders[k], np.int64)[real])
        inputs = {name: np.asarray(values[k], float) for name, values in self.inputs.items()}
        on_edges = {f.name for f in self.task.inputs if f.location is Location.EDGE}
        return edges, {n: v[real] if n in on_edges else v for n, v in inputs.items()}


def roomy(count: int) -> int:
    """As many or a few more, so that arrays of nearly as many have one shape, and one program.

    >>> [roomy(count) for count in (1, 7, 17, 33_000)]
    [1, 7, 20, 40960]
    """
    step = 1 << max(0, count.bit_length() - 3)
    return -(-count // step) * step


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


def check_both_ways(task: Task, edges: Edges, inputs: Mapping[str, np.ndarray]) -> None:
    """Refuse numbers of pairs that are others the other way round, where edges have no direction.

    Raises:
        InvalidInput: there is such a pair.
    """
    if task.directed:
        return
    for name in (f.name for f in task.inputs if f.location is Location.EDGE):
        there = np.asarray(inputs[name])
        back = there[edges.opposite]
        if (unlike := np.flatnonzero(there != back)).size:
            k = int(unlike[0])
            raise InvalidInput(
                f"edges of {task.name} have no direction, so '{name}' is the same both ways; got "
                f"{there[k]:g} at {edges.receivers[k]}-{edges.senders[k]} and {back[k]:g} the "
                "other way round. Make them equal, or take a task of directed graphs"
            )


def _is_pairs(feature: Feature) -> bool:
    return feature.type is Type.POINTER and feature.location is not Location.NODE
