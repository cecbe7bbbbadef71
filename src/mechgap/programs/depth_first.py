"""Depth-first search: with neighbours alone, and with all of CLRS's hints where nodes see all.

One node is active at a time. In `dfs_full` everyone also looks at the node that is discovered
or finished in the step, if any, and so everyone counts these events: the clock. The last node,
which CLRS's loop variable `v` is left at when a node finishes, sees itself when all look for the
last.
"""

from dataclasses import replace

from mechgap.lang import (
    Bool,
    Choice,
    Class,
    Float,
    Phase,
    Pointer,
    Program,
    Total,
    becomes,
    edge,
    equal,
    first,
    grows,
    maximum,
    minimum,
    other,
    self,
    where,
)

color = Class("color", "white", "grey", "black")
pi, s_prev, target = Pointer("pi"), Pointer("s_prev"), Pointer("target")
s, u, v, s_last = Choice("s"), Choice("u"), Choice("v"), Choice("s_last")
d, f, clock, time = Float("d"), Float("f"), Float("clock"), Total("time")
active, discover, here, rooted = Bool("active"), Bool("discover"), Bool("here"), Bool("rooted")
found, finished, entered, event = Bool("found"), Bool("finished"), Bool("entered"), Bool("event")
highest, left = Bool("highest"), Bool("left")

return_ = Phase(
    select=minimum(other.idx),
    mask=other.finished & equal(other.pi, self.idx),
    update=dict(
        active=other.finished & ~self.finished | self.discover,
        discover=self.s_last & self.white | self.entered,
    ),
)
"""When a node has finished, the node that it was entered from goes on."""

choose = Phase(
    select=minimum(other.idx),
    mask=self.active & edge.link & other.white,
    update=dict(
        found=self.active & other.white,
        target=other.idx,
        finished=self.active & ~other.white,
    ),
)
"""The active node looks for a white one: it enters that, or has finished."""

dfs = Program(
    name="dfs",
    task="dfs",
    inputs={"idx": "pos", "link": "adj"},
    hidden=(
        *(color, pi, s_prev, s, u, s_last, time),
        *(active, discover, here, rooted, found, target, finished, entered),
    ),
    phases=(
        return_,
        choose,
        Phase(  # enter: the white node learns by whom it was found; all others see their parents
            select=minimum(other.idx),
            mask=other.found & equal(other.target, self.idx),
            otherwise=self.pi,
            update=dict(
                pi=other.idx,
                entered=other.found & self.white,
                here=self.active | self.discover,
                rooted=self.s & ~self.black,
            ),
        ),
    ),
    conclude=dict(
        color=becomes(grey=self.entered | self.discover, black=self.finished),
        s_prev=where(self.black, self.idx, self.pi),
        s=first(self.rooted, self.white),
        u=first(self.here, self.white),
        s_last=first(self.entered, self.here, self.white),
        time=grows(0.01, self.discover, self.finished),
    ),
    hints=dict(pi_h=pi, color=color, s_prev=s_prev, s=s, u=u, v=s_last, s_last=s_last, time=time),
    output={"pi": pi},
    unclaimed={
        "d": "a node would have to count the steps and know its depth (they determine d), and a "
        "number that nodes pass on must be a hint, which depth is not",
        "f": "as d",
        "v": "out of reach: on a finishing step it is the last node, on a starting step the lowest "
        "white one, and an isolated node cannot tell these steps apart; on all others it is s_last",
    },
)
"""Depth-first search with one active node, which enters its lowest white out-neighbour or
finishes. A new root needs no message: it is the choice of the lowest white node."""

dfs_parent = replace(
    dfs,
    name="dfs_parent",
    phases=(
        replace(
            return_,
            otherwise=self.pi,
            update={**return_.update, "active": self.discover | other.finished & self.grey},
        ),
        replace(choose, otherwise=self.pi),
        dfs.phases[-1],
    ),
)
"""The same, but whoever is not addressed looks at its parent in every phase. A parent is a feature
of an edge, so nobody has to find itself among its neighbours, or to know which phase it is."""

dfs_full = Program(
    name="dfs_full",
    task="dfs",
    inputs={"idx": "pos", "link": "adj"},
    hidden=(
        *(color, pi, s_prev, s, u, v, s_last, d, f, time),
        *(active, discover, here, rooted, found, target, finished, entered),
        *(event, clock, highest, left),
    ),
    sees_all=True,
    phases=(
        return_,
        Phase(  # last: whoever sees itself is the last node
            select=maximum(other.idx),
            update=dict(highest=edge.loop),
        ),
        Phase(  # choose: the active node looks for a white one
            select=minimum(other.idx),
            mask=self.active & edge.link & other.white,
            update=dict(
                found=self.active & other.white,
                target=other.idx,
                finished=self.active & ~other.white,
                event=self.discover | self.active & ~other.white,
            ),
        ),
        Phase(  # tick: everyone counts the nodes that are discovered or finished
            select=minimum(other.idx),
            mask=other.event,
            update=dict(
                clock=self.clock + 0.01 * other.event,
                left=other.finished & self.highest,
            ),
        ),
        Phase(  # enter: the white node learns by whom it was found; all others see their parents
            select=minimum(other.idx),
            mask=other.found & equal(other.target, self.idx),
            otherwise=self.pi,
            update=dict(
                pi=other.idx,
                entered=other.found & self.white,
                here=self.active | self.discover,
                rooted=self.s & ~self.black,
                d=self.d + where(self.discover, self.clock, 0),
                f=self.f + where(self.finished, self.clock, 0),
            ),
        ),
    ),
    conclude=dict(
        color=becomes(grey=self.entered | self.discover, black=self.finished),
        s_prev=where(self.black, self.idx, self.pi),
        s=first(self.rooted, self.white),
        u=first(self.here, self.white),
        v=first(self.left, self.entered, self.here, self.white),
        s_last=first(self.entered, self.here, self.white),
        time=grows(0.01, self.discover, self.finished),
    ),
    hints=dict(
        pi_h=pi, color=color, d=d, f=f, s_prev=s_prev, s=s, u=u, v=v, s_last=s_last, time=time
    ),
    output={"pi": pi},
)
"""All hints and the output of depth-first search."""
