"""Ground-truth traces of the CLRS tasks, as JAX code for one graph.

Comes in: a weight matrix ``A[i, j]`` (edge from i to j, 0 where there is none) and a source.
Goes out: every hint of every step (a static number of steps, zero after the true length),
the output, and the true length. All of it can be jitted and vmapped.

The traces equal dm-clrs's: a BFS parent is the reached neighbour of lowest index, a
Bellman-Ford update needs a strictly smaller distance, DFS tries nodes in index order.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.tasks.specs import Task

Weights = Float[Array, "nodes nodes"]
Node = Int[Array, ""]


class Traced(NamedTuple):
    """One run of an algorithm."""

    hints: Mapping[str, Array]
    outputs: Mapping[str, Array]
    length: Int[Array, ""]


Algorithm = Callable[[Weights, Node], Traced]
"""Runs on a weight matrix from a source (which DFS does not look at)."""


def _until(length: Int[Array, ""], hints: Mapping[str, Array]) -> Mapping[str, Array]:
    """Zero every hint after the true length, as dm-clrs pads."""

    def pad(hint: Array) -> Array:
        valid = jnp.arange(hint.shape[0]) < length
        return jnp.where(valid.reshape(-1, *[1] * (hint.ndim - 1)), hint, 0)

    return {name: pad(hint) for name, hint in hints.items()}


def _bfs_tree(A: Weights, source: Node) -> tuple[Int[Array, "nodes"], Int[Array, "nodes"]]:
    """Each node's level (`nodes` where unreached) and parent (itself where it has none)."""
    nodes = jnp.arange(A.shape[0])
    unreached = A.shape[0]
    edge = A > 0

    def grow(state):
        level, depth, _ = state
        touched = jnp.any(edge & (level == depth)[:, None], axis=0)
        new = touched & (level == unreached)
        return jnp.where(new, depth + 1, level), depth + 1, jnp.any(new)

    start = (jnp.where(nodes == source, 0, unreached), jnp.int32(0), jnp.bool_(True))
    level, _, _ = jax.lax.while_loop(lambda state: state[2], grow, start)
    # Every reached neighbour of a node at the moment it is reached is one level above it.
    parents = edge & (level[:, None] < level[None, :])
    lowest = jnp.min(jnp.where(parents, nodes[:, None], unreached), axis=0)
    return level, jnp.where(lowest < unreached, lowest, nodes)


def _reveal(order: Int[Array, "nodes"], pi: Int[Array, "nodes"], length: Int[Array, ""]) -> Traced:
    """The hints of a search in which node j is reached in hint ``order[j]``."""
    nodes = jnp.arange(pi.shape[0])
    reached = order[None, :] <= nodes[:, None]  # a search has at most as many hints as nodes
    hints = {"reach_h": reached.astype(jnp.float32), "pi_h": jnp.where(reached, pi, nodes)}
    return Traced(_until(length, hints), {"pi": pi}, length)


def bfs(A: Weights, source: Node, /) -> Traced:
    """Breadth-first search, one hint per level."""
    level, pi = _bfs_tree(A, source)
    depth = jnp.max(jnp.where(level < A.shape[0], level, 0))
    return _reveal(level, pi, depth + 1)


def bfs_sequential(A: Weights, source: Node, /) -> Traced:
    """Breadth-first search, one hint per newly reached node.

    Levels are kept. Within a level CLRS loops over senders i, then receivers j, so nodes are
    reached in the order of (level, parent, own index).
    """
    level, pi = _bfs_tree(A, source)
    nodes = jnp.arange(A.shape[0])
    order = jnp.argsort(jnp.lexsort((nodes, pi, level)))
    reached = level < A.shape[0]
    return _reveal(jnp.where(reached, order, A.shape[0]), pi, jnp.sum(reached))


def bellman_ford(A: Weights, source: Node, /) -> Traced:
    """Shortest paths from the source: all edges relaxed at once until nothing changes."""
    size = A.shape[0]
    nodes = jnp.arange(size)
    cost = jnp.where(A != 0, A, jnp.inf)

    def relax(state):
        time, _, d, pi, ds, pis = state
        offer = d[:, None] + cost
        best = jnp.min(offer, axis=0)
        lowest = jnp.min(jnp.where(offer == best, nodes[:, None], size), axis=0)
        better = best < d
        d, pi = jnp.where(better, best, d), jnp.where(better, lowest, pi)
        return time + 1, jnp.any(better), d, pi, ds.at[time].set(d), pis.at[time].set(pi)

    # Distances are infinite until a node is reached. The last pass, in which nothing changes,
    # is one more than there are hints.
    far = jnp.where(nodes == source, jnp.zeros((), A.dtype), jnp.inf)
    rows = (size + 1, size)
    start = (
        jnp.int32(1),
        True,
        far,
        nodes,
        jnp.broadcast_to(far, rows),
        jnp.broadcast_to(nodes, rows),
    )
    passes, _, _, pi, ds, pis = jax.lax.while_loop(lambda state: state[1], relax, start)
    length = jnp.asarray(passes - 1)
    msk = ds[:size] < jnp.inf
    hints = {
        "pi_h": pis[:size],
        "d": jnp.where(msk, ds[:size], 0),
        "msk": msk.astype(A.dtype),
    }
    return Traced(_until(length, hints), {"pi": pi}, length)


