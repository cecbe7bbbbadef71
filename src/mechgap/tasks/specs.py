"""What CLRS asks: each task's inputs, hints and outputs, by location and type.

A task is a list of `Feature`s in dm-clrs's order. `bfs_sequential` and `dfs_simplified` are the
paper's variants; the others are dm-clrs's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from mechgap.errors import unknown


class Stage(Enum):
    """When a feature is known: before, during or after the algorithm runs."""

    INPUT = "input"
    HINT = "hint"
    OUTPUT = "output"


class Location(Enum):
    """What carries a feature: every node, every ordered pair of nodes, or the graph."""

    NODE = "node"
    EDGE = "edge"
    GRAPH = "graph"


class Type(Enum):
    """What a feature's values are."""

    SCALAR = "scalar"
    MASK = "mask"
    MASK_ONE = "mask_one"
    CATEGORICAL = "categorical"
    POINTER = "pointer"


@dataclass(frozen=True)
class Feature:
    """One named input, hint or output."""

    name: str
    stage: Stage
    location: Location
    type: Type
    categories: int = 1
    """How many classes a categorical feature has; 1 for every other type."""


@runtime_checkable
class Tracer(Protocol):
    """What traces a task that is not CLRS's. It is compared by what it does."""

    def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Hints (time first), outputs and lengths on a batch's inputs, inside `jax.jit` too."""
        ...

    def max_hints(self, nodes: int) -> int:
        """The largest number of hints on a graph of that many nodes."""
        ...


@dataclass(frozen=True)
class Task:
    """A graph algorithm as CLRS poses it, or one that a program poses."""

    name: str
    summary: str
    features: tuple[Feature, ...]
    hints_per_node: int = 1
    """A graph of n nodes has at most this many times n hints,"""
    more_hints: int = 0
    """and this many more."""
    fixed_length: bool = False
    """Whether every graph has all of them."""
    directed: bool = False
    acyclic: bool = False
    weighted: bool = False
    has_source: bool = True
    in_dm_clrs: bool = True
    like: str = ""
    """The task of dm-clrs whose official graphs it has, if it is none itself."""
    tracer: Tracer | None = None
    """What traces it, if it is a program's and not one of the benchmark's."""

    @property
    def untraced(self) -> "Task":
        """The same without its graphs and who traces them: all that a network needs to know."""
        return replace(self, like="", tracer=None)

    def stage(self, stage: Stage) -> tuple[Feature, ...]:
        """The features of one stage, in dm-clrs's order."""
        return tuple(f for f in self.features if f.stage is stage)

    def max_hints(self, nodes: int) -> int:
        """The largest number of hints on a graph of that many nodes."""
        if self.tracer is not None:
            return self.tracer.max_hints(nodes)
        return self.hints_per_node * nodes + self.more_hints

    @property
    def has_clock(self) -> bool:
        """Whether a hint counts the time of the whole graph."""
        kinds = [(f.location, f.type) for f in self.hints]
        return (Location.GRAPH, Type.SCALAR) in kinds

    @property
    def inputs(self) -> tuple[Feature, ...]:
        """What the network is given before the first step."""
        return self.stage(Stage.INPUT)

    @property
    def hints(self) -> tuple[Feature, ...]:
        """The algorithm's state after each step."""
        return self.stage(Stage.HINT)

    @property
    def outputs(self) -> tuple[Feature, ...]:
        """What the algorithm returns."""
        return self.stage(Stage.OUTPUT)


_POS = Feature("pos", Stage.INPUT, Location.NODE, Type.SCALAR)
_SOURCE = Feature("s", Stage.INPUT, Location.NODE, Type.MASK_ONE)
_A = Feature("A", Stage.INPUT, Location.EDGE, Type.SCALAR)
_ADJ = Feature("adj", Stage.INPUT, Location.EDGE, Type.MASK)
_PI = Feature("pi", Stage.OUTPUT, Location.NODE, Type.POINTER)


