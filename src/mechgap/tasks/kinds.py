"""The kinds of graphs by name, and what each is. `families` has their generators."""

from collections.abc import Mapping
from types import MappingProxyType

from mechgap.errors import InvalidInput, unknown

ER, SPARSE = "er", "er-sparse"
KINDS: Mapping[str, str] = MappingProxyType(
    {
        ER: "CLRS's own: Erdős–Rényi, with its self-loops",
        SPARSE: "Erdős–Rényi with p between log n / n and 3 log n / n; directed where the task is",
        "path": "one path",
        "cycle": "one cycle",
        "tree": "a uniform random labelled tree",
        "grid": "rows of ⌈√n⌉ nodes, the last one possibly incomplete",
        "ladder": "two paths with rungs; an odd node is at one end",
        "barbell": "two cliques of a third of the nodes each, joined by a path of the others",
        "ws": "Watts–Strogatz: a ring of 4 neighbours, each edge rewired with probability 0.1",
        "delaunay": "the Delaunay triangulation of uniform points in the unit square",
        "ba": "Barabási–Albert: every new node has 2 edges, to nodes by their degree",
    }
)
"""Every kind with one line about it."""
MATRICES_UP_TO = 256
"""Nodes of graphs that are dealt with as matrices; larger ones, as lists of edges."""


def kinds_of(text: str) -> tuple[str, ...]:
    """The kinds of a mixture, which is written with ``+``.

    >>> kinds_of("tree+grid")
    ('tree', 'grid')
    """
    names = tuple(name.strip() for name in text.split("+"))
    for name in names:
        if name not in KINDS:
            raise unknown("kind of graphs", name, KINDS)
    if len(set(names)) < len(names):
        raise InvalidInput(
            f"a mixture has equal shares, so each kind of graphs is named once; got '{text}'"
        )
    return names
