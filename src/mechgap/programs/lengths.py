"""How long a program runs until nothing changes any more."""

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from mechgap.errors import InvalidInput
from mechgap.programs.evaluation import given
from mechgap.programs.meaning import start, take_step
from mechgap.programs.program import Program
from mechgap.tasks.specs import Task, get_task


@cache
def longest_run(program: Program, nodes: int) -> int:
    """The most steps that a program takes to its fixpoint on graphs made to be hard."""
    return max(steps_to_fixpoint(program, inputs) for inputs in _hard_inputs(program, nodes))


def steps_to_fixpoint(program: Program, inputs: Mapping[str, np.ndarray]) -> int:
    """How many steps change anything on some graphs.

    Raises:
        InvalidInput: there is no end within as many steps as there are pairs of nodes.
    """
    known = given(program, inputs, np.float64)
    nodes = known.positions.shape[-1]
    most = most_steps(nodes)
    state = start(program, known)
    for steps in range(most + 1):
        after = take_step(program, known, state).state
        if all(np.array_equal(after[name], state[name]) for name in after):
            return steps
        state = after
    raise has_no_fixpoint(program, nodes)


def most_steps(nodes: int) -> int:
    """How many steps a run may take to its fixpoint: as many as there are pairs of nodes."""
    return max(64, nodes**2)


def has_no_fixpoint(program: Program, nodes: int) -> InvalidInput:
    """The error where a run does not end."""
    return InvalidInput(
        f"{program.name} still changes after {most_steps(nodes):,} steps on graphs of {nodes} "
        "nodes: it has no fixpoint. Say how long it runs (steps=…), or let its updates come to an "
        "end"
    )


def _hard_inputs(program: Program, nodes: int) -> Iterator[dict[str, np.ndarray]]:
    """Paths, cycles, trees, ladders and sparse graphs, in several orders, from several sources."""
    task, rng = get_task(program.task), np.random.default_rng(0)
    path = np.eye(nodes, k=1, dtype=bool)
    cycle = path.copy()
    cycle[-1, 0] = nodes > 2
    tree = np.zeros((nodes, nodes), bool)
    tree[(np.arange(1, nodes) - 1) // 2, np.arange(1, nodes)] = True
    ladder = np.eye(nodes, k=2, dtype=bool)
    ladder[np.arange(0, nodes - 1, 2), np.arange(1, nodes, 2)] = True
    sparse = rng.random((nodes, nodes)) < 2 / max(2, nodes)
    for edges in (path, cycle, tree, ladder, sparse, ~np.eye(nodes, dtype=bool)):
        for order in (np.arange(nodes), np.arange(nodes)[::-1], rng.permutation(nodes)):
            shuffled = edges[np.ix_(order, order)]
            if task.acyclic:
                shuffled = np.triu(shuffled | shuffled.T, 1)
            elif not task.directed:
                shuffled = shuffled | shuffled.T
            weights = np.sqrt(rng.random((nodes, nodes)) + 1e-3)
            weights = np.triu(weights) + np.triu(weights, 1).T
            for source in {0, nodes // 2, nodes - 1}:
                yield _inputs(task, shuffled * (weights if task.weighted else 1.0), source)


def _inputs(task: Task, weights: np.ndarray, source: int) -> dict[str, np.ndarray]:
    nodes = len(weights)
    found = {
        "pos": np.arange(nodes)[None] / nodes,
        "A": weights[None],
        "adj": ((weights != 0) | np.eye(nodes, dtype=bool))[None] * 1.0,
    }
    return {**found, "s": np.eye(nodes)[source][None]} if task.has_source else found
