"""Forced attention and linear probes, on networks whose mechanism is known."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.measures.causal import Foil, accuracy_under, causal
from mechgap.measures.data import long_traces, make_data
from mechgap.measures.probes import probes
from mechgap.network.config import NetworkConfig
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
    found = causal(compiled.network, data)
    forced = {each.mechanism: each for each in found.mechanisms}
    mine = forced[compiled.program.name]
    assert found.own == mine.exact == 1
    assert set(mine.rows.values()) == {1.0}
    assert found.tempered == {"hardened": 1, "sharper": 1, "softer": 1}  # its logits are far apart
    assert found.fixed["uniform"] < 0.9
    assert found.fixed["self"] < 0.5
    assert found.floor < 0.5


def test_a_compiled_network_uses_every_part_of_its_program(compiled, data):
    """Made to attend to another reached neighbour it names that one; to an unreached one, nobody
    is reached by it."""
    (mine,) = (m for m in causal(compiled.network, data).mechanisms
               if m.mechanism == compiled.program.name)  # fmt: skip
    key, mask = mine.foils["key"], mine.foils["mask"]
    assert key.right_under_exact == mask.right_under_exact == 1
    assert (key.verdict, key.named) == ("used", 1)
    assert key.nodes > 20
    assert mask.nodes > 20
    if compiled.program.name == "bfs":  # Bellman-Ford selects again, and recovers from a mask
        assert mask.verdict == "used"


def test_a_part_that_a_network_does_not_read_is_idle(data):
    """An untrained network answers what it answers, whoever is attended to."""
    untrained = Network.initial(data.batch.task, jax.random.key(0), NetworkConfig(hidden_size=8))
    still = eqx.tree_at(lambda n: n.processor.value, untrained, replace_fn=_nothing)
    for forced in causal(still, data).mechanisms:
        for foil in forced.foils.values():
            assert foil.right == foil.right_under_exact == foil.right_under_any
            assert foil.verdict == "cannot tell"
    assert Foil(0.9, 10, 0.89, 0.9, 0.1, 0.0).verdict == "idle"
    assert Foil(0.9, 10, 0.70, 0.9, 0.1, 0.0).verdict == "partly used"
    assert Foil(0.9, 10, 0.30, 0.9, 0.1, 0.0).verdict == "used"
    assert Foil(0.9, 0, math.nan, math.nan, math.nan, math.nan).verdict == "cannot tell"


def _nothing(module):
    return jax.tree.map(jnp.zeros_like, module)


def test_the_floor_is_what_random_attention_cannot_change(compiled, data):
    """The source is right whatever it attends to."""
    found = causal(compiled.network, data)
    assert 1 / data.batch.nodes - 1e-6 <= found.floor <= min(*found.fixed.values(), found.own)


def test_attention_of_an_untrained_network_breaks_it(compiled, data):
    untrained = Network.initial(data.batch.task, jax.random.key(0), compiled.network.config)
    attention = run(untrained, data.batch).attention
    assert accuracy_under(compiled.network, data, attention) < 0.9


def test_heads_are_averaged_for_a_network_with_one(compiled, data):
    two = jnp.repeat(data.truths[0].attention, 2, axis=2)
    assert accuracy_under(compiled.network, data, two) == 1


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