class _Search(NamedTuple):
    """The state of DFS after one hint."""

    color: Int[Array, "nodes"]  # 0 white, 1 grey, 2 black
    pi: Int[Array, "nodes"]
    d: Int[Array, "nodes"]  # clock ticks; 0 = not yet
    f: Int[Array, "nodes"]
    s_prev: Int[Array, "nodes"]
    s: Node
    u: Node
    v: Node
    s_last: Node
    time: Int[Array, ""]
    discover_next: Bool[Array, ""]
    finished: Bool[Array, ""]


def _dfs_step(edge: Bool[Array, "nodes nodes"], state: _Search) -> _Search:
    """The next hint of DFS.

    Every node has three: it is started (as a root) or entered (from its parent), then
    discovered, then finished. So a run always has exactly three hints per node.
    """
    nodes = jnp.arange(edge.shape[0])

    # After a node finished: go back to the node it was entered from, or start a new root.
    closed = state.s_prev[state.u] == state.u
    start = state.finished & closed
    pop = state.finished & ~closed
    back_to = jnp.where(pop, state.s_prev[state.s_last], state.s_last)
    s_prev = jnp.where(pop & (nodes == state.s_last), nodes, state.s_prev)
    root = jnp.argmax(state.color == 0)
    s_last = jnp.where(start, root, back_to)

    # What happens at u: it is discovered, enters its lowest white out-neighbour, or finishes.
    u = s_last
    discover = state.discover_next
    white = edge[u] & (state.color == 0)
    enter = ~start & ~discover & jnp.any(white)
    finish = ~start & ~discover & ~enter
    child = jnp.argmax(white)

    time = state.time + (discover | finish)
    here, entered = nodes == u, enter & (nodes == child)
    color = jnp.where(entered | (discover & here), 1, state.color)
    after_loop = jnp.where(enter, child, edge.shape[0] - 1)
    return _Search(
        color=jnp.where(finish & here, 2, color),
        pi=jnp.where(entered, u, state.pi),
        d=jnp.where(discover & here, time, state.d),
        f=jnp.where(finish & here, time, state.f),
        s_prev=jnp.where(entered, s_last, s_prev),
        s=jnp.where(start, root, state.s),
        u=u,
        v=jnp.where(start, root, jnp.where(discover, state.v, after_loop)),
        s_last=jnp.where(enter, child, s_last),
        time=time,
        discover_next=start | enter,
        finished=finish,
    )


def dfs(A: Weights, source: Node | None = None, /) -> Traced:
    """Depth-first search with all of CLRS's hints."""
    del source
    size = A.shape[0]
    nodes = jnp.arange(size)
    edge = A != 0
    zeros, zero = jnp.zeros_like(nodes), jnp.zeros_like(nodes[0])
    start = _Search(
        *(zeros, nodes, zeros, zeros, nodes),
        *(zero, zero, zero, zero, zero),
        discover_next=jnp.bool_(True),
        finished=jnp.bool_(False),
    )

    def hint(state: _Search) -> Mapping[str, Array]:
        def one_hot(node: Node) -> Float[Array, "nodes"]:
            return (nodes == node).astype(A.dtype)

        return {
            "pi_h": state.pi,
            "color": jax.nn.one_hot(state.color, 3, dtype=A.dtype),
            "d": state.d * jnp.asarray(0.01, A.dtype),
            "f": state.f * jnp.asarray(0.01, A.dtype),
            "s_prev": state.s_prev,
            "s": one_hot(state.s),
            "u": one_hot(state.u),
            "v": one_hot(state.v),
            "s_last": one_hot(state.s_last),
            "time": state.time * jnp.asarray(0.01, A.dtype),
        }

    def step(state: _Search, _):
        return _dfs_step(edge, state), state

    _, states = jax.lax.scan(step, start, length=3 * size)
    return Traced(jax.vmap(hint)(states), {"pi": states.pi[-1]}, jnp.int32(3 * size))


def dfs_simplified(A: Weights, source: Node | None = None, /) -> Traced:
    """Depth-first search with the hints `pi_h` and `color` only."""
    full = dfs(A, source)
    return full._replace(hints={name: full.hints[name] for name in ("pi_h", "color")})


_ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "bfs": bfs,
        "bellman_ford": bellman_ford,
        "dfs": dfs,
        "bfs_sequential": bfs_sequential,
        "dfs_simplified": dfs_simplified,
    }
)


def algorithm(task: Task) -> Algorithm:
    """The algorithm whose trace the task asks for."""
    return _ALGORITHMS[task.name]
