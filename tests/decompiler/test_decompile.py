"""From networks back to programs: compiled ones come back, and what has no program gets none."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mechgap
from mechgap.calls import compile, decompile
from mechgap.decompiler.decompile import decompile as decompile_network
from mechgap.decompiler.explanation import Explanation
from mechgap.decompiler.graphs import Graphs, graphs_for
from mechgap.decompiler.watched import watched
from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.expressions import other
from mechgap.programs.interpreter import interpret
from mechgap.programs.library import LIBRARY
from mechgap.programs.phases import minimum
from mechgap.tasks.specs import Stage, get_task
from mechgap.typed import plain, typed

HIDDEN = 32


@pytest.fixture(scope="module")
def graphs():
    return graphs_for(get_task("bfs"), 12, 20)


@pytest.fixture(scope="module")
def compiled():
    return compile("bfs", "general", hidden_size=HIDDEN).network


@pytest.fixture(scope="module")
def found(compiled, graphs):
    return decompile(compiled, graphs)


def test_a_compiled_network_runs_its_program(found):
    told = found.explanation
    assert told.claim == "program"
    assert told.in_short == "runs bfs"
    assert told.phases[0].rule == "select=minimum(other.idx), mask=other.visit & ~self.visit"
    assert {*told.phases[0].agreement.values()} == {1.0}
    for forced in told.forced.values():
        assert forced.own == forced.rule == forced.mechanisms["bfs"] == 1.0
        assert forced.uniform < 0.9
    assert told.answers == {"held out": 1.0, "test": 1.0}
    used = {part.part: part.verdict for part in told.parts}
    assert used
    assert set(used.values()) == {"used"}


def test_the_program_runs_and_compiles_to_the_same_behaviour(found, graphs):
    assert found.program is not None
    batch = graphs.test
    inputs = jax.tree.map(np.asarray, batch.inputs)
    ours, truth = (interpret(p, inputs, batch.steps) for p in (found.program, LIBRARY["bfs"]))
    assert (ours.senders == truth.senders).all()
    again = compile(found.program, "general", hidden_size=HIDDEN).network
    scores = mechgap.output_scores(batch, mechgap.run(again, batch).outputs)
    assert float(scores["score"]) == 1.0


def test_what_was_found_is_data(found):
    text = json.dumps(plain(found.explanation))
    assert plain(typed(Explanation, json.loads(text))) == plain(found.explanation)
    assert json.loads(text)["verdict"].startswith("runs bfs: select=minimum(other.idx)")


def test_an_untrained_network_gets_no_program(graphs):
    config = NetworkConfig(hidden_size=HIDDEN)
    for seed in range(2):
        network = Network.initial("bfs", jax.random.key(seed), config)
        assert decompile(network, graphs).explanation.claim in {"none", "refused"}


def test_shuffled_attention_gets_no_program(compiled, graphs):
    def shuffled(batch, attention):
        """Every row's values, on others in sight."""
        rng = np.random.default_rng(0)
        adjacent = np.asarray(batch.inputs["adj"]) > 0
        result = np.zeros_like(attention)
        oneself = np.eye(batch.nodes, dtype=bool)
        for graph, sees in enumerate(adjacent | adjacent.swapaxes(1, 2) | oneself):
            for node, row in enumerate(sees):
                seen = np.flatnonzero(row)
                for time in range(len(attention)):
                    given = attention[time, graph, :, node, rng.permutation(seen)]
                    result[time, graph, :, node, seen] = given
        return result

    told = decompile_network(compiled, graphs, in_place=shuffled).explanation
    assert told.claim == "none"
    assert max(told.phases[0].agreement.values()) < 0.7
    assert told.verdict.startswith("no program of up to")


@pytest.fixture(scope="module")
def queues():
    return graphs_for(get_task("dijkstra"), 8, 10)


def test_out_of_step_with_the_trace(queues):
    """A queue in another order takes another way than the trace, but finds the same paths: from its
    own states the rules tell all that it does, and they are the ones that were compiled."""
    dijkstra = LIBRARY["dijkstra"]
    taking, relaxing = dijkstra.phases
    late = minimum(other.dist + 0.3 * other.idx)
    program = replace(dijkstra, name="late", phases=(replace(taking, select=late), relaxing))
    told = decompile(compile(program, "full", 10).network, queues).explanation
    assert told.in_short == "runs a program of its own, out of step"
    took, relaxed = told.phases
    assert took.rule == f"select={late}, mask=other.queued"
    assert took.from_own_state is not None
    assert relaxed.from_own_state is not None
    assert min(took.agreement.values()) < 0.8
    assert min(took.from_own_state.agreement.values()) == 1.0
    assert min(relaxed.from_own_state.agreement.values()) > 0.99
    assert "from its own state (from the true trace's, with which it is out of step" in told.verdict


def test_slips_of_one_phase_are_no_other_program(queues):
    """What a later phase reads is whom the rules select, not where the network slipped."""

    def slipping(batch, attention):
        """One in twenty looks for the next node in the wrong place."""
        rng = np.random.default_rng(0)
        slips = rng.random(attention.shape[:-1]) < 0.05
        slips[1::2] = False
        elsewhere = np.eye(batch.nodes)[rng.integers(batch.nodes, size=slips.shape)]
        return np.where(slips[..., None], elsewhere, attention)

    network = compile("dijkstra", "full", 10).network
    told = decompile_network(network, queues, in_place=slipping).explanation
    assert told.in_short == "runs dijkstra"
    assert 0.9 < told.phases[0].agreement["test"] < 1
    assert all(forced.rule == forced.own == 1 for forced in told.forced.values())


def test_attention_along_pointers_that_are_fed_back_is_seen():
    """In topological sort a finished node looks at the next in the list, mostly no neighbour."""
    network = compile("topological_sort", "general", 8).network
    batch = graphs_for(network.task, 8, 8).fit
    attention = np.asarray(run(network, batch).attention).mean(2)
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    senders = interpret(LIBRARY["topological_sort"], inputs, batch.steps).senders
    beyond = 0
    for phase, seen in enumerate(watched(batch, attention)):
        expected = senders[3 * seen.scenes.step + phase, seen.scenes.graph]
        assert np.array_equal(seen.strongest, expected)
        in_sight = np.take_along_axis(seen.scenes.support, expected[..., None], -1)
        beyond += int((~in_sight).sum())
    assert beyond > 0


def test_every_head_is_told(graphs):
    config = NetworkConfig(hidden_size=HIDDEN, nb_heads=2)
    told = decompile(Network.initial("bfs", jax.random.key(0), config), graphs).explanation
    assert {*told.heads} == {"0", "1"}
    assert told.heads["0"][0].rule


def test_too_few_graphs(graphs):
    with pytest.raises(InvalidInput, match="at least 8 graphs; got 3"):
        Graphs(graphs.fit[jnp.arange(3)], graphs.held_out, graphs.test)


def test_a_trace_that_says_nothing_about_nodes(compiled, graphs):
    task = graphs.fit.task
    silent = replace(task, features=tuple(f for f in task.features if f.stage is not Stage.HINT))
    batch = replace(graphs.fit, task=silent)
    attention = np.asarray(mechgap.run(compiled, graphs.fit).attention).mean(2)
    with pytest.raises(InvalidInput, match="no hints of nodes"):
        watched(batch, attention)
