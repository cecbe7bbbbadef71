"""Programs with phases: what depth-first search means, and every reason why one makes no sense."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mechgap.programs.components import Bool, Class, Float, Kind, Pointer
from mechgap.programs.conclusions import becomes, first, grows
from mechgap.programs.depth_first import dfs, dfs_parent, pi
from mechgap.programs.evaluation import pointed
from mechgap.programs.expressions import edge, equal, init, other, self, where
from mechgap.programs.interpreter import interpret
from mechgap.programs.validate import problems
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official
from mechgap.tasks.sampling import sample

CLAIMED = [name for name in dfs.hints if name not in dfs.unclaimed]


def assert_traced(batch, program=dfs):
    """The interpreter has every claimed hint of every step, and the output."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    run = interpret(program, inputs, batch.steps)
    for name in CLAIMED:
        component, truth = dfs.hints[name], np.asarray(batch.hints[name])
        state = run.states[component.name][: len(truth)]
        if component.kind is Kind.POINTER:
            state = pointed(state, inputs["pos"].astype(float))
        elif component.kind is Kind.CLASS:
            truth = truth.argmax(-1)
        elif component.kind is Kind.TOTAL:
            assert np.allclose(state, truth[..., None], atol=1e-6), name
            continue
        assert np.array_equal(state, truth), name
    last = pointed(run.states["pi"][-1], inputs["pos"].astype(float))
    assert np.array_equal(last, np.asarray(batch.outputs["pi"]))
    return run


@pytest.mark.parametrize("program", [dfs, dfs_parent], ids=lambda p: p.name)
@pytest.mark.parametrize("split", ["validation", "test"])
def test_dfs_agrees_with_the_official_traces(program, split):
    run = assert_traced(official("dfs", split), program)
    assert not run.shared.any()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 9).flatmap(lambda n: arrays(bool, (n, n))), st.sampled_from([dfs, dfs_parent])
)
def test_dfs_agrees_with_clrs_on_any_graph(edges, program):
    run = assert_traced(from_graphs("dfs", edges.astype(float)), program)
    assert not run.shared.any()  # what the compiler's constructions rest on: one node at a time


def test_in_dfs_parent_nobody_looks_for_itself():
    """Whoever attends to itself points to itself, or is the root that has just finished."""
    batch = sample("dfs", jax.random.key(0), batch_size=16, nodes=12)
    run = assert_traced(batch, dfs_parent)
    pos = np.asarray(batch.inputs["pos"]).astype(float)
    parents = np.repeat(pointed(run.states["pi"], pos)[:-1], 3, axis=0)
    own = np.arange(batch.nodes)
    assert (
        parents[run.senders == own] == np.broadcast_to(own, parents.shape)[run.senders == own]
    ).all()


def test_a_signal_is_held_until_it_was_read_for_the_last_time():
    held = {name: "".join("-*"[k] for k in dfs.held_after(name)) for name in dfs.set_by_phases}
    by_return = {"active": "**-", "discover": "***"}
    by_choose = {"found": "-*-", "target": "-*-", "finished": "-**"}
    by_enter = {"pi": "***", "entered": "--*", "here": "--*", "rooted": "--*"}
    assert held == by_return | by_choose | by_enter


def test_attention_follows_edges_or_the_parent():
    batch = sample("dfs", jax.random.key(0), batch_size=16, nodes=12, random_pos=True)
    run = assert_traced(batch)
    adjacent = np.asarray(batch.inputs["adj"]) > 0
    allowed = adjacent | adjacent.swapaxes(-1, -2)
    assert np.take_along_axis(allowed[None], run.senders[..., None], axis=-1).all()
    assert run.senders.shape == (3 * batch.steps, 16, 12)


