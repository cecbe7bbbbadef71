"""The programs that come with mechgap."""

from collections.abc import Mapping
from types import MappingProxyType

from mechgap.lang import (
    Bool,
    Float,
    GraphProgram,
    Pointer,
    edge,
    init,
    maximum,
    minimum,
    other,
    self,
    zero,
)
from mechgap.programs.depth_first import dfs, dfs_full, dfs_parent
from mechgap.programs.posing import ProgramTracer, posed
from mechgap.programs.program import Program
from mechgap.programs.queues import dijkstra, mst_prim
from mechgap.programs.topological import topological_sort, topological_sort_parent
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

LIBRARY: Mapping[str, Program] = MappingProxyType(
    {
        program.name: program
        for program in (
            *(bfs, bfs_parent, bellman_ford),
            *(reachability, smallest_label, strongest_neighbour, dfs, dfs_parent, dfs_full),
            *(topological_sort, topological_sort_parent, dijkstra, mst_prim),
        )
    }
)
"""Every program by name."""


def mechanisms(task: Task | str) -> tuple[Program, ...]:
    """The exact mechanisms of a task: the library's that answer for its hints and outputs, or the
    program whose task it is.

    A program whose nodes see all nodes is left out where another needs only neighbours: a network
    with masked attention cannot attend like it. So a task's mechanisms have equally many phases.

    >>> [program.name for program in mechanisms("bfs")]
    ['bfs', 'bfs_parent']
    >>> [program.name for program in mechanisms("dfs")]
    ['dfs', 'dfs_parent']
    """
    task = get_task(task)
    if isinstance(task.tracer, ProgramTracer):
        return (task.tracer.program,)
    exact = [p for p in LIBRARY.values() if p.task == task.name and posed(p) == task]
    masked = [p for p in exact if not p.sees_all]
    return tuple(masked or exact)
