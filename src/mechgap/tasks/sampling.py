"""Graphs with CLRS's distribution, drawn and traced on device.

dm-clrs makes a graph undirected by multiplying its matrix with its transpose. So in undirected
tasks an edge between two nodes has probability p², a self-loop p, and a weight is
``sqrt(w_ij * w_ji + 0.001)``, never below 0.0316. `dfs` graphs are directed: every edge and
self-loop has probability p. So are those of `topological_sort`, but edges go one way along a random
order of the nodes.

Other kinds of graphs have no self-loops. ``er-sparse`` is Erdős–Rényi too, and directed where the
task is. `families` has the rest. They are undirected: in `dfs` every edge goes both ways, so that
whoever can be reached in the one can be reached in the other; in `topological_sort` one way along a
random order of the nodes. Weights are distributed as CLRS's.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Key

from mechgap.errors import InvalidInput
from mechgap.tasks.algorithms.library import algorithm
from mechgap.tasks.algorithms.traced import Traced
from mechgap.tasks.batch import Batch
from mechgap.tasks.families import FAMILIES
from mechgap.tasks.kinds import ER, SPARSE, kinds_of
from mechgap.tasks.specs import Task, get_task

TRAIN_P = tuple(0.1 + 0.1 * i for i in range(9))
"""Edge parameters of dm-clrs's training and in-training validation graphs."""
TEST_P = (0.5,)
"""Edge parameter of the official validation and test sets."""


def sample(
    task: Task | str,
    key: Key[Array, ""],
    *,
    batch_size: int = 32,
    nodes: int = 16,
    p: Sequence[float] = TRAIN_P,
    random_pos: bool = True,
    graphs: str = ER,
) -> Batch:
    """Draw graphs and trace the task's algorithm on them; as dm-clrs does, if not told otherwise.

    Args:
        task: A task, or its name.
        key: JAX's random key: the same key, the same graphs.
        batch_size: How many graphs.
        nodes: Of each graph.
        p: Probabilities of an edge; each graph of kind ``er`` has one of them.
        random_pos: Whether positions are sorted uniform numbers, as in training, or ``i / nodes``,
            as in the official sets.
        graphs: The kind (`tasks.kinds.KINDS`), or several: each graph of ``"tree+grid"`` is one or
            the other with equal probability.

    Returns:
        A batch. All batches of one size have the same shapes; `Batch.trim` drops padding that
        nobody needs.

    Raises:
        InvalidInput: there is no such task or kind, or the graphs do not fit into memory.

    >>> batch = sample("bfs", jax.random.key(0), batch_size=2, nodes=4)
    >>> batch.inputs["A"].shape, batch.hints["pi_h"].shape
    ((2, 4, 4), (4, 2, 4))
    """
    task = get_task(task)
    check_nodes(nodes)
    if batch_size < 1:
        raise InvalidInput(f"batch_size must be at least 1; got {batch_size}")
    if not p:
        raise InvalidInput("p must hold at least one edge probability; got none")
    for value in p:
        check_probability(value)
    kinds = kinds_of(graphs)
    families = tuple(kind for kind in kinds if kind in FAMILIES)
    edges = _of_families(key, kinds, families, batch_size, nodes) if families else None
    batch = _sample(task, key, edges, batch_size, nodes, tuple(p), random_pos, kinds)
    if not isinstance(batch.lengths, Tracer):
        check_ended(batch)
    return batch


def check_ended(batch: Batch) -> None:
    """Refuse traces of a program that were cut off."""
    if batch.task.tracer is not None and int(batch.lengths.max()) > batch.max_hints:
        raise InvalidInput(
            f"{batch.task.name} still changes after {batch.max_hints - 1} steps on a graph of "
            f"{batch.nodes} nodes, more than on any that was tried. Say how long it runs (steps=…)"
        )


@partial(jax.jit, static_argnums=(0, 3, 4, 5, 6, 7))
def _sample(
    task: Task,
    key: Key[Array, ""],
    of_families: Bool[Array, "batch nodes nodes"] | None,
    batch_size: int,
    nodes: int,
    p: tuple[float, ...],
    random_pos: bool,
    kinds: tuple[str, ...],
) -> Batch:
    p_key, graph_key, source_key, pos_key = jax.random.split(key, 4)
    chosen = jax.random.choice(p_key, jnp.asarray(p, jnp.float32), (batch_size, 1, 1))
    draw = _erdos_renyi if kinds == (ER,) else partial(_mixed, kinds, of_families)
    A = draw(task, graph_key, chosen, (batch_size, nodes, nodes))
    sources = jax.random.randint(source_key, (batch_size,), 0, nodes)
    if random_pos:
        pos = jnp.sort(jax.random.uniform(pos_key, (batch_size, nodes)), axis=-1)
    else:
        pos = jnp.broadcast_to(regular_positions(nodes), (batch_size, nodes))
    return make_batch(task, A, sources, pos)


def _erdos_renyi(
    task: Task, key: Key[Array, ""], p: Float[Array, "batch 1 1"], shape: tuple[int, int, int]
) -> Float[Array, "batch nodes nodes"]:
    edge_key, weight_key, order_key = jax.random.split(key, 3)
    edges = jax.random.uniform(edge_key, shape) < p
    if not task.directed:
        edges = edges & edges.mT
    return _as_posed(task, edges, weight_key, order_key)


