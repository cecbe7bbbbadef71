"""A network beside one step of a program from the network's own state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap import calls
from mechgap.measures.data import make_data
from mechgap.measures.internal import internal_gap
from mechgap.measures.own_state import headline_from_own_state, own_truth
from mechgap.measures.snapshot import see_on
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.patch import Patch
from mechgap.network.trace import run
from mechgap.programs.interpreter import interpret, selections_from
from mechgap.programs.library import LIBRARY
from mechgap.tasks.sampling import sample
from seen_programs import graphs_of


@pytest.mark.parametrize("name", LIBRARY)
def test_from_its_own_states_a_program_selects_as_it_did(name):
    """Told its own hints, whatever else it holds it finds again."""
    program = LIBRARY[name]
    batch = graphs_of(program, 3, 6, 7)
    inputs = jax.tree.map(np.asarray, batch.inputs)
    ran = interpret(program, inputs, batch.steps)
    told = {c.name: ran.states[c.name][:-1] for c in program.hints.values()}
    for attended in (None, ran.senders):
        again = selections_from(program, inputs, told, attended)
        for part in ("senders", "acceptable", "updated"):
            np.testing.assert_array_equal(getattr(again, part), getattr(ran, part), err_msg=part)


@pytest.fixture(scope="module")
def dijkstra():
    """Compiled, with graphs and their ground truth."""
    compiled = calls.compile("dijkstra", "full", 9)
    batch = sample("dijkstra", jax.random.key(2), batch_size=6, nodes=9, random_pos=False).trim()
    return compiled.network, make_data("test", batch, [compiled.program])


def test_a_compiled_network_agrees_from_its_own_state(dijkstra):
    network, data = dijkstra
    (truth,) = data.truths
    trace = run(network, data.batch)
    own = own_truth(truth.program, data.batch, trace.hints, trace.attention)
    counted = np.repeat(np.asarray(data.valid), truth.phases, axis=0)
    assert (np.asarray(own.senders) == np.asarray(truth.senders))[counted].all()
    seen = see_on(network, data).from_own_state["dijkstra"]
    assert seen.agreement == 1
    assert seen.by_phase == (1, 1)
    assert seen.misplaced == pytest.approx(0, abs=1e-6)


def test_who_goes_another_way_once_is_not_wrong_ever_after(dijkstra):
    """Made to take the queue's last node once, it goes on as the program does from there."""
    network, data = dijkstra
    (truth,) = data.truths
    time = 2 * 2  # the first of two message-passing steps of the third hint
    rows = jnp.zeros(truth.senders.shape, bool).at[time].set(True)
    given = jax.nn.one_hot(truth.foils.key, data.batch.nodes)[:, :, None]
    trace = run(network, data.batch, patch=Patch(rows, given, jnp.ones(len(rows))))
    by_trace = internal_gap(trace.attention, truth, data)
    own = headline_from_own_state(data, truth, trace)
    assert by_trace.agreement < 0.9
    # The one step in which it was made to is all that is wrong.
    took, relaxed = np.nanmean(own.by_phase, axis=0)
    assert relaxed == 1
    assert 0.9 < took < 1


def test_networks_without_hints_have_no_state_to_compare_from():
    config = NetworkConfig(hidden_size=8, hint_mode="none")
    network = Network.initial("bfs", jax.random.key(0), config)
    batch = sample("bfs", jax.random.key(1), batch_size=3, nodes=5).trim()
    assert see_on(network, make_data("test", batch)).from_own_state == {}
