"""What a verification says, and what it can be about: verdicts are never empty."""

from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest

from attack import attack_random
from changed_programs import changed
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import Verdict, fresh_graphs, verify
from mechgap.lang import (
    Bool,
    Float,
    GraphProgram,
    Pointer,
    edge,
    init,
    maximum,
    minimum,
    other,
    self,
)
from mechgap.programs.interpreter import execution_batch
from mechgap.programs.library import bellman_ford, bfs
from mechgap.tasks.graphs import from_graphs


def compiled(program, target="general", nodes=16):
    return compile_program(program, TARGETS[target], Domain.regular(program, nodes))


def test_exact_is_about_some_graphs():
    found = verify(compiled(bfs), fresh_graphs(bfs, 16, 8, 0))
    assert found.verdict is Verdict.EXACT
    assert found.sentence == "exact on 8 graphs of 16 nodes, all inside the certificate"
    assert (found.inside_certificate, found.outside_certificate) == (8, 0)


def test_with_nothing_inside_nothing_is_promised():
    """Also where the network happens to be right on every graph."""
    small = compiled(bfs, nodes=8)
    found = verify(small, fresh_graphs(bfs, 16, 8, 0))
    assert found.verdict is Verdict.NOTHING_INSIDE
    assert not found.exact
    assert found.outside_reasons["more than 8 nodes"] == 8
    assert found.sentence.startswith("nothing is promised here: all 8 graphs of 16 nodes lie out")
    assert "more than 8 nodes (8)" in found.sentence


def test_some_graphs_can_lie_outside():
    weights = np.array([[0, 0.5, 0.5], [0.5, 0, 0.2], [0.5, 0.2, 0]])
    far = 8 * weights
    found = verify(compiled(bellman_ford), from_graphs("bellman_ford", np.stack([weights, far]), 0))
    assert found.verdict is Verdict.EXACT
    assert "the 1 of 2 graphs of 3 nodes that lie inside the certificate; of 1 outside" in (
        found.sentence
    )


def test_a_network_that_is_not_the_program():
    made = compiled(bfs)
    blind = eqx.tree_at(lambda n: n.processor.attention, made.network, replace_fn=lambda a: 0 * a)
    found = verify(replace(made, network=blind), fresh_graphs(bfs, 16, 8, 0))
    assert found.verdict is Verdict.NETWORK_IS_NOT_PROGRAM
    assert found.sentence.startswith("NOT exact: the network misses ")
    assert found.missed_graphs_inside > 0
    assert found.unlike_trace_inside == 0


def test_a_program_that_is_not_the_tasks_algorithm():
    """Ties to the highest neighbour: exact as a network of the program, and not CLRS's search."""
    other_ties = changed(bfs, select=maximum(other.idx))
    found = verify(compiled(other_ties), fresh_graphs(other_ties, 16, 8, 0))
    assert found.verdict is Verdict.PROGRAM_IS_NOT_TASK
    assert found.missed_graphs_inside == 0
    assert found.unlike_trace_inside > 0
    assert found.sentence.startswith("the network is the program, but the program is not the task")


visit, chosen, root, count = Bool("visit"), Bool("chosen"), Pointer("root"), Float("count")


def own(name, hidden, **parts):
    return GraphProgram(
        name=name, task="bfs", inputs={"idx": "pos", "start": "s"}, hidden=hidden,
        hints={f"{c.name}_h": c for c in hidden}, output={f"{c.name}_o": c for c in hidden},
        **parts,
    )  # fmt: skip


def on_path(program, nodes=16):
    path = np.eye(nodes, k=1) + np.eye(nodes, k=-1)
    inputs = from_graphs("bfs", path, 0).inputs
    return execution_batch(program, {name: np.asarray(value) for name, value in inputs.items()})


def test_pointers_that_lead_further_than_edges_are_outside():
    """Fed back, they widen what the network attends to; the program sees neighbours only."""
    spreading = own(
        "spreading", (root,), init=dict(root=init.idx), steps=4,
        select=minimum(other.root + 0.01 * other.idx), update=dict(root=other.root),
    )  # fmt: skip
    found = verify(compiled(spreading), on_path(spreading))
    assert found.missed_graphs_inside == 0
    assert found.verdict is Verdict.NOTHING_INSIDE
    (why,) = found.outside_reasons
    assert why == "a pointer that is fed back lets a node select beyond its neighbours"


def test_numbers_that_could_fall_below_zero_are_refused():
    sinking = own(
        "sinking", (count,), init=dict(count=0), steps=3,
        select=minimum(other.idx), update=dict(count=self.count - 1),
    )  # fmt: skip
    with pytest.raises(ValueError, match="unknown-number: 'count' must not fall below 0"):
        compiled(sinking)


def test_numbers_above_the_largest_are_outside():
    rising = own(
        "rising", (count,), init=dict(count=0), steps=20,
        select=minimum(other.idx), update=dict(count=self.count + 1),
    )  # fmt: skip
    assert verify(compiled(rising), on_path(rising)).exact  # all that its steps can add is foreseen
    domain = replace(Domain.regular(rising, 16), largest_value=16.0)
    found = verify(compile_program(rising, TARGETS["stock"], domain), on_path(rising))
    assert found.verdict is Verdict.NOTHING_INSIDE
    assert "'count' below 0 or above 16" in found.sentence


def test_a_mask_may_ask_for_a_senders_input():
    """Only the source's own neighbours are ever reached."""
    near = own(
        "near", (visit,), init=dict(visit=init.start), select=minimum(other.idx),
        mask=other.start & other.visit & ~self.visit, update=dict(visit=self.visit | other.visit),
    )  # fmt: skip
    for target in ("general", "stock", "paper"):
        batch = fresh_graphs(near, 16, 32, 0)
        found = verify(compiled(near, target), batch)
        assert found.exact, found.sentence


def test_an_update_may_ask_for_the_loop():
    looping = own(
        "looping", (chosen,), init=dict(chosen=0), select=minimum(other.idx),
        update=dict(chosen=edge.loop),
    )  # fmt: skip
    for target in ("general", "stock", "stock-ln", "paper"):
        found = verify(compiled(looping, target), fresh_graphs(looping, 16, 16, 0))
        assert found.exact, found.sentence


def test_what_cannot_be_kept_by_a_node_that_sees_itself_is_refused():
    """An isolated source would count itself: nothing tells it that nobody was selected."""
    counting = own(
        "counting", (visit, count), init=dict(visit=init.start), steps=5,
        select=minimum(other.count + 0.01 * other.idx), mask=~edge.loop,
        update=dict(visit=init.start, count=self.count + 0.01 * other.visit),
    )  # fmt: skip
    with pytest.raises(ValueError, match="cannot-keep: 'count = "):
        compiled(counting)


@pytest.mark.parametrize("seed", [0, 2, 3, 27])
def test_random_programs_are_exact_inside_their_certificates(seed):
    """A few of those that `benchmarks/attack.py --programs` tries, and that compile."""
    row = attack_random(seed)
    assert row["targets"] == (["full"] if seed == 0 else ["paper", "general", "stock", "stock-ln"])
    assert row["inside"] > 0
    assert row["missed_inside"] == 0