def _as_posed(
    task: Task,
    edges: Bool[Array, "batch nodes nodes"],
    weight_key: Key[Array, ""],
    order_key: Key[Array, ""],
) -> Float[Array, "batch nodes nodes"]:
    """Edges as the task has them: along a random order if acyclic, with weights if weighted."""
    if task.acyclic:
        place = jnp.argsort(jax.random.uniform(order_key, edges.shape[:2]))
        edges = edges & (place[:, :, None] < place[:, None, :])
    if not task.weighted:
        return edges.astype(jnp.float32)
    weights = jax.random.uniform(weight_key, edges.shape)
    return edges * jnp.sqrt(weights * weights.mT + 1e-3)


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _of_families(
    key: Key[Array, ""], kinds: tuple[str, ...], families: tuple[str, ...], batch: int, nodes: int
) -> Bool[Array, "batch nodes nodes"]:
    """Edges of those graphs of a mixture that are of a family.

    They are the same for every task, so this is compiled once for all.
    """
    _, graph_key, _, _ = jax.random.split(key, 4)
    which, edge_key, *_ = _mixture(graph_key, kinds, batch)
    draws = [lambda key, kind=kind: FAMILIES[kind](key, nodes) for kind in families]
    keys = jax.random.split(edge_key, batch)
    return jax.vmap(lambda i, key: jax.lax.switch(i, draws, key))(which, keys)


def _mixture(key: Key[Array, ""], kinds: tuple[str, ...], batch: int) -> tuple[Array, ...]:
    """Of which kind each graph is, and the keys for edges of families, for those of other kinds,
    for weights and for orders. Families are counted first."""
    which_key, er_key, edge_key, weight_key, order_key = jax.random.split(key, 5)
    which = jax.random.randint(which_key, (batch,), 0, len(kinds))
    return which, edge_key, er_key, weight_key, order_key


def _mixed(
    kinds: tuple[str, ...],
    of_families: Bool[Array, "batch nodes nodes"] | None,
    task: Task,
    key: Key[Array, ""],
    p: Float[Array, "batch 1 1"],
    shape: tuple[int, int, int],
) -> Float[Array, "batch nodes nodes"]:
    """Graphs of several kinds, each of one of them with equal probability."""
    which, _, er_key, weight_key, order_key = _mixture(key, kinds, shape[0])
    families = sum(kind in FAMILIES for kind in kinds)
    A = jnp.zeros(shape, jnp.float32)
    if of_families is not None:
        A = _as_posed(task, of_families, weight_key, order_key)
    drawn_together = {ER: partial(_erdos_renyi, p=p), SPARSE: _sparse}
    for i, kind in enumerate((k for k in drawn_together if k in kinds), start=families):
        own_key = jax.random.fold_in(er_key, i) if kind == SPARSE else er_key
        others = drawn_together[kind](task, own_key, shape=shape)
        A = jnp.where((which == i)[:, None, None], others, A)
    return A


def _sparse(
    task: Task, key: Key[Array, ""], shape: tuple[int, int, int]
) -> Float[Array, "batch nodes nodes"]:
    """Without self-loops, and with p of each graph's own between log n / n and 3 log n / n."""
    batch, nodes, _ = shape
    p_key, graph_key = jax.random.split(key)
    low = np.log(nodes) / nodes
    p = jnp.minimum(1.0, jax.random.uniform(p_key, (batch, 1, 1), minval=low, maxval=3 * low))
    # An undirected edge is there if both of its directions are drawn.
    graphs = _erdos_renyi(task, graph_key, p if task.directed else jnp.sqrt(p), shape)
    return graphs * (1 - jnp.eye(nodes))


def regular_positions(nodes: int) -> Float[np.ndarray, "nodes"]:
    """The positions ``i / nodes`` of the official sets."""
    return (np.arange(nodes) / nodes).astype(np.float32)


@partial(jax.jit, static_argnums=0)
def make_batch(
    task: Task,
    A: Float[Array, "batch nodes nodes"],
    sources: Int[Array, "batch"],
    pos: Float[Array, "batch nodes"],
) -> Batch:
    """Trace the task on given graphs. Checks nothing (see `from_graphs`)."""
    nodes = A.shape[-1]
    inputs = {
        "pos": pos,
        "A": A,
        "adj": ((A != 0) | jnp.eye(nodes, dtype=bool)).astype(A.dtype),
    }
    if task.has_source:
        inputs["s"] = jax.nn.one_hot(sources, nodes, dtype=A.dtype)
    if task.tracer is not None:
        return Batch(task, inputs, *task.tracer(inputs))
    time_major = Traced(hints=1, outputs=0, length=0)  # pyright: ignore[reportArgumentType]
    traced = jax.vmap(algorithm(task), out_axes=time_major)(A, sources)
    return Batch(task, inputs, *traced)


def check_nodes(nodes: int) -> None:
    """Refuse graphs without nodes."""
    if nodes < 1:
        raise InvalidInput(f"a graph needs at least 1 node; got {nodes}")


def check_probability(p: float) -> None:
    """Refuse what is not a probability (NaN included)."""
    if not 0 <= p <= 1:
        raise InvalidInput(f"p is a probability and must lie in [0, 1]; got {p}")
