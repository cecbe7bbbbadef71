"""Topological sort: a depth-first search whose nodes form a list, the last finished first.

As in `dfs` one node is active at a time. Nothing has to be remembered: a node that is not finished
sees in every step the node that it was entered from, and one that is, the next in the list.
"""

from dataclasses import replace

from mechgap.lang import (
    Bool,
    Choice,
    Phase,
    Pointer,
    Program,
    becomes,
    equal,
    first,
    linked,
    minimum,
    other,
    self,
    where,
)
from mechgap.programs.depth_first import (
    active,
    choose,
    color,
    discover,
    entered,
    finished,
    found,
    here,
    rooted,
    s,
    s_last,
    s_prev,
    target,
    u,
)

topo, seen, head, tail = Pointer("topo"), Pointer("seen"), Choice("head"), Bool("tail")

_return = Phase(
    select=minimum(other.idx),
    mask=other.finished & equal(other.seen, self.idx),
    update=dict(
        active=other.finished & ~self.finished | self.discover | self.entered,
        discover=self.s_last & self.white,
    ),
)
"""When a node has finished, the node that it was entered from goes on."""

_remembered = where(self.black, self.topo, self.s_prev)

topological_sort = Program(
    name="topological_sort",
    task="topological_sort",
    inputs={"idx": "pos", "link": "adj"},
    hidden=(
        *(color, s_prev, topo, head, s, u, s_last),
        *(active, discover, here, rooted, found, target, finished, entered, seen, tail),
    ),
    phases=(
        _return,
        choose,
        Phase(  # enter: the white node learns by whom it was found
            select=minimum(other.idx),
            mask=other.found & equal(other.target, self.idx),
            otherwise=_remembered,
            update=dict(
                seen=other.idx,
                entered=other.found & self.white,
                here=self.active | self.discover,
                rooted=self.s & ~self.black,
                tail=self.head & self.black,
            ),
        ),
    ),
    conclude=dict(
        color=becomes(grey=self.entered | self.discover, black=self.finished),
        s_prev=where(self.black, self.idx, self.seen),
        topo=linked(self.finished, self.tail, where(self.black, self.seen, self.idx)),
        head=first(self.finished, self.head),
        s=first(self.rooted, self.white),
        u=first(self.here, self.white),
        s_last=first(self.entered, self.here, self.white),
    ),
    hints=dict(
        topo_h=topo, topo_head_h=head, color=color, s_prev=s_prev, s=s, u=u, v=s_last, s_last=s_last
    ),
    output={"topo": topo, "topo_head": head},
    unclaimed={
        "v": "out of reach: on a finishing step it is the last node, on a starting step the lowest "
        "white one, and an isolated node cannot tell these steps apart; on all others it is s_last",
    },
)
"""A list in which edges point forwards. A node that finishes links to the head, which was the last
to finish: the hint says which it is, and from then on the link itself lets the node see it."""

topological_sort_parent = replace(
    topological_sort,
    name="topological_sort_parent",
    phases=(
        replace(
            _return,
            otherwise=_remembered,
            update={
                **_return.update,
                "active": self.discover | self.entered | other.finished & self.grey,
            },
        ),
        replace(choose, otherwise=self.s_prev),
        topological_sort.phases[-1],
    ),
)
"""The same, but whoever is not addressed looks where a feature of an edge says (see `dfs_parent`):
at the node that it was entered from, once it has finished at the next in the list; while the
active one chooses, at `s_prev`, which is oneself by then."""
