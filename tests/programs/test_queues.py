"""Dijkstra and Prim as programs with phases: what they mean is what CLRS traces."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechgap.programs.components import Bool, Float, Kind
from mechgap.programs.evaluation import pointed
from mechgap.programs.expressions import edge, init, other, self, where
from mechgap.programs.interpreter import interpret
from mechgap.programs.phases import minimum
from mechgap.programs.queues import dijkstra, mst_prim
from mechgap.programs.validate import problems
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official
from weighted_graphs import weighted

PROGRAM = pytest.mark.parametrize("program", [dijkstra, mst_prim], ids=lambda p: p.name)


def assert_traced(program, batch):
    """The interpreter has every hint of every step that counts, and the output."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    positions, lengths = inputs["pos"].astype(float), np.asarray(batch.lengths)
    run = interpret(program, inputs, steps=batch.steps)
    counted = (np.arange(batch.max_hints)[:, None] < lengths)[..., None]
    for name, component in program.hints.items():
        truth, state = np.asarray(batch.hints[name]), run.states[component.name]
        if component.kind is Kind.POINTER:
            state = pointed(state, positions)
        off = np.abs(state[: len(truth)] - truth) * counted
        assert off.max() <= (1e-6 if component.kind is Kind.FLOAT else 0), name
    last = run.states["pi"][np.maximum(1, lengths - 1), np.arange(batch.size)]
    assert np.array_equal(pointed(last, positions), np.asarray(batch.outputs["pi"]))
    return run


@PROGRAM
@pytest.mark.parametrize("split", ["validation", "test"])
def test_agrees_with_the_official_traces(program, split):
    run = assert_traced(program, official(program.name, split))
    assert run.hops.max() == (1 if program is mst_prim else 7 if split == "test" else 6)


@PROGRAM
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_agrees_with_clrs_on_any_graph(program, nodes, seed):
    rng = np.random.default_rng(seed)
    source = int(rng.integers(nodes))
    assert_traced(program, from_graphs(program.name, weighted(rng, nodes, rng.random()), source))


def test_whoever_is_done_goes_on_looking_at_its_parent():
    batch = official("dijkstra", "validation")
    run = assert_traced(dijkstra, batch)
    looks, done = run.senders[1::2], run.states["done"][1:]
    parents = pointed(run.states["pi"], np.asarray(batch.inputs["pos"], float))[1:]
    assert np.array_equal(looks[done > 0], parents[done > 0])
    taken = run.senders[::2]  # everyone looks at the same node
    counted = np.arange(len(taken))[:, None] < np.asarray(batch.lengths) - 1
    assert (taken == taken[..., :1])[counted].all()


def test_a_gap_is_that_of_the_closest_race():
    """From 0, two ways to 2 that differ by 0.02, and two nodes in the queue that differ by 0.1."""
    graph = np.zeros((3, 3))
    graph[0, 1], graph[1, 2], graph[0, 2] = 0.3, 0.12, 0.4
    batch = from_graphs("dijkstra", graph + graph.T)
    run = assert_traced(dijkstra, batch)
    assert run.gaps[:, 0] == pytest.approx([np.inf, np.inf, 0.1, 0.02, np.inf, np.inf])
    assert run.hops.tolist() == [1]


take, relax = dijkstra.phases


def taking(**change):
    return {"phases": (replace(take, update={**take.update, **change}), relax)}


def relaxing(**change):
    return {"phases": (take, replace(relax, update={**relax.update, **change}))}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"init": {"lost": init.start}}, "unknown-component"),
        ({"init": {"queued": init.idx}}, "wrong-kind"),
        ({"init": {"queued": self.done}}, "wrong-side"),
        (relaxing(dist=where(other.dist, edge.weight, 0)), "wrong-kind"),
        (taking(done=init.done), "wrong-side"),
        (taking(done=self.done | other.loop), "unknown-name"),
        ({"conclude": {**dijkstra.conclude, "dist": self.dist}}, "set-not-once"),
        ({"hidden": (*dijkstra.hidden, Float("far"))}, "set-not-once"),
        ({"hints": {**dijkstra.hints, "d": Bool("done")}}, "wrong-kind"),
        ({"phases": (replace(take, select=minimum(edge.cost)), relax)}, "unknown-name"),
    ],
)
def test_each_problem_has_a_name(change, name):
    assert name in [problem.name for problem in problems(replace(dijkstra, **change))]
