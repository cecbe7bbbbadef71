"""Shortest paths and spanning trees of weighted graphs.

As in dm-clrs, an update needs a strictly smaller value, and unreached nodes have the value 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.tasks.algorithms.traced import Node, Traced, Weights, until


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
    return Traced(until(length, hints), {"pi": pi}, length)


class _Queue(NamedTuple):
    """The state of an algorithm that takes the nearest node from a queue in every step."""

    key: Float[Array, "nodes"]
    pi: Int[Array, "nodes"]
    mark: Bool[Array, "nodes"]  # taken
    in_queue: Bool[Array, "nodes"]
    u: Node  # taken last; the source before the first step


def _take(A: Weights, state: _Queue, path: bool) -> _Queue:
    """Take the node of smallest key; what it offers each neighbour is a path or an edge."""
    nodes = jnp.arange(A.shape[0])
    u = jnp.argmin(jnp.where(state.in_queue, state.key, jnp.inf))
    taken = state.in_queue & (nodes == u)  # nobody if the queue is empty
    mark = state.mark | taken
    offer = A[u] + state.key[u] if path else A[u]
    better = ~state.in_queue | (offer < state.key)
    updated = jnp.any(taken) & (A[u] != 0) & ~mark & better
    return _Queue(
        key=jnp.where(updated, offer, state.key),
        pi=jnp.where(updated, u, state.pi),
        mark=mark,
        in_queue=(state.in_queue & ~taken) | updated,
        u=u,
    )


def _nearest_first(A: Weights, source: Node, key: str, path: bool) -> Traced:
    """Nodes join a tree one by one, one hint each, after a hint in which nobody has joined."""
    nodes = jnp.arange(A.shape[0])
    at_source = nodes == source
    nobody = jnp.zeros_like(at_source)
    start = _Queue(jnp.zeros_like(A[0]), nodes, nobody, at_source, source.astype(nodes.dtype))

    def step(state: _Queue, _):
        after = _take(A, state, path)
        return after, after

    last, later = jax.lax.scan(step, start, length=A.shape[0])
    states = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), start, later)
    length = 1 + jnp.sum(last.mark)
    hints = {
        "pi_h": states.pi,
        key: states.key,
        "mark": states.mark.astype(A.dtype),
        "in_queue": states.in_queue.astype(A.dtype),
        "u": jax.nn.one_hot(states.u, A.shape[0], dtype=A.dtype),
    }
    return Traced(until(length, hints), {"pi": last.pi}, length)


def dijkstra(A: Weights, source: Node, /) -> Traced:
    """Shortest paths from the source, the nearest node first."""
    return _nearest_first(A, source, key="d", path=True)


def mst_prim(A: Weights, source: Node, /) -> Traced:
    """Prim's minimum spanning tree, grown from the source along the lightest edge."""
    return _nearest_first(A, source, key="key", path=False)
