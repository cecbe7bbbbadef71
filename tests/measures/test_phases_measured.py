"""Gaps to a mechanism with several phases: compared in order, or with the nearest step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.measures.baselines import self_attention, uniform_attention
from mechgap.measures.causal import causal
from mechgap.measures.data import Data, GroundTruth, make_data
from mechgap.measures.examples import example_run
from mechgap.measures.foiled import foiled_hints
from mechgap.measures.internal import internal_gap
from mechgap.measures.run import measure_run
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY
from mechgap.report.page.player import player
from mechgap.tasks.sampling import sample
from untrained_runs import untrained_run

NODES = 6


@pytest.fixture(scope="module")
def graphs() -> Data:
    batch = sample("dfs", jax.random.key(3), batch_size=4, nodes=NODES, random_pos=False)
    return make_data("some", batch.trim())


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_program(LIBRARY["dfs"], TARGETS["stock"], Domain.regular(LIBRARY["dfs"], NODES))


def one_phase(truth: GroundTruth, phase: int) -> GroundTruth:
    """A phase as a mechanism of its own."""
    here = slice(phase, None, truth.phases)
    arrays = (truth.senders, truth.acceptable, truth.updated, truth.foils)
    program = LIBRARY["bfs"]  # any that has one
    return GroundTruth(program, *jax.tree.map(lambda x: x[here], arrays))


def test_a_compiled_search_has_no_gap(graphs, compiled):
    truth, by_parents = graphs.truths
    assert (truth.mechanism, by_parents.mechanism) == ("dfs", "dfs_parent")
    assert truth.phases == 3
    assert len(truth.senders) == 3 * graphs.batch.steps
    gap = internal_gap(run(compiled.network, graphs.batch).attention, truth, graphs)
    assert gap.tv < 1e-6
    assert gap.agreement == gap.agreement_strict == 1
    assert gap.tv_by_step.shape == (graphs.batch.steps,)
    assert gap.agreement_by_phase.tolist() == [1, 1, 1]
    other = internal_gap(run(compiled.network, graphs.batch).attention, by_parents, graphs)
    assert other.agreement == 1, "the two differ on nodes that are not addressed"
    assert other.tv > 0.1


def test_one_step_per_hint_is_compared_with_every_phase(graphs):
    truth, _ = graphs.truths
    for attention in (uniform_attention(graphs), self_attention(graphs)):
        whole = internal_gap(attention, truth, graphs)
        each = [internal_gap(attention, one_phase(truth, p), graphs) for p in range(3)]
        assert whole.tv == pytest.approx(np.mean([gap.tv for gap in each]), rel=1e-5)
        for name in ("agreement", "misplaced"):
            np.testing.assert_allclose(
                getattr(whole, f"{name}_by_phase"), [getattr(gap, name) for gap in each], rtol=1e-5
            )
        np.testing.assert_allclose(
            whole.tv_by_step, np.mean([gap.tv_by_step for gap in each], axis=0), rtol=1e-5
        )


def test_of_several_steps_the_nearest_counts():
    """The right attention in any one of a network's steps is found."""
    batch = sample("bfs", jax.random.key(5), batch_size=3, nodes=7, random_pos=False).trim()
    data = make_data("some", batch)
    truth, astray = data.truths[0], uniform_attention(data)
    for place in range(3):
        steps = [astray] * 3
        steps[place] = truth.attention
        attention = jnp.stack(steps, axis=1).reshape(-1, *astray.shape[1:])
        gap = internal_gap(attention, truth, data)
        assert (gap.tv, gap.agreement_strict) == (0, 1)


def test_as_many_steps_as_phases_are_compared_in_order(graphs):
    truth, _ = graphs.truths
    phases = truth.attention.reshape(-1, 3, *truth.attention.shape[1:])
    turned = phases[:, jnp.array([1, 2, 0])].reshape(truth.attention.shape)
    assert internal_gap(truth.attention, truth, graphs).tv == 0
    assert internal_gap(turned, truth, graphs).tv > 0


def test_forced_to_the_true_phases_a_compiled_search_loses_nothing(graphs, compiled):
    foiled = foiled_hints(graphs)
    found = causal(compiled.network, graphs, foiled)
    mine = found.mechanisms["dfs"]
    assert found.own == mine.exact == found.tempered["hardened"] == 1
    assert found.fixed["self"] < 1
    single = Network.initial("dfs", jax.random.key(0), NetworkConfig(hidden_size=4))
    assert causal(single, graphs, foiled).mechanisms == {}


def test_examples_have_a_frame_for_every_phase(graphs):
    for steps in (1, 3):
        config = NetworkConfig(hidden_size=4, nb_msg_passing_steps=steps)
        trace = run(Network.initial("dfs", jax.random.key(0), config), graphs.batch)
        assert len(example_run(graphs, trace)["attention"]) == 3 * graphs.batch.steps


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3])
def test_a_run_of_dfs_is_measured(steps, tmp_path):
    folder = untrained_run(tmp_path / "dfs", "dfs", seeds=(0, 1), nb_msg_passing_steps=steps)
    results = measure_run(folder)
    assert results.networks[0].nearest == "dfs"
    compiled = results.baselines["compiled"]
    assert (compiled.accuracy, compiled.gaps["test"]["dfs"].agreement) == (1, 1)
    assert compiled.gaps["test"]["dfs"].tv < 1e-3
    assert compiled.causal is not None
    assert (compiled.causal.mechanisms["dfs"].exact, compiled.causal.own) == (1, 1)
    for network in results.networks:
        assert 0 < network.gaps["test"]["dfs"].tv < 1
        assert network.causal is not None
        assert ("dfs" in network.causal.mechanisms) == (steps == 3)
    shown = player(results)
    assert shown is not None
    assert shown["phases"] == 3
    for sample_, seen in zip(shown["samples"], shown["seeds"][0]["samples"], strict=True):
        assert len(seen["attention"]) == len(sample_["senders"]["dfs"]) == 3 * sample_["steps"]
