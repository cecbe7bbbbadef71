"""Algorithms that CLRS does not have, each a task of its own.

    mechgap gap examples/own_programs.py:hop_distance

goes from here to a page with the gap of learned networks (docs/beyond.md has what was found).
"""

from mechgap.lang import (
    Bool,
    Float,
    GraphProgram,
    Phase,
    Pointer,
    Program,
    edge,
    equal,
    init,
    maximum,
    minimum,
    other,
    self,
)

near, hops, parent = Bool("near"), Float("hops"), Pointer("parent")

hop_distance = GraphProgram(
    name="hop_distance",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(near, hops),
    init=dict(near=init.start),
    select=minimum(other.hops + 0.1 * other.idx),
    mask=other.near,
    update=dict(near=self.near | other.near, hops=other.hops + 0.1 - 0.1 * init.start),
    hints={"near_h": near, "hops_h": hops},
    output={"hops": hops},
)
"""How far every node is from the source, in tenths: a number."""

highest_parent = GraphProgram(
    name="highest_parent",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(near, parent),
    init=dict(near=init.start),
    select=maximum(other.idx),
    mask=other.near & ~self.near,
    update=dict(near=self.near | other.near, parent=other.idx),
    hints={"near_h": near, "parent_h": parent},
    output={"parent": parent},
)
"""Breadth-first search whose ties go to the neighbour of highest index, not of lowest."""

lightest_parent = GraphProgram(
    name="lightest_parent",
    task="bellman_ford",
    inputs={"idx": "pos", "start": "s", "weight": "A"},
    hidden=(near, parent),
    init=dict(near=init.start),
    select=minimum(edge.weight),
    mask=other.near & ~self.near,
    update=dict(near=self.near | other.near, parent=other.idx),
    hints={"near_h": near, "parent_h": parent},
    output={"parent": parent},
)
"""Breadth-first search whose ties go along the lightest edge."""

visited, token, asks, target = Bool("visited"), Bool("token"), Bool("asks"), Pointer("target")

walk = Program(
    name="walk",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(visited, token, asks, target, parent),
    init=dict(visited=init.start, token=init.start),
    phases=(
        Phase(  # whoever has the token asks the lowest neighbour that has not been visited
            select=minimum(other.idx),
            mask=self.token & ~other.visited,
            update=dict(asks=self.token & ~other.visited, target=other.idx),
        ),
        Phase(  # who is asked takes the token; all others look where they point
            select=minimum(other.idx),
            mask=other.asks & equal(other.target, self.idx),
            otherwise=self.parent,
            update=dict(
                visited=self.visited | other.asks,
                token=other.asks & ~self.visited,
                parent=other.idx,
            ),
        ),
    ),
    hints={"visited_h": visited, "token_h": token, "parent_h": parent},
    output={"parent": parent},
)
"""Two phases: a token goes to the lowest neighbour not visited yet, while there is one."""
