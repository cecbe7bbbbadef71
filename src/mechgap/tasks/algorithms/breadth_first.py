"""Breadth-first search. As in dm-clrs, a parent is the reached neighbour of lowest index."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from mechgap.tasks.algorithms.traced import Node, Traced, Weights, until


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
    return Traced(until(length, hints), {"pi": pi}, length)


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
