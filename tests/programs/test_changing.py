"""A program's run with one variable changed at one moment."""

import jax
import numpy as np
import pytest

from mechgap.programs.changing import Change, names_of, ran
from mechgap.programs.interpreter import components, interpret
from mechgap.programs.library import LIBRARY
from mechgap.tasks.sampling import sample


def inputs_of(program, seed=0, nodes=7):
    batch = sample(program.task, jax.random.key(seed), batch_size=4, nodes=nodes)
    return {name: np.asarray(value) for name, value in batch.inputs.items()}


@pytest.mark.parametrize("name", ["bfs", "bellman_ford", "dfs", "dijkstra"])
def test_without_a_change_it_is_the_interpreters_run(name):
    program = LIBRARY[name]
    inputs = inputs_of(program)
    expected = interpret(program, inputs, 5).states
    for time, step in enumerate(ran(program, inputs, 5).steps, start=1):
        for component, value in components(program, step.state).items():
            assert np.array_equal(value, expected[component][time])


@pytest.mark.parametrize(("name", "variable", "phase"), [("bfs", "visit", 0), ("dfs", "found", 2)])
def test_a_change_is_made_at_its_moment_and_at_no_other(name, variable, phase):
    program = LIBRARY[name]
    inputs = inputs_of(program)
    own = ran(program, inputs, 4)
    (flag,) = names_of(program.components[variable])
    before = own.steps[2].phases[phase].before[flag]
    nodes = np.zeros(before.shape, bool)
    nodes[1, 3] = nodes[2, 5] = True
    time = np.array([2, 2, 9, 2])  # the third graph's moment never comes
    change = Change(time, np.full(4, phase), nodes, {flag: 1 - before})
    changed = ran(program, inputs, 4, change)
    for earlier in range(2):
        for name in own.steps[0].state:
            assert np.array_equal(
                changed.steps[earlier].state[name], own.steps[earlier].state[name]
            )
    after = changed.steps[2].phases[phase].before[flag]
    assert np.argwhere(after != before).tolist() == [[1, 3]]


def test_what_follows_from_a_change():
    """On the path 0 - 1 - 2 - 3, searched from 0, a node that is made reached too early makes its
    neighbour name it."""
    adjacent = np.eye(4) + np.eye(4, k=1) + np.eye(4, k=-1)
    inputs = {
        "pos": np.arange(4)[None] / 4,
        "s": np.array([[1.0, 0, 0, 0]]),
        "A": (adjacent - np.eye(4))[None],
        "adj": adjacent[None],
    }
    nodes = np.array([[False, False, False, True]])
    moment = np.array([1]), np.array([0])
    change = Change(*moment, nodes, {"visit": np.ones((1, 4))})
    program = LIBRARY["bfs"]
    usual = ran(program, inputs, 3).steps[-1].state["pi"][0]
    changed = ran(program, inputs, 3, change).steps[-1].state["pi"][0]
    assert (4 * usual).tolist() == [0, 0, 1, 2]
    assert (4 * changed).tolist() == [0, 0, 1, 3]
