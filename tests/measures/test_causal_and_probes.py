"""Forced attention and linear probes, on networks whose mechanism is known."""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.measures.causal import Causal, Foil, accuracy_under, causal
from mechgap.measures.data import long_traces, make_data
from mechgap.measures.probes import probes
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY


@pytest.fixture(scope="module", params=["bfs", "bellman_ford"])
def compiled(request) -> Compiled:
    program = LIBRARY[request.param]
    # The longest ways of these graphs are longer than those of CLRS's.
    domain = replace(Domain.regular(program, 16), largest_value=8.0)
    return compile_program(program, TARGETS["general"], domain)


@pytest.fixture(scope="module")
def data(compiled):
    return make_data("long", long_traces(compiled.program.task))


@pytest.fixture(scope="module")
def found(compiled, data) -> Causal:
    return causal(compiled.network, data)


def test_a_compiled_network_loses_nothing_with_the_true_attention(compiled, found):
    mine = found.mechanisms[compiled.program.name]
    assert found.own == mine.exact == 1
    assert set(mine.rows.values()) == {1.0}
    assert found.tempered == {"hardened": 1, "sharper": 1, "softer": 1}  # its logits are far apart
    assert found.fixed["uniform"] < 0.9
    assert found.fixed["self"] < 0.5
    assert found.floor < 0.5


CONTROLS = [("bfs", "general"), ("bellman_ford", "general"), ("bfs_parent", "general"),
            ("dfs", "stock"), ("topological_sort", "stock"), ("dijkstra", "full"),
            ("mst_prim", "full")]  # fmt: skip


@pytest.mark.parametrize(("name", "target"), CONTROLS)
def test_a_compiled_network_uses_every_part_of_its_program(name, target):
    """The positive control: made to attend to a foil, it predicts what the program would."""
    program = LIBRARY[name]
    compiled = compile_program(program, TARGETS[target], Domain.regular(program, 12))
    data = make_data("long", long_traces(program.task, 12, 8), [program])
    (mine,) = causal(compiled.network, data).mechanisms.values()
    parts = {(foil.phase, foil.part) for foil in mine.foils}
    assert {phase for phase, _ in parts} == set(range(program.selections))
    assert {part for _, part in parts} >= (
        {"key", "mask"} if name != "topological_sort" else {"mask"}
    )
    for foil in mine.foils:
        assert foil.cases > 0
        assert foil.right_under_exact == 1
        assert foil.verdict == "used"
        # A mask's foil leads to states that no run of the program has: nothing is promised there.
        assert foil.follows == 1 or (name == "bellman_ford" and foil.part == "mask")


def test_a_part_that_a_network_does_not_read_is_idle(data):
    """An untrained network answers what it answers, whoever is attended to."""
    untrained = Network.initial(data.batch.task, jax.random.key(0), NetworkConfig(hidden_size=8))
    still = eqx.tree_at(lambda n: n.processor.value, untrained, replace_fn=_nothing)
    for forced in causal(still, data).mechanisms.values():
        for foil in forced.foils:
            assert foil.right == foil.right_under_exact == foil.right_under_any
            assert foil.verdict == "cannot tell"


@pytest.mark.parametrize(
    ("right", "any_", "verdict"),
    [(0.89, 0.1, "idle"), (0.7, 0.1, "partly used"), (0.3, 0.1, "used"), (0.3, 0.87, "cannot tell"),
     (math.nan, 0.1, "cannot tell")],
)  # fmt: skip
def test_a_verdict_is_what_the_foil_costs_of_what_could_be_lost(right, any_, verdict):
    exact = 0.9 if right == right else math.nan
    assert Foil("key", 0, 10, right, exact, any_, 0.0, 0.5, 0.0).verdict == verdict


def _nothing(module):
    return jax.tree.map(jnp.zeros_like, module)


def test_the_floor_is_what_random_attention_cannot_change(found, data):
    """The source is right whatever it attends to."""
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
