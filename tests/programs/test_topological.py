"""Topological sort as a program with phases: what it means is what CLRS traces."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mechgap.programs.components import Kind
from mechgap.programs.conclusions import linked
from mechgap.programs.evaluation import pointed
from mechgap.programs.expressions import other, self, where
from mechgap.programs.interpreter import interpret
from mechgap.programs.topological import topological_sort, topological_sort_parent
from mechgap.programs.validate import problems
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official


def assert_traced(batch, program=topological_sort):
    """The interpreter has every claimed hint of every step that counts, and the outputs."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    positions, lengths = inputs["pos"].astype(float), np.asarray(batch.lengths)
    run = interpret(program, inputs, steps=batch.steps)
    counted = (np.arange(batch.max_hints)[:, None] < lengths)[..., None]
    last = np.maximum(1, lengths - 1), np.arange(batch.size)

    def read(component):
        state = run.states[component.name]
        return pointed(state, positions) if component.kind is Kind.POINTER else state

    for name, component in topological_sort.hints.items():
        truth = np.asarray(batch.hints[name])
        truth = truth.argmax(-1) if component.kind is Kind.CLASS else truth
        if name not in topological_sort.unclaimed:
            assert not ((read(component)[: len(truth)] != truth) & counted).any(), name
    for name, component in topological_sort.output.items():
        assert np.array_equal(read(component)[last], np.asarray(batch.outputs[name])), name
    assert not run.shared.any()
    return run


MECHANISMS = [topological_sort, topological_sort_parent]


@pytest.mark.parametrize("split", ["validation", "test"])
@pytest.mark.parametrize("program", MECHANISMS, ids=lambda program: program.name)
def test_agrees_with_the_official_traces(program, split):
    assert_traced(official("topological_sort", split), program)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9).flatmap(lambda n: arrays(bool, (n, n))), st.integers(0, 2**32 - 1))
def test_agrees_with_clrs_on_any_graph_without_cycles(edges, seed):
    order = np.random.default_rng(seed).permutation(len(edges))
    acyclic = np.triu(edges, 1)[np.ix_(order, order)]
    for program in MECHANISMS:
        assert_traced(from_graphs("topological_sort", acyclic.astype(float)), program)


def test_v_is_out_of_reach():
    """Two graphs in which two isolated nodes see the same, and v is one of them, then the other."""
    positions = np.arange(7) / 8
    starts, finishes = np.zeros((7, 7)), np.zeros((6, 6))
    starts[0, 2] = finishes[0, 2] = finishes[2, 3] = finishes[3, 4] = 1
    traces = [
        from_graphs("topological_sort", A, pos=positions[: len(A)]) for A in (starts, finishes)
    ]
    isolated = [1, 5]
    for name in traces[0].hints:
        one, other_one = (np.asarray(trace.hints[name])[:5, 0, isolated] for trace in traces)
        assert np.array_equal(one, other_one), name
    assert [int(trace.hints["v"][5, 0].argmax()) for trace in traces] == isolated


enter = topological_sort.phases[2]


def entering(**change):
    return {"phases": (*topological_sort.phases[:2], replace(enter, **change))}


def concluding(**change):
    return {"conclude": {**topological_sort.conclude, **change}}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (entering(otherwise=where(self.idx, self.topo, self.s_prev)), "wrong-kind"),
        (entering(otherwise=where(self.black, self.topo, self.head)), "wrong-kind"),
        (entering(otherwise=where(self.black, self.topo, self.idx + 1)), "wrong-kind"),
        (concluding(topo=linked(self.finished, self.seen, self.idx)), "wrong-kind"),
        (concluding(topo=linked(self.finished, other.tail, self.idx)), "wrong-side"),
        (concluding(head=linked(self.finished, self.tail, self.idx)), "wrong-kind"),
    ],
)
def test_each_problem_has_a_name(change, name):
    assert name in [p.name for p in problems(replace(topological_sort, **change))]