def _hint(name: str, type: Type, location: Location = Location.NODE, categories: int = 1):
    return Feature(name, Stage.HINT, location, type, categories)


_PI_H = _hint("pi_h", Type.POINTER)
_REACH_H = _hint("reach_h", Type.MASK)
_COLOR = _hint("color", Type.CATEGORICAL, categories=3)
_STACK = (
    _hint("s_prev", Type.POINTER),
    _hint("s", Type.MASK_ONE),
    _hint("u", Type.MASK_ONE),
    _hint("v", Type.MASK_ONE),
    _hint("s_last", Type.MASK_ONE),
)
_QUEUE = (
    _hint("mark", Type.MASK),
    _hint("in_queue", Type.MASK),
    _hint("u", Type.MASK_ONE),
)

_ALL = (
    Task(
        name="bfs",
        summary="breadth-first search; ties go to the parent of lowest index",
        features=(_POS, _SOURCE, _A, _ADJ, _PI, _REACH_H, _PI_H),
    ),
    Task(
        name="bellman_ford",
        summary="shortest paths from one source, every edge relaxed at once",
        features=(
            *(_POS, _SOURCE, _A, _ADJ, _PI, _PI_H),
            _hint("d", Type.SCALAR),
            _hint("msk", Type.MASK),
        ),
        weighted=True,
    ),
    Task(
        name="dijkstra",
        summary="shortest paths from one source, the nearest node first",
        features=(*(_POS, _SOURCE, _A, _ADJ, _PI, _PI_H), _hint("d", Type.SCALAR), *_QUEUE),
        more_hints=1,
        weighted=True,
    ),
    Task(
        name="mst_prim",
        summary="Prim's minimum spanning tree, grown from one source",
        features=(*(_POS, _SOURCE, _A, _ADJ, _PI, _PI_H), _hint("key", Type.SCALAR), *_QUEUE),
        more_hints=1,
        weighted=True,
    ),
    Task(
        name="dfs",
        summary="depth-first search from every node in turn, lowest index first",
        features=(
            *(_POS, _A, _ADJ, _PI, _PI_H, _COLOR),
            _hint("d", Type.SCALAR),
            _hint("f", Type.SCALAR),
            *_STACK,
            _hint("time", Type.SCALAR, Location.GRAPH),
        ),
        hints_per_node=3,
        fixed_length=True,
        directed=True,
        has_source=False,
    ),
    Task(
        name="topological_sort",
        summary="an order in which edges point forwards: dfs, last finished first",
        features=(
            *(_POS, _A, _ADJ),
            Feature("topo", Stage.OUTPUT, Location.NODE, Type.POINTER),
            Feature("topo_head", Stage.OUTPUT, Location.NODE, Type.MASK_ONE),
            _hint("topo_h", Type.POINTER),
            _hint("topo_head_h", Type.MASK_ONE),
            *(_COLOR, *_STACK),
        ),
        hints_per_node=3,
        directed=True,
        acyclic=True,
        has_source=False,
    ),
    Task(
        name="bfs_sequential",
        summary="bfs with one hint per newly reached node (the paper's variant)",
        features=(_POS, _SOURCE, _A, _ADJ, _PI, _REACH_H, _PI_H),
        in_dm_clrs=False,
        like="bfs",
    ),
    Task(
        name="dfs_simplified",
        summary="dfs with the hints pi_h and color only (the paper's variant)",
        features=(_POS, _A, _ADJ, _PI, _PI_H, _COLOR),
        hints_per_node=3,
        fixed_length=True,
        directed=True,
        has_source=False,
        in_dm_clrs=False,
        like="dfs",
    ),
)

TASKS = MappingProxyType({task.name: task for task in _ALL})
"""Every task by name."""


def get_task(task: Task | str) -> Task:
    """The task of that name, or an error that names the nearest one.

    >>> get_task("bfs").outputs[0].name
    'pi'
    """
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    return TASKS[task]
