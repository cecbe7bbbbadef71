"""Depth-first search with attention to all nodes, compiled: exact on all hints."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from directed_graphs import directed
from dm_clrs_peer import peer_scores
from mechgap.compiler.certificate import Certificate
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, Target
from mechgap.compiler.verify import fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.network.trace import run
from mechgap.programs.depth_first import clock, dfs_full
from mechgap.programs.expressions import edge, other, self, where
from mechgap.programs.interpreter import Execution
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official
from mechgap.tasks.sampling import make_batch
from mechgap.tasks.specs import get_task


def compiled(nodes=64, target=TARGETS["full"], hidden_size=72, **domain):
    inputs = replace(Domain.regular(dfs_full, nodes), **domain)
    return compile_program(dfs_full, target, inputs, hidden_size=hidden_size)


def assert_exact(found):
    assert found.outputs == {"pi": 1.0}
    assert found.hints == dict.fromkeys((f.name for f in get_task("dfs").hints), 1.0)
    assert found.missed_graphs_inside == found.missed_graphs_outside == 0, found.first
    assert found.outside_certificate == 0
    assert not found.unclaimed


@pytest.mark.parametrize(("split", "nodes", "graphs"), [("validation", 16, 32), ("test", 64, 4)])
def test_exact_on_the_official_sets(split, nodes, graphs):
    network = compiled(nodes)
    found = verify(network, official("dfs", split)[:graphs])
    assert_exact(found)
    assert found.attention <= network.certificate.attention_error


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 33])
def test_exact_on_new_graphs(nodes):
    assert_exact(verify(compiled(), fresh_graphs(dfs_full, nodes, 16, nodes)))


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 5, 17])
def test_paths_cycles_trees_and_graphs_in_parts(nodes):
    assert_exact(verify(compiled(), from_graphs("dfs", directed(nodes))))


def test_a_path_and_an_empty_graph_as_large_as_the_domain():
    path = np.eye(64, k=1)
    graphs = np.stack([path, path.T, np.zeros((64, 64))])
    assert_exact(verify(compiled(), from_graphs("dfs", graphs)))


@pytest.mark.slow
def test_any_graph_at_positions_as_close_as_allowed():
    network = compiled()

    @settings(max_examples=6, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def survives(seed):
        rng = np.random.default_rng(seed)
        edges = rng.random((16, 11, 11)) < rng.random((16, 1, 1)) ** 2
        positions = np.minimum(np.cumsum(rng.choice([1 / 64, 0.05], (16, 11)), axis=-1), 1.0)
        batch = make_batch(
            get_task("dfs"),
            jnp.asarray(edges, jnp.float32),
            jnp.zeros(16, jnp.int32),
            jnp.asarray(positions, jnp.float32),
        )
        assert_exact(verify(network, batch))

    survives()


def test_times_are_as_exact_as_certified():
    network, batch = compiled(), official("dfs", "test")[:4]
    meaning, _ = network.interpreted(batch)
    assert isinstance(meaning, Execution)
    assert isinstance(network.certificate, Certificate)
    certified = network.certificate.errors(batch.steps)
    assert max(certified[name] for name in ("d", "f", "clock")) < 5e-4  # a tick is 0.01
    trace = run(network.network, batch)
    for name in ("d", "f"):
        meant = meaning.states[name][1 : batch.max_hints]
        off = np.abs(np.asarray(trace.hints[name])[: len(meant)] - meant).max()
        assert off <= certified[name]


def test_the_real_dm_clrs_has_all_hints():
    """The program reads no edge's number, so it needs no edge information."""
    target = Target("all", "dm-clrs's gatv2_full, no layer norm", False, False, False, True)
    network = compiled(16, target).network
    assert network.config.nb_msg_passing_steps == 5
    output, scores = peer_scores(network, graphs=8, nodes=16, seed=21)
    assert output == 1.0
    for hint in get_task("dfs").hints:
        if hint.name in {"d", "f", "time"}:
            assert scores[hint.name] < 1e-10  # a number's score is its squared error
        else:
            assert scores[hint.name] == 1.0, hint.name


def test_the_hidden_size_is_what_it_needs():
    with pytest.raises(InvalidInput, match=r"needs hidden_size of at least 68 here \(68 for state"):
        compiled(8, hidden_size=67)


def test_layer_norm_is_too_coarse_for_the_last_node_in_float32():
    """Whether a node sees itself is a difference of positions, so layer norm's noise counts."""
    target = Target("all-ln", "dm-clrs's gatv2_full", False, False, True, True)
    with pytest.raises(InvalidInput, match="what sets 'highest@0' can be off by"):
        compiled(64, target, 128)


@pytest.mark.parametrize("target", ["paper", "general", "stock", "stock-ln"])
def test_masked_attention_is_refused(target):
    with pytest.raises(InvalidInput, match="full-attention-needed"):
        compiled(8, TARGETS[target])


tick, enter = dfs_full.phases[3:]


def ticking(**change):
    phases = list(dfs_full.phases)
    phases[3] = replace(tick, update={**tick.update, **change})
    return {"phases": tuple(phases)}


def entering(**change):
    enters = replace(enter, update={**enter.update, **change})
    return {"phases": (*dfs_full.phases[:4], enters)}


@pytest.mark.parametrize(
    "change",
    [
        ticking(clock=self.clock - 0.01 * other.event),
        ticking(clock=self.clock + -0.01 * other.event),
        ticking(clock=self.clock + 0.01 * other.white),
        ticking(clock=self.clock + 0.01 * edge.link),
        ticking(clock=other.clock + 0.01 * other.event),
        {"hints": {**dfs_full.hints, "d": clock}},
        entering(d=self.d + where(self.discover & self.white, self.clock, 0)),
        entering(d=self.d + where(self.white, self.clock, 0)),
        entering(d=self.f + where(self.discover, self.clock, 0)),
        entering(d=self.d + where(self.discover, self.clock, 1)),
        entering(d=self.d + where(self.discover, 2 * self.clock, 0)),
        entering(d=self.d + where(self.discover, other.f, 0)),
        entering(d=self.d + self.clock),
    ],
)
def test_numbers_that_cannot_compile_are_refused(change):
    with pytest.raises(InvalidInput, match="unknown-number"):
        compile_program(replace(dfs_full, **change), TARGETS["full"], Domain.regular(dfs_full, 8))
