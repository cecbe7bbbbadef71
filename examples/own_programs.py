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

near, hops, label = Bool("near"), Float("hops"), Float("label")
parent, leader = Pointer("parent"), Pointer("leader")

hop_distance = GraphProgram(
    name="hop_distance",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(near, hops),
    init=dict(near=init.start),
    select=minimum(other.hops + 0.01 * other.idx),
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

election = GraphProgram(
    name="election",
    task="bfs",
    inputs={"idx": "pos"},
    hidden=(label, leader),
    init=dict(label=init.idx),
    select=minimum(other.label + 0.01 * other.idx),
    update=dict(label=other.label, leader=other.leader),
    hints={"label_h": label, "leader_h": leader},
    output={"leader": leader},
)
"""Leader election: everyone follows the lowest index that the news has come of."""

asked, asks, target = Bool("asked"), Bool("asks"), Pointer("target")

invitations = Program(
    name="invitations",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(asked, asks, target, parent),
    init=dict(asked=init.start),
    phases=(
        Phase(  # ask: the highest neighbour that has not been asked
            select=maximum(other.idx),
            mask=self.asked & ~other.asked,
            update=dict(asks=self.asked & ~other.asked, target=other.idx),
        ),
        Phase(  # answer: whoever is meant learns by whom; all others look where they point
            select=minimum(other.idx),
            mask=other.asks & equal(other.target, self.idx),
            otherwise=self.parent,
            update=dict(asked=self.asked | other.asks, parent=other.idx),
        ),
    ),
    hints={"asked_h": asked, "parent_h": parent},
    output={"parent": parent},
)
"""Two phases: in every step each guest asks one neighbour, and who is asked remembers by whom."""
