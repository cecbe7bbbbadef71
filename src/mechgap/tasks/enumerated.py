"""Every graph of a size: all that a task could be given there, and not up to isomorphism.

Nodes are told apart by their positions ``i / n``, and ties are broken by them, so two labelled
graphs are two inputs. Graphs have no self-loops. Undirected tasks have every symmetric graph,
directed ones every directed graph, acyclic ones those without a cycle. Where a task is weighted,
every edge has each weight of a grid; where it has a source, every graph is asked from each node.

The order is that of size: fewest edges first, of equally many the lexicographically first by the
rows of the matrix, and then by source.
"""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from mechgap.errors import InvalidInput
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import check_ended, make_batch, regular_positions
from mechgap.tasks.specs import Task

WEIGHTS = (0.25, 0.55, 0.95)
"""The grid of weights: no sum of few of them is another."""
MOST = 2_000_000
"""So many matrices are looked through at most."""
PIECE = 4096
"""Graphs of one batch."""


def every_graph(task: Task, nodes: int) -> Iterator[Batch]:
    """All graphs of a size, in batches.

    Raises:
        InvalidInput: there are too many; it says how many.
    """
    check_enumerable(task, nodes)
    matrices = _matrices(task, nodes)
    sources = np.arange(nodes if task.has_source else 1)
    positions = regular_positions(nodes)
    asked = len(matrices) * len(sources)
    for first in range(0, asked, PIECE):
        graph, source = np.divmod(np.arange(first, min(asked, first + PIECE)), len(sources))
        batch = make_batch(
            task,
            jnp.asarray(matrices[graph]),
            jnp.asarray(sources[source], jnp.int32),
            jnp.broadcast_to(positions, (len(graph), nodes)),
        )
        check_ended(batch)
        yield batch


def largest_within(task: Task, asked: int) -> int:
    """The largest size of which no more graphs are asked, each from every source."""
    nodes = 1
    while (
        matrices_to_look_through(task, nodes + 1) * (nodes + 1 if task.has_source else 1) <= asked
    ):
        nodes += 1
    return nodes


def matrices_to_look_through(task: Task, nodes: int) -> int:
    """How many matrices there are of a size."""
    entries = 1 + (len(WEIGHTS) if task.weighted else 1)
    return entries ** len(_pairs(task, nodes)[0])


def check_enumerable(task: Task, nodes: int) -> None:
    """Refuse sizes of which there are too many graphs."""
    if nodes < 1:
        raise InvalidInput(f"a graph needs at least 1 node; got {nodes}")
    count = matrices_to_look_through(task, nodes)
    if count > MOST:
        largest = max(n for n in range(1, nodes) if matrices_to_look_through(task, n) <= MOST)
        raise InvalidInput(
            f"{task.name} has {count:,} graphs of {nodes} nodes; at most {MOST:,} are enumerated. "
            f"Ask for up to {largest} nodes"
        )


def _pairs(task: Task, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The entries of a matrix that can be chosen, in the order of its rows."""
    if task.directed or task.acyclic:
        rows, columns = np.nonzero(~np.eye(nodes, dtype=bool))
        return rows, columns
    return np.triu_indices(nodes, 1)


def _matrices(task: Task, nodes: int) -> Float[np.ndarray, "graphs nodes nodes"]:
    rows, columns = _pairs(task, nodes)
    values = np.array([0.0, *(WEIGHTS if task.weighted else (1.0,))], np.float32)
    codes = np.arange(matrices_to_look_through(task, nodes))
    places = len(values) ** np.arange(len(rows))[::-1]
    chosen = codes[:, None] // places % len(values)
    chosen = chosen[np.argsort((chosen > 0).sum(-1), kind="stable")]
    found = np.zeros((len(chosen), nodes, nodes), np.float32)
    found[:, rows, columns] = values[chosen]
    if not (task.directed or task.acyclic):
        found[:, columns, rows] = values[chosen]
    return found[_without_cycles(found)] if task.acyclic else found


def _without_cycles(graphs: Float[np.ndarray, "graphs nodes nodes"]) -> np.ndarray:
    """Which graphs have no cycle: no walk of n edges."""
    nodes = graphs.shape[-1]
    edges = graphs > 0
    walks = np.array(edges)
    for _ in range(nodes - 1):
        walks = (walks.astype(np.uint8) @ edges.astype(np.uint8)) > 0
    return np.logical_not(walks.any((1, 2)))
