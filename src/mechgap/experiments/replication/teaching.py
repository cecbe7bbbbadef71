"""Populations that an exact program teaches, and their twins that learn by hints alone.

All learn long traces in windows; their networks pass messages as often in a hint as the program
selects, and have what it needs of edges.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mechgap.experiments.replication.populations import LARGER, Population

SEEDS = 3
STEPS = 8_000
LONG: Mapping[str, Any] = MappingProxyType({"train_steps": 32_000, "test_every": 32_000})
"""For the populations of depth-first search that are to be as good as can be."""
_KINDS = ("er", "er-sparse")


@dataclass(frozen=True)
class Lessons:
    """How one task is taught."""

    shape: Mapping[str, Any]
    """What the network needs to run the program, and hints that it cannot predict."""
    teacher: str
    signals: str
    """What is supervised of the teacher's state."""
    sizes: tuple[int, ...] = (16, 64)
    """Of the other graphs that its networks are looked at on."""


_SEARCH = MappingProxyType({"nb_msg_passing_steps": 3, "ignored_hints": "v"})
_QUEUE = MappingProxyType(
    {"nb_msg_passing_steps": 2, "processor_type": "gatv2_full", "use_edge_info": True}
)
LESSONS: Mapping[str, Lessons] = MappingProxyType(
    {
        "dfs": Lessons(
            _SEARCH,
            "dfs_parent",
            "active,discover,found,target,finished,entered,pi",
            (16, 32, 64),
        ),
        "topological_sort": Lessons(
            _SEARCH,
            "topological_sort_parent",
            "active,discover,found,target,finished,entered,seen,tail",
        ),
        "dijkstra": Lessons(_QUEUE, "dijkstra", "taken,done,queued,pi,dist"),
        "mst_prim": Lessons(_QUEUE, "mst_prim", "taken,done,queued,pi,key"),
    }
)
"""By task."""


def by_hints(task: str, suffix: str = "", **otherwise: Any) -> Population:
    """Learns by hints alone."""
    return _population(task, suffix, otherwise)


def by_attention(task: str) -> Population:
    """Is taught whom to attend to."""
    return _population(task, "attention", _attention(task))


def by_state(task: str, suffix: str = "", **otherwise: Any) -> Population:
    """Is taught whom to attend to and what to hold; or so, but for something."""
    name = f"taught_{suffix}" if suffix else "taught"
    return _population(task, name, {**_attention(task), **_state(task), **otherwise})


def _attention(task: str) -> dict[str, Any]:
    return {
        "supervised_mechanism": LESSONS[task].teacher,
        "attention_supervision": 1.0,
        "active_supervision": 1.0,
    }


def _state(task: str) -> dict[str, Any]:
    return {"state_supervision": 1.0, "supervised_signals": LESSONS[task].signals}


def _population(task: str, suffix: str, overrides: Mapping[str, Any]) -> Population:
    lessons = LESSONS[task]
    length = {"train_steps": STEPS, "test_every": STEPS}
    return Population(
        task,
        "windows",
        SEEDS,
        {**length, **lessons.shape, **overrides},
        suffix,
        snapshots=(),
        elsewhere=(*((kind, nodes) for kind in _KINDS for nodes in lessons.sizes), *LARGER),
        in_full=False,
    )
