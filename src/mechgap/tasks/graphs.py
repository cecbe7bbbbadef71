"""Your own graphs: a matrix or a NetworkX graph becomes a batch.

The network symmetrises its attention mask, so a one-way edge could carry a message backwards.
Tasks that are posed on undirected graphs therefore refuse asymmetric matrices.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from mechgap.errors import InvalidInput
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import check_ended, make_batch, regular_positions
from mechgap.tasks.specs import Task, get_task


def from_graphs(
    task: Task | str,
    graphs: Any,
    sources: Hashable | Sequence[Hashable] = 0,
    *,
    pos: Any = None,
) -> Batch:
    """A batch of one or several graphs of the same size, traced by the task's algorithm.

    Args:
        task: A task, or its name.
        graphs: Square matrices (0 = no edge; entry [i, j] is the edge from i to j), or NetworkX
            graphs, whose nodes are numbered in their own order and whose edges may have a
            ``weight``. Tasks without weights read every non-zero entry as an edge.
        sources: One node for all graphs, or one per graph; for a NetworkX graph, the node's own
            name.
        pos: Each node's position, increasing in [0, 1]; ``i / nodes`` if not given.

    Returns:
        The graphs with inputs, hints and outputs.

    Raises:
        InvalidInput: a graph is not what the task needs (undirected, without cycles, …), sizes
            differ, or a source is no node.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> from_graphs("bfs", path, 0).outputs["pi"]
    Array([[0, 0, 1]], dtype=int32)
    """
    task = get_task(task)
    listed = list(graphs) if _is_several(graphs) else [graphs]
    if not listed:
        raise InvalidInput("a batch needs at least one graph; got none")
    given = list(sources) if isinstance(sources, (list, tuple, np.ndarray)) else None
    if given is not None and len(given) != len(listed):
        raise InvalidInput(
            f"sources must be one node, or one per graph; got {len(given)} for {len(listed)} graphs"
        )
    matrices, indices = [], []
    for i, graph in enumerate(listed):
        source = sources if given is None else given[i]
        matrix, names = _as_matrix(graph)
        matrices.append(_check_matrix(task, matrix))
        indices.append(_index(task, source, names))
    sizes = {matrix.shape[0] for matrix in matrices}
    if len(sizes) > 1:
        raise InvalidInput(
            f"graphs of one batch must have the same size; got {sorted(sizes)} nodes. "
            "Make one batch per size"
        )
    A = np.stack(matrices)
    batch = make_batch(
        task,
        jnp.asarray(A),
        jnp.asarray(indices, jnp.int32),
        jnp.asarray(_check_positions(pos, A.shape[0], A.shape[1])),
    )
    check_ended(batch)
    return batch.trim()


def _is_networkx(graph: Any) -> bool:
    return hasattr(graph, "nodes") and hasattr(graph, "edges")


def _is_several(graphs: Any) -> bool:
    """A list of graphs, as opposed to one graph (which may be written as a list of rows)."""
    if _is_networkx(graphs):
        return False
    if isinstance(graphs, (list, tuple)):
        return len(graphs) == 0 or _is_networkx(graphs[0]) or np.ndim(graphs[0]) == 2
    return np.ndim(graphs) == 3


def _as_matrix(graph: Any) -> tuple[np.ndarray, Sequence[Hashable]]:
    """The weight matrix of a graph and the names of its nodes."""
    if _is_networkx(graph):
        import networkx

        names = list(graph.nodes)
        if not names:
            raise InvalidInput("a graph needs at least 1 node; got 0")
        return networkx.to_numpy_array(graph, nodelist=names, dtype=np.dtype(float)), names
    try:
        matrix = np.asarray(graph, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "a graph must be a square matrix of numbers or a NetworkX graph; "
            f"got {type(graph).__name__}"
        ) from error
    return matrix, range(len(matrix) if matrix.ndim else 0)


def _check_matrix(task: Task, matrix: np.ndarray) -> Float[np.ndarray, "nodes nodes"]:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(map(str, matrix.shape)) or "a single number"
        raise InvalidInput(f"a graph's matrix must be square; got {shape}")
    if matrix.shape[0] < 1:
        raise InvalidInput("a graph needs at least 1 node; got 0")
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        i, j = bad[0]
        raise InvalidInput(
            f"weights must be finite; got {matrix[i, j]} at [{i}, {j}]. Write 0 for no edge"
        )
    if not task.weighted:
        matrix = matrix != 0
    elif (matrix < 0).any():
        i, j = np.argwhere(matrix < 0)[0]
        raise InvalidInput(
            f"{task.name} needs weights of at least 0; got {matrix[i, j]} at [{i}, {j}]"
        )
    if not task.directed and (matrix != matrix.T).any():
        i, j = np.argwhere(matrix != matrix.T)[0]
        raise InvalidInput(
            f"{task.name} needs a symmetric matrix, because the network symmetrises its attention "
            f"mask; got {matrix[i, j]:g} at [{i}, {j}] and {matrix[j, i]:g} at [{j}, {i}]. "
            "Use max(A, A.T), or the task dfs for directed graphs"
        )
    if task.acyclic:
        _check_acyclic(task, matrix != 0)
    return matrix.astype(np.float32)


def _check_acyclic(task: Task, edges: Bool[np.ndarray, "nodes nodes"]) -> None:
    """Refuse cycles: what is left when all ends of paths have been taken away."""
    left = np.arange(len(edges))
    while len(left):
        among = edges[np.ix_(left, left)]
        inside = among.any(0) & among.any(1)
        if inside.all():
            shown = ", ".join(map(str, left[:5])) + (", …" if len(left) > 5 else "")
            raise InvalidInput(
                f"{task.name} needs a graph without cycles or self-loops; there is one among the "
                f"nodes {shown}"
            )
        left = left[inside]


def _index(task: Task, source: Hashable, names: Sequence[Hashable]) -> int:
    if not task.has_source:
        return 0
    if isinstance(source, np.integer):
        source = int(source)
    if isinstance(source, bool) or source not in names:
        known = f"0 … {len(names) - 1}" if isinstance(names, range) else "one of the graph's nodes"
        raise InvalidInput(f"the source must be {known}; got {source!r}")
    return list(names).index(source)


def _check_positions(pos: Any, batch: int, nodes: int) -> Float[np.ndarray, "batch nodes"]:
    if pos is None:
        return np.broadcast_to(regular_positions(nodes), (batch, nodes))
    values = np.asarray(pos, np.float32)
    if values.shape not in {(nodes,), (batch, nodes)}:
        raise InvalidInput(
            f"pos must have shape [{nodes}] or [{batch}, {nodes}]; got {list(values.shape)}"
        )
    if not ((values >= 0) & (values <= 1)).all() or not (np.diff(values, axis=-1) > 0).all():
        raise InvalidInput("pos must increase strictly from node to node and lie in [0, 1]")
    return np.broadcast_to(values, (batch, nodes))
