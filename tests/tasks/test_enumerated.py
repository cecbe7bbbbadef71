"""Every graph of a size."""

from itertools import pairwise

import networkx
import numpy as np
import pytest

from mechgap import InvalidInput
from mechgap.tasks.enumerated import (
    WEIGHTS,
    every_graph,
    largest_within,
    matrices_to_look_through,
)
from mechgap.tasks.specs import get_task


def every(task, nodes):
    batches = list(every_graph(get_task(task), nodes))
    A = np.concatenate([np.asarray(batch.inputs["A"]) for batch in batches])
    if not get_task(task).has_source:
        return A, np.zeros(len(A), int)
    return A, np.concatenate([np.asarray(batch.inputs["s"]).argmax(-1) for batch in batches])


@pytest.mark.parametrize(
    ("task", "nodes", "count"),
    [
        ("bfs", 1, 1),
        ("bfs", 5, 5 * 2**10),
        ("dfs", 3, 2**6),
        ("topological_sort", 4, 543),  # labelled graphs without cycles: 1, 3, 25, 543, 29281
        ("topological_sort", 5, 29_281),
        ("bellman_ford", 3, 3 * 4**3),
    ],
)
def test_all_are_there_once(task, nodes, count):
    A, source = every(task, nodes)
    assert len(A) == count
    assert len({(matrix.tobytes(), s) for matrix, s in zip(A, source, strict=True)}) == count
    assert not A[:, np.arange(nodes), np.arange(nodes)].any()
    assert {*np.unique(A)} <= {0.0, *(np.float32(w) for w in WEIGHTS), 1.0}


def test_in_the_order_of_size():
    A, source = every("bfs", 4)
    keys = [
        ((matrix > 0).sum(), *matrix[np.triu_indices(4, 1)], s)
        for matrix, s in zip(A, source, strict=True)
    ]
    assert all(a < b for a, b in pairwise(keys))
    assert np.array_equal(A, A.swapaxes(1, 2))


def test_acyclic_ones_have_no_cycle():
    A, _ = every("topological_sort", 4)
    graphs = (networkx.from_numpy_array(m, create_using=networkx.DiGraph) for m in A)
    assert all(map(networkx.is_directed_acyclic_graph, graphs))


def test_too_many_are_refused_with_their_number():
    with pytest.raises(InvalidInput, match=r"dfs has 1,073,741,824 graphs of 6 nodes.*up to 5"):
        next(every_graph(get_task("dfs"), 6))
    with pytest.raises(InvalidInput, match="at least 1 node; got 0"):
        next(every_graph(get_task("dfs"), 0))


@pytest.mark.parametrize("task", ["bfs", "dfs", "bellman_ford"])
def test_the_largest_size_within_a_number(task):
    task = get_task(task)
    nodes = largest_within(task, 200_000)
    within, beyond = (
        matrices_to_look_through(task, n) * (n if task.has_source else 1)
        for n in (nodes, nodes + 1)
    )
    assert within <= 200_000 < beyond
