"""The programs that come with mechgap."""

from collections.abc import Mapping
from types import MappingProxyType

from mechgap.programs.depth_first import dfs_full
from mechgap.programs.expressions import edge, equal, init, other, self, where, zero
from mechgap.programs.language import (
    Bool,
    Choice,
    Class,
    Float,
    GraphProgram,
    Pointer,
    Total,
    maximum,
    minimum,
)
from mechgap.programs.phases import AnyProgram, Phase, PhasedProgram, becomes, first, grows
from mechgap.programs.queues import dijkstra, mst_prim
from mechgap.programs.topological import topological_sort
from mechgap.tasks.specs import Task, get_task

visit = Bool("visit")
dist = Float("dist")
level = Float("level")
label = Float("label")
pi = Pointer("pi")

bfs = GraphProgram(
    name="bfs",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(visit, pi),
    init=dict(visit=init.start, pi=init.idx),
    select=minimum(other.idx),
    mask=other.visit & ~self.visit,
    update=dict(visit=self.visit | other.visit, pi=other.idx),
    hints={"reach_h": visit, "pi_h": pi},
    output={"pi": pi},
)
"""Breadth-first search as CLRS has it: a reached node keeps its parent, attending to itself."""

bfs_parent = GraphProgram(
    name="bfs_parent",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(visit, level, pi),
    init=dict(visit=init.start, level=zero, pi=init.idx),
    select=minimum(other.level + other.idx),
    mask=other.visit,
    update=dict(visit=self.visit | other.visit, level=other.level + 1 - init.start, pi=other.idx),
    hints={"reach_h": visit, "pi_h": pi},
    output={"pi": pi},
)
"""The same search by another mechanism: a reached node goes on attending to its parent, which is
the neighbour of lowest level, then of lowest index."""

bellman_ford = GraphProgram(
    name="bellman_ford",
    task="bellman_ford",
    inputs={"idx": "pos", "start": "s", "weight": "A"},
    hidden=(visit, dist, pi),
    init=dict(visit=init.start, dist=zero, pi=init.idx),
    select=minimum(other.dist + edge.weight),
    mask=other.visit & ~edge.loop & ~init.start,
    update=dict(visit=self.visit | other.visit, dist=other.dist + edge.weight, pi=other.idx),
    hints={"msk": visit, "d": dist, "pi_h": pi},
    output={"pi": pi},
)
"""Shortest paths: a reached node attends to the best *other* node; source and unreached keep."""

reachability = GraphProgram(
    name="reachability",
    task="bfs",
    inputs={"idx": "pos", "start": "s"},
    hidden=(visit,),
    init=dict(visit=init.start),
    select=maximum(other.idx),
    mask=other.visit & ~self.visit,
    update=dict(visit=self.visit | other.visit),
    hints={"reached": visit},
    output={"reachable": visit},
)
"""Which nodes the source can reach; the news comes from the reached neighbour of highest index."""

smallest_label = GraphProgram(
    name="smallest_label",
    task="bfs",
    inputs={"idx": "pos"},
    hidden=(label,),
    init=dict(label=init.idx),
    select=minimum(other.label + 0.01 * other.idx),
    update=dict(label=other.label),
    hints={"label_h": label},
    output={"label": label},
)
"""Connected components: everyone takes the smallest label in sight, no mask, no source."""

strongest_neighbour = GraphProgram(
    name="strongest_neighbour",
    task="bellman_ford",
    inputs={"idx": "pos", "weight": "A"},
    hidden=(pi,),
    init=dict(pi=init.idx),
    select=maximum(edge.weight),
    mask=~edge.loop,
    update=dict(pi=other.idx),
    hints={"strongest_h": pi},
    output={"strongest": pi},
    steps=1,
)
"""The heaviest edge of every node, as in the first round of Borůvka's algorithm."""

color = Class("color", "white", "grey", "black")
s_prev = Pointer("s_prev")
s, u, s_last, time = Choice("s"), Choice("u"), Choice("s_last"), Total("time")
active, discover, here, rooted = Bool("active"), Bool("discover"), Bool("here"), Bool("rooted")
found, target = Bool("found"), Pointer("target")
finished, entered = Bool("finished"), Bool("entered")

dfs = PhasedProgram(
    name="dfs",
    task="dfs",
    inputs={"idx": "pos", "link": "adj"},
    hidden=(
        *(color, pi, s_prev, s, u, s_last, time),
        *(active, discover, here, rooted, found, target, finished, entered),
    ),
    phases=(
        Phase(  # return: when a node has finished, the node that it was entered from goes on
            select=minimum(other.idx),
            mask=other.finished & equal(other.pi, self.idx),
            signal=dict(
                active=other.finished & ~self.finished | self.discover,
                discover=self.s_last & self.white | self.entered,
            ),
        ),
        Phase(  # choose: the active node looks for a white one
            select=minimum(other.idx),
            mask=self.active & edge.link & other.white,
            signal=dict(
                found=self.active & other.white,
                target=other.idx,
                finished=self.active & ~other.white,
            ),
        ),
        Phase(  # enter: the white node learns by whom it was found; all others see their parents
            select=minimum(other.idx),
            mask=other.found & equal(other.target, self.idx),
            default=self.pi,
            signal=dict(
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

LIBRARY: Mapping[str, AnyProgram] = MappingProxyType(
    {
        program.name: program
        for program in (
            *(bfs, bfs_parent, bellman_ford),
            *(reachability, smallest_label, strongest_neighbour, dfs, dfs_full),
            *(topological_sort, dijkstra, mst_prim),
        )
    }
)
"""Every program by name."""


def mechanisms(task: Task | str) -> tuple[AnyProgram, ...]:
    """The library's exact mechanisms of a task: programs that answer for its hints and outputs.

    A program whose nodes see all nodes is left out where another needs only neighbours: a network
    with masked attention cannot attend like it. So a task's mechanisms have equally many phases.

    >>> [program.name for program in mechanisms("bfs")]
    ['bfs', 'bfs_parent']
    >>> [program.name for program in mechanisms("dfs")]
    ['dfs']
    """
    task = get_task(task)
    exact = [p for p in LIBRARY.values() if p.task == task.name and p.posed() == task]
    masked = [p for p in exact if not (isinstance(p, PhasedProgram) and p.sees_all)]
    return tuple(masked or exact)
