"""dm-clrs as the tests use it: traces of given graphs, straight from its algorithms."""

from typing import Any, NamedTuple, cast

import numpy as np
from clrs._src import algorithms
from scipy import stats

from mechgap.tasks.specs import TASKS, Task

DM_CLRS_TASKS = [task.name for task in TASKS.values() if task.in_dm_clrs]


class PeerTrace(NamedTuple):
    hints: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    length: int


def peer_trace(task: Task, A: np.ndarray, source: int) -> PeerTrace:
    """dm-clrs's own trace. Read from its probes, since its batching cannot hold one node."""
    run: Any = getattr(algorithms, task.name)
    _, probes = run(A, source) if task.has_source else run(A)
    hints = {f.name: probes["hint"][f.location.value][f.name]["data"] for f in task.hints}
    outputs = {
        f.name: probes["output"][f.location.value][f.name]["data"].reshape(len(A))
        for f in task.outputs
    }
    return PeerTrace(hints, outputs, len(hints[task.hints[0].name]))


def same_distribution(a: Any, b: Any) -> float:
    """The p-value of the two-sample Kolmogorov-Smirnov test."""
    return cast(Any, stats.ks_2samp(np.ravel(a), np.ravel(b), method="asymp")).pvalue
