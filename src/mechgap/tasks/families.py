"""Graphs other than CLRS's: paths, trees, grids, small worlds, triangulations, hubs.

Every generator makes one undirected graph without self-loops out of a random key, on device. The
nodes of structured graphs are numbered at random, since their order would give the structure away.
Where NetworkX has the same random graph, it has the same distribution. All work for any number of
nodes from 1 on; where there are too few for the structure, as much of it is there as they allow.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

Edges = Bool[Array, "nodes nodes"]
Family = Callable[[Key[Array, ""], int], Edges]

RING_NEIGHBOURS, REWIRED = 4, 0.1
"""The parameters k and p of Watts and Strogatz."""
NEW_EDGES = 2
"""The parameter m of Barabási and Albert."""


def _numbered_at_random(family: Family) -> Family:
    """The same graphs, with their nodes in random order."""

    @wraps(family)
    def shuffled(key: Key[Array, ""], nodes: int) -> Edges:
        order_key, graph_key = jax.random.split(key)
        order = jax.random.permutation(order_key, nodes)
        return family(graph_key, nodes)[order][:, order]

    return shuffled


def _path_edges(nodes: int) -> Edges:
    """Every node with the next."""
    return _both_ways(jnp.eye(nodes, k=1, dtype=bool))


def _both_ways(edges: Edges) -> Edges:
    return edges | edges.T


@_numbered_at_random
def path(_: Key[Array, ""], nodes: int) -> Edges:
    """One path."""
    return _path_edges(nodes)


@_numbered_at_random
def cycle(_: Key[Array, ""], nodes: int) -> Edges:
    """One cycle; with two nodes, an edge."""
    return _path_edges(nodes) | _both_ways(jnp.eye(nodes, k=max(1, nodes - 1), dtype=bool))


def tree(key: Key[Array, ""], nodes: int) -> Edges:
    """A uniform random labelled tree, by its Prüfer sequence."""
    if nodes <= 2:
        return _path_edges(nodes)
    sequence = jax.random.randint(key, (nodes - 2,), 0, nodes)

    def join(
        i: Int[Array, ""], grown: tuple[Edges, Int[Array, "nodes"]]
    ) -> tuple[Edges, Int[Array, "nodes"]]:
        edges, missing = grown
        leaf = jnp.argmax(missing == 1)  # of the lowest index
        return edges.at[leaf, sequence[i]].set(True), missing.at[
            jnp.stack([leaf, sequence[i]])
        ].add(-1)

    missing = 1 + jnp.bincount(sequence, length=nodes)
    edges, missing = jax.lax.fori_loop(
        0, nodes - 2, join, (jnp.zeros((nodes, nodes), bool), missing)
    )
    last = missing == 1  # two nodes
    return _both_ways(edges) | (last[:, None] & last & ~jnp.eye(nodes, dtype=bool))


@_numbered_at_random
def grid(_: Key[Array, ""], nodes: int) -> Edges:
    """A grid with rows of ⌈√nodes⌉ nodes, the last of which may be incomplete."""
    width = next(width for width in range(1, nodes + 1) if width**2 >= nodes)
    row, column = jnp.divmod(jnp.arange(nodes), width)
    steps = jnp.abs(row[:, None] - row) + jnp.abs(column[:, None] - column)
    return steps == 1


@_numbered_at_random
def ladder(_: Key[Array, ""], nodes: int) -> Edges:
    """Two paths whose nodes are joined in pairs; an odd node lengthens one of the paths."""
    place, rail = jnp.divmod(jnp.arange(nodes), 2)
    return jnp.abs(place[:, None] - place) + jnp.abs(rail[:, None] - rail) == 1


@_numbered_at_random
def barbell(_: Key[Array, ""], nodes: int) -> Edges:
    """Two cliques, each of a third of the nodes (rounded), joined by a path of the others."""
    clique, place = (nodes + 1) // 3, jnp.arange(nodes)
    first, last = place < clique, place >= nodes - clique
    together = (first[:, None] & first) | (last[:, None] & last)
    return _path_edges(nodes) | (together & ~jnp.eye(nodes, dtype=bool))


@_numbered_at_random
def watts_strogatz(key: Key[Array, ""], nodes: int) -> Edges:
    """A ring in which every node has 4 neighbours, and each edge is rewired with probability 0.1.

    As in NetworkX: edges are taken in turn, nearest neighbours first; one that is rewired keeps its
    first end and gets another that was no neighbour before. Up to 5 nodes it is a complete graph.
    """
    everybody = ~jnp.eye(nodes, dtype=bool)
    if nodes <= RING_NEIGHBOURS + 1:
        return everybody
    ring = jnp.arange(nodes)
    apart = (ring - ring[:, None]) % nodes
    offsets = RING_NEIGHBOURS // 2
    near = (apart >= 1) & (apart <= offsets)
    chosen_key, end_key = jax.random.split(key)
    chosen = jax.random.bernoulli(chosen_key, REWIRED, (offsets * nodes,))
    ends = jax.random.gumbel(end_key, (offsets * nodes, nodes))

    def rewire(i: Int[Array, ""], edges: Edges) -> Edges:
        here = i % nodes
        there = (here + 1 + i // nodes) % nodes
        free = ~edges[here] & everybody[here]
        new = jnp.argmax(jnp.where(free, ends[i], -jnp.inf))
        rewired = edges.at[here, there].set(False).at[there, here].set(False)
        rewired = rewired.at[here, new].set(True).at[new, here].set(True)
        return jnp.where(chosen[i] & free.any(), rewired, edges)

    return jax.lax.fori_loop(0, offsets * nodes, rewire, _both_ways(near))


@_numbered_at_random
def barabasi_albert(key: Key[Array, ""], nodes: int) -> Edges:
    """A star of three nodes to which others are added, each joined to two by their degree.

    As in NetworkX, the two are drawn one after the other, in proportion to their degree, until they
    are different: the two largest of log(degree) with Gumbel noise.
    """
    first = NEW_EDGES + 1
    if nodes <= first:
        return _path_edges(nodes)  # which is the star, or what there is of it
    star = jnp.zeros((nodes, nodes), bool).at[0, 1:first].set(True)
    noise = jax.random.gumbel(key, (nodes, nodes))

    def add(new: Int[Array, ""], edges: Edges) -> Edges:
        degree = edges.sum(0)  # of nodes that are not there yet it is 0
        _, targets = jax.lax.top_k(jnp.log(degree.astype(jnp.float32)) + noise[new], NEW_EDGES)
        return edges.at[new, targets].set(True).at[targets, new].set(True)

    return jax.lax.fori_loop(first, nodes, add, _both_ways(star))


def delaunay(key: Key[Array, ""], nodes: int) -> Edges:
    """The Delaunay triangulation of uniform points in the unit square."""
    return triangulation(jax.random.uniform(key, (nodes, 2)))


def triangulation(points: Float[Array, "nodes 2"]) -> Edges:
    """Which points are joined in their Delaunay triangulation, of points not all on one line.

    The nearest of all points is a neighbour. Beside a neighbour, on either side, the next one is
    that whose circle through both is empty: circles through two points have their centres on the
    bisector, at a signed distance from the middle, and it is the smallest.
    """
    index = jnp.arange(len(points))

    def joined(i: Int[Array, ""]) -> Bool[Array, "nodes"]:
        away = points - points[i]
        first = jnp.argmin(jnp.where(index == i, jnp.inf, jnp.sum(away**2, axis=-1)))

        def turn(side: int, known: Bool[Array, "nodes"]) -> Bool[Array, "nodes"]:
            """From the nearest on to the next, until there is none or it is known already."""

            def beside(j: Int[Array, ""]) -> tuple[Int[Array, ""], Bool[Array, ""]]:
                inner = jnp.sum(away * (away - away[j]), axis=-1)
                cross = side * (away[j, 0] * away[:, 1] - away[j, 1] * away[:, 0])
                open_ = (cross > 0) & (index != i) & (index != j)
                return jnp.argmin(jnp.where(open_, inner / cross, jnp.inf)), open_.any()

            def step(state: tuple) -> tuple:
                j, known, _ = state
                following, is_there = beside(j)
                is_new = is_there & ~known[following]
                return following, known.at[following].set(known[following] | is_new), is_new

            return jax.lax.while_loop(lambda s: s[2], step, (first, known, jnp.array(True)))[1]

        return turn(-1, turn(1, (index == first) & (index != i)))

    found = jax.lax.map(joined, index)
    return _both_ways(found)  # rounding may differ between (i, j) and (j, i)


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "path": path,
        "cycle": cycle,
        "tree": tree,
        "grid": grid,
        "ladder": ladder,
        "barbell": barbell,
        "ws": watts_strogatz,
        "delaunay": delaunay,
        "ba": barabasi_albert,
    }
)
"""The generators by name: all of `kinds.KINDS` but CLRS's own, which `sampling` has."""
