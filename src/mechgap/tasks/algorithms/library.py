"""Which algorithm traces which task."""

from collections.abc import Mapping
from types import MappingProxyType

from mechgap.tasks.algorithms.breadth_first import bfs, bfs_sequential
from mechgap.tasks.algorithms.depth_first import dfs, dfs_simplified, topological_sort
from mechgap.tasks.algorithms.traced import Algorithm
from mechgap.tasks.algorithms.weighted import bellman_ford, dijkstra, mst_prim
from mechgap.tasks.specs import Task

_ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "bfs": bfs,
        "bellman_ford": bellman_ford,
        "dijkstra": dijkstra,
        "mst_prim": mst_prim,
        "dfs": dfs,
        "topological_sort": topological_sort,
        "bfs_sequential": bfs_sequential,
        "dfs_simplified": dfs_simplified,
    }
)


def algorithm(task: Task) -> Algorithm:
    """The algorithm whose trace the task asks for."""
    return _ALGORITHMS[task.name]
