"""Forced attention and linear probes, on networks whose mechanism is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.measures.causal import accuracy, forced
from mechgap.measures.data import long_traces, make_data
from mechgap.measures.probes import probes
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY


@pytest.fixture(scope="module", params=["bfs", "bellman_ford"])
def compiled(request) -> Compiled:
    program = LIBRARY[request.param]
    return compile_program(program, TARGETS["general"], Domain.regular(program, 16))


@pytest.fixture(scope="module")
def data(compiled):
    return make_data("long", long_traces(compiled.program.task))


def test_a_compiled_network_loses_nothing_with_the_true_attention(compiled, data):
    found = forced(compiled.network, data)
    assert found["own"] == found[compiled.program.name] == 1
    assert found["uniform"] < 0.9
    assert found["self"] < 0.5


def test_attention_of_an_untrained_network_breaks_it(compiled, data):
    untrained = Network.initial(data.batch.task, jax.random.key(0), compiled.network.config)
    attention = run(untrained, data.batch).attention
    assert accuracy(compiled.network, data, attention) < 0.9


def test_heads_are_averaged_for_a_network_with_one(compiled, data):
    two = jnp.repeat(data.truths[0].attention, 2, axis=2)
    assert accuracy(compiled.network, data, two) == 1


def test_the_state_of_a_compiled_network_can_be_read(compiled, data):
    found = probes(data.batch, run(compiled.network, data.batch))
    for name, probe in found.items():
        if name != "hops":  # the program keeps no count of steps
            assert probe.accuracy > 0.99, name
            assert probe.decoded == 1, name
    mask = "reach_h" if "reach_h" in found else "msk"
    assert found[mask].r2 > 0.99


def test_without_a_state_there_is_nothing_to_read(compiled, data):
    trace = run(compiled.network, data.batch)
    blank = run(compiled.network, data.batch, replace={"hidden": 0 * trace.hidden})
    for name, probe in probes(data.batch, blank).items():
        assert probe.r2 < 0.5, name  # where it lies and whether it is the source is known anyway


def test_graphs_with_nothing_to_predict_have_no_probes(compiled):
    from mechgap import from_graphs

    batch = from_graphs(compiled.program.task, np.zeros((1, 1)), 0)
    assert probes(batch, run(compiled.network, batch)) == {}