def test_d_and_f_are_within_reach_of_a_node_that_counts():
    """They follow from the hint's number and the node's depth: why they are not out of reach."""
    batch = sample("dfs", jax.random.key(1), batch_size=16, nodes=9, random_pos=False)
    parents = np.asarray(batch.outputs["pi"])
    for graph, parent in enumerate(parents):
        for node in range(9):
            depth, at = 0, node
            while parent[at] != at:
                depth, at = depth + 1, parent[at]
            for name, own in (("d", 1), ("f", 2)):
                seen = np.asarray(batch.hints[name])[:, graph, node]
                step = int(np.argmax(seen > 0))
                ticks = (2 * (step - own) - depth) / 3 + own
                assert seen[step] == pytest.approx(0.01 * ticks)


def test_v_is_out_of_reach():
    """Two graphs in which two isolated nodes see the same, and v is one of them, then the other."""
    positions = np.arange(6) / 8
    starts, finishes = np.zeros((6, 6)), np.zeros((5, 5))
    starts[0, 2] = finishes[0, 2] = finishes[2, 3] = 1
    traces = [from_graphs("dfs", A, pos=positions[: len(A)]) for A in (starts, finishes)]
    isolated = [1, 4]
    for name in set(traces[0].hints) - {"time"}:  # which no isolated node can read
        one, other_one = (np.asarray(trace.hints[name])[:6, 0, isolated] for trace in traces)
        assert np.array_equal(one, other_one), name
    assert [int(trace.hints["v"][6, 0].argmax()) for trace in traces] == isolated


choose = dfs.phases[1]


def changed(i, **change):
    phases = list(dfs.phases)
    phases[i] = replace(phases[i], **change)
    return {"phases": tuple(phases)}


def concluding(**change):
    return {"conclude": {**dfs.conclude, **change}}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"task": "dsf"}, "unknown-task"),
        ({"inputs": {"idx": "pos", "link": "adjacency"}}, "unknown-input"),
        ({"inputs": {"link": "adj"}}, "no-position"),
        ({"hidden": (*dfs.hidden, Class("shade", "grey", "dark"))}, "name-clash"),
        ({"hidden": (*dfs.hidden, Bool("idle"))}, "set-not-once"),
        ({"hidden": (*dfs.hidden, Float("far"))}, "set-not-once"),
        (concluding(active=first(self.white)), "set-not-once"),
        (concluding(color=first(self.white)), "wrong-kind"),
        (concluding(time=first(self.white)), "wrong-kind"),
        (concluding(color=becomes(red=self.finished)), "unknown-class"),
        (concluding(u=first(other.here)), "wrong-side"),
        (concluding(u=first(self.idx)), "wrong-kind"),
        (concluding(time=grows(0.01, self.pi)), "wrong-kind"),
        (concluding(s_prev=where(self.idx, self.pi, self.idx)), "wrong-kind"),
        (changed(1, mask=self.active & edge.link & other.blue), "unknown-name"),
        (changed(1, mask=self.active & edge.weight & other.white), "unknown-name"),
        (changed(1, mask=self.active & init.white), "wrong-side"),
        (changed(1, mask=self.active & other.time), "wrong-side"),
        (changed(1, mask=other.idx), "wrong-kind"),
        (changed(1, mask=other.white & other.pi), "wrong-kind"),
        (changed(1, otherwise=self.active), "wrong-kind"),
        (changed(0, mask=other.finished & equal(other.white, self.idx)), "wrong-kind"),
        (changed(1, update={**choose.update, "found": other.idx}), "wrong-kind"),
        (changed(1, update={**choose.update, "lost": self.active}), "unknown-component"),
        ({"hints": {**dfs.hints, "color": pi}}, "wrong-kind"),
        ({"unclaimed": {**dfs.unclaimed, "w": "nobody asks"}}, "unknown-hint"),
        ({"output": {"pi": Pointer("parent")}}, "unknown-component"),
    ],
)
def test_each_problem_has_a_name(change, name):
    assert name in [problem.name for problem in problems(replace(dfs, **change))]
