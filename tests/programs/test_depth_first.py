"""Depth-first search with all hints, as a program with phases: it means what CLRS traces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mechgap.programs.components import Kind
from mechgap.programs.depth_first import dfs, dfs_full
from mechgap.programs.evaluation import pointed
from mechgap.programs.interpreter import interpret
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official
from mechgap.tasks.specs import get_task


def assert_traced(batch):
    """The interpreter has every hint of every step, and the output."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    run = interpret(dfs_full, inputs, steps=batch.steps)
    for name, component in dfs_full.hints.items():
        truth, state = np.asarray(batch.hints[name]), run.states[component.name]
        state = state[: len(truth)]
        if component.kind is Kind.POINTER:
            state = pointed(state, inputs["pos"].astype(float))
        elif component.kind is Kind.CLASS:
            truth = truth.argmax(-1)
        elif component.kind is Kind.TOTAL:
            truth = truth[..., None]
        numbers = component.kind in {Kind.TOTAL, Kind.FLOAT}
        assert np.abs(state - truth).max() <= (1e-6 if numbers else 0), name
    assert not run.shared.any()
    return run


def test_all_of_the_tasks_hints_are_claimed():
    assert set(dfs_full.hints) == {feature.name for feature in get_task("dfs").hints}
    assert not dfs_full.unclaimed


@pytest.mark.parametrize("split", ["validation", "test"])
def test_agrees_with_the_official_traces(split):
    assert_traced(official("dfs", split)[:16])


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9).flatmap(lambda n: arrays(bool, (n, n))))
def test_agrees_with_clrs_on_any_graph(edges):
    assert_traced(from_graphs("dfs", edges.astype(float)))


def test_everyone_has_the_same_clock():
    batch = official("dfs", "validation")[:4]
    clock = assert_traced(batch).states["clock"]
    assert np.array_equal(clock, np.broadcast_to(clock[..., :1], clock.shape))
    np.testing.assert_allclose(
        clock[: batch.max_hints, :, 0], np.asarray(batch.hints["time"]), atol=1e-6
    )


def test_the_search_is_that_of_the_masked_program():
    batch = official("dfs", "validation")
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    full, masked = interpret(dfs_full, inputs), interpret(dfs, inputs)
    for name in ("color", "pi", "s_prev", "u", "s_last", "time"):
        assert np.array_equal(full.states[name], masked.states[name]), name
    for ours, theirs in {0: 0, 2: 1, 4: 2}.items():  # return, choose, enter
        assert np.array_equal(full.senders[ours::5], masked.senders[theirs::3])
