"""Depth-first search and what is read from it. As in dm-clrs, nodes are tried in index order."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.tasks.algorithms.traced import Node, Traced, Weights, until


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


def _search(A: Weights) -> _Search:
    """The states of a search from every node in turn, stacked: three hints per node."""
    nodes = jnp.arange(A.shape[0])
    edge = A != 0
    zeros, zero = jnp.zeros_like(nodes), jnp.zeros_like(nodes[0])
    start = _Search(
        *(zeros, nodes, zeros, zeros, nodes),
        *(zero, zero, zero, zero, zero),
        discover_next=jnp.bool_(True),
        finished=jnp.bool_(False),
    )

    def step(state: _Search, _):
        return _dfs_step(edge, state), state

    return jax.lax.scan(step, start, length=3 * A.shape[0])[1]


def _stack_hints(states: _Search, dtype) -> Mapping[str, Array]:
    """The hints that every depth-first algorithm has: colours, the stack and where it looks."""

    def one_hot(node: Int[Array, "time"]) -> Float[Array, "time nodes"]:
        return jax.nn.one_hot(node, states.color.shape[1], dtype=dtype)

    return {
        "color": jax.nn.one_hot(states.color, 3, dtype=dtype),
        "s_prev": states.s_prev,
        "s": one_hot(states.s),
        "u": one_hot(states.u),
        "v": one_hot(states.v),
        "s_last": one_hot(states.s_last),
    }


def dfs(A: Weights, source: Node | None = None, /) -> Traced:
    """Depth-first search with all of CLRS's hints."""
    del source
    states = _search(A)
    tick = jnp.asarray(0.01, A.dtype)
    hints = {
        "pi_h": states.pi,
        **_stack_hints(states, A.dtype),
        "d": states.d * tick,
        "f": states.f * tick,
        "time": states.time * tick,
    }
    return Traced(hints, {"pi": states.pi[-1]}, jnp.int32(3 * A.shape[0]))


def dfs_simplified(A: Weights, source: Node | None = None, /) -> Traced:
    """Depth-first search with the hints `pi_h` and `color` only."""
    full = dfs(A, source)
    return full._replace(hints={name: full.hints[name] for name in ("pi_h", "color")})


def topological_sort(A: Weights, source: Node | None = None, /) -> Traced:
    """A list of the nodes in which edges point forwards: a search, last finished first.

    Each node points to the next in the list, which finished before it; the first to finish, and
    whoever has not finished yet, to itself. The head is the last to finish, at first node 0.
    """
    del source
    states = _search(A)
    nodes = jnp.arange(A.shape[0])
    order = jnp.argsort(states.f[-1])
    topo = nodes.at[order[1:]].set(order[:-1])
    head = jax.nn.one_hot(jnp.argmax(states.f, axis=1), A.shape[0], dtype=A.dtype)
    hints = {
        "topo_h": jnp.where(states.f > 0, topo, nodes),
        "topo_head_h": head,
        **_stack_hints(states, A.dtype),
    }
    # Here only roots have a hint for their discovery; other nodes are discovered as entered.
    discovery = jnp.roll(states.discover_next, 1).at[0].set(False)
    kept = ~discovery | (states.u == states.s)
    kept_first = jnp.argsort(~kept, stable=True)
    length = jnp.sum(kept)
    hints = {name: hint[kept_first] for name, hint in hints.items()}
    return Traced(until(length, hints), {"topo": topo, "topo_head": head[-1]}, length)
