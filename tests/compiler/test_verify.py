"""Compiled networks are exact: official sets, hard graphs, real dm-clrs."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attack import attack
from dm_clrs_peer import peer_scores
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.running import attention_off
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs, posed_batch, verify
from mechgap.errors import InvalidInput
from mechgap.network.trace import run
from mechgap.programs.interpreter import interpret
from mechgap.programs.library import LIBRARY, bellman_ford, bfs
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official

CLRS = [
    *(("bfs", target) for target in ("paper", "general", "stock", "stock-ln")),
    *(("bfs_parent", target) for target in ("paper", "general", "stock")),
    *(("bellman_ford", target) for target in ("paper", "general")),
]
OTHERS = [
    *(("reachability", target) for target in ("paper", "general", "stock", "stock-ln")),
    *(("smallest_label", target) for target in ("paper", "general", "stock")),
    *(("strongest_neighbour", target) for target in ("paper", "general", "stock", "stock-ln")),
]


def compiled(program, target, nodes=64, hidden_size=None):
    """Small where size does not matter: only layer norm sees the units that are not used."""
    program, target = LIBRARY[program], TARGETS[target]
    hidden_size = hidden_size or (128 if target.layer_norm else 8)
    domain = Domain.regular(program, nodes)
    return compile_program(program, target, domain, hidden_size=hidden_size)


@pytest.mark.parametrize(
    ("program", "target"),
    CLRS + [pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS],
)
def test_exact_on_the_official_sets(program, target, record_property):
    for split, nodes in (("test", 64), ("validation", 16)):
        network = compiled(program, target, nodes)
        found = verify(network, posed_batch(network.program, official(network.program.task, split)))
        record_property(f"{split}, graphs outside the certificate", found.outside_certificate)
        assert set(found.outputs.values()) == {1.0}
        assert set(found.hints.values()) == {1.0}
        assert found.missed_graphs_inside == found.missed_graphs_outside == 0
        assert found.exact
        assert found.attention <= network.certificate.attention_error


@pytest.mark.parametrize("hidden", [3, 4])
@pytest.mark.parametrize("target", ["paper", "general", "stock"])
def test_bfs_fits_three_hidden_units(target, hidden):
    network = compiled("bfs", target, 16, hidden_size=hidden)
    alone = {3: 310, 4: 508}[hidden]
    more = {"paper": hidden**2 + 16**2, "general": hidden**2, "stock": 0}[target]
    assert network.network.parameters == alone + more
    assert verify(network, fresh_graphs(bfs, 16, 64, 1)).exact
    with pytest.raises(InvalidInput, match="needs hidden_size of at least 3 here"):
        compiled("bfs", target, 16, hidden_size=2)


def test_bfs_of_three_hidden_units_is_exact_on_the_official_sets():
    for split, nodes in (("validation", 16), ("test", 64)):
        found = verify(compiled("bfs", "stock", nodes, hidden_size=3), official("bfs", split))
        assert found.exact, found.sentence
        assert found.outside_certificate == 0


def test_bellman_ford_fits_four_hidden_units_with_the_bias_and_seven_without():
    network = compiled("bellman_ford", "paper", 16, hidden_size=4)
    found = verify(network, fresh_graphs(bellman_ford, 16, 64, 1))
    assert found.exact
    assert set(found.outputs.values()) == {1.0}
    with pytest.raises(ValueError, match=r"needs hidden_size of at least 7 here .*7 for attention"):
        compiled("bellman_ford", "general", 16, hidden_size=4)
    assert verify(
        compiled("bellman_ford", "general", 16, hidden_size=7),
        fresh_graphs(bellman_ford, 16, 64, 1),
    ).exact


@pytest.mark.parametrize("target", ["stock", "stock-ln"])
def test_bellman_ford_without_edge_information_is_refused_with_the_reason(target):
    with pytest.raises(ValueError, match=r"edge-information-needed: 'dist' .* Use general"):
        compiled("bellman_ford", target)


@pytest.mark.parametrize("program", ["bfs", "bellman_ford"])
def test_simplified_decoders_are_exact_too(program):
    domain = Domain.regular(LIBRARY[program], 16)
    network = compile_program(LIBRARY[program], TARGETS["general"], domain, simplify_decoders=True)
    assert verify(network, fresh_graphs(LIBRARY[program], 16, 64, 2)).exact


@pytest.mark.parametrize("program", ["bfs", "bellman_ford"])
def test_all_targets_attend_alike(program):
    batch = fresh_graphs(LIBRARY[program], 16, 32, 3)
    traces = []
    for target in ("paper", "general", "stock", "stock-ln"):
        if program == "bellman_ford" and target.startswith("stock"):
            continue
        traces.append(run(compiled(program, target, 16).network, batch))
    valid = np.asarray(traces[0].valid)[..., None, None, None]
    for trace in traces[1:]:
        assert np.abs((trace.attention - traces[0].attention) * valid).max() <= 1e-7


INSIDE = [("bfs", "general"), ("bfs", "stock-ln"), ("bellman_ford", "general")]


@pytest.mark.parametrize(("program", "target"), INSIDE)
@pytest.mark.parametrize("nodes", [1, 2, 16])
def test_hard_graphs_inside_the_certificate_are_never_missed(program, target, nodes):
    network = compiled(program, target)

    @settings(max_examples=5, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def survives(seed):
        found = attack(network, nodes, 60, np.random.default_rng(seed))
        assert found.missed_graphs_inside == 0, found.first
        assert found.outside_certificate < 60  # the certificate covers something

    survives()


def test_a_path_as_long_as_the_domain_is_followed_to_its_end():
    for target in ("stock", "stock-ln"):
        network = compiled("bfs", target)
        path = np.eye(64, k=1) + np.eye(64, k=-1)
        found = verify(network, from_graphs("bfs", path, 0))
        assert found.exact
        assert found.outside_certificate == 0


def test_float64_certifies_finer_gaps():
    coarse = compiled("bellman_ford", "general").certificate
    with jax.enable_x64(True):
        network = compile_program(
            bellman_ford, TARGETS["general"], Domain.regular(bellman_ford, 64, "float64")
        )
        found = verify(network, fresh_graphs(bellman_ford, 32, 32, 4))
    assert found.exact
    assert network.certificate.value_gap(64) < coarse.value_gap(64) / 20


@pytest.mark.parametrize(("target", "hidden"), [("stock", 4), ("stock", 128), ("stock-ln", 128)])
def test_the_real_dm_clrs_runs_compiled_bfs_exactly(target, hidden):
    network = compiled("bfs", target, hidden_size=hidden).network
    for nodes in (16, 40, 64):
        output, scores = peer_scores(network, graphs=16, nodes=nodes, seed=900 + nodes)
        assert output == 1.0
        assert scores["reach_h"] == scores["pi_h"] == 1.0


def test_a_miss_is_found_and_shown():
    """A network that was tampered with is not called exact."""

    network = compiled("bfs", "stock", 16)
    wrong = eqx.tree_at(
        lambda net: net.processor.attention,
        network.network,
        network.network.processor.attention * 0,
    )
    found = verify(replace(network, network=wrong), fresh_graphs(bfs, 16, 16, 5))
    assert not found.exact
    assert found.missed_graphs_inside > 0
    assert found.first is not None
    assert found.first.inside


def test_gaps_of_the_interpreter_are_those_of_the_race():
    A = np.zeros((1, 3, 3))
    A[0, 0, 1] = A[0, 1, 0] = 0.5
    A[0, 0, 2] = A[0, 2, 0] = 0.25
    A[0, 1, 2] = A[0, 2, 1] = 0.2
    inputs = {"pos": np.array([[0, 1 / 3, 2 / 3]]), "A": A, "adj": np.ones((1, 3, 3))}
    inputs["s"] = np.array([[1.0, 0, 0]])
    run_ = interpret(bellman_ford, inputs, steps=2)
    assert run_.states["dist"][-1, 0].tolist() == [0, 0.45, 0.25]
    assert run_.gaps[1, 0] == pytest.approx(0.05)  # node 1: 0.5 directly, 0.45 by node 2


def test_run_refuses_what_is_outside_the_certificate():
    made = compiled("bellman_ford", "general", nodes=4)
    weights = np.array([[0, 0.5, 0, 0], [0.5, 0, 0.2, 0], [0, 0.2, 0, 0.4], [0, 0, 0.4, 0]])
    inside = from_graphs("bellman_ford", weights, 0)
    checked, unchecked = (run(made.network, inside, within=w) for w in (made, None))
    assert (checked.attention == unchecked.attention).all()

    with pytest.raises(
        InvalidInput, match=r"1 of 1 graphs .* 'dist' below 0 or above 4 \(sample 0\); "
    ):
        run(made.network, from_graphs("bellman_ford", 10 * weights, 0), within=made)
    crowded = eqx.tree_at(lambda b: b.inputs["pos"], inside, inside.inputs["pos"] / 2)
    with pytest.raises(InvalidInput, match=r"positions closer than 0\.25 or not"):
        run(made.network, crowded, within=made)
    beyond = eqx.tree_at(lambda b: b.inputs["pos"], inside, inside.inputs["pos"] * 2)
    with pytest.raises(InvalidInput, match=r"a position outside \[0, 1\]"):
        run(made.network, beyond, within=made)
    with pytest.raises(InvalidInput, match="more than 4 nodes"):
        run(made.network, from_graphs("bellman_ford", np.ones((5, 5)) * 0.3, 0), within=made)
    tied = weights.copy()
    tied[0, 2] = tied[2, 0] = 0.5
    tied[1, 3] = tied[3, 1] = 0.4
    with pytest.raises(InvalidInput, match="competing values closer than certified"):
        run(made.network, from_graphs("bellman_ford", tied, 0), within=made)


def test_attention_is_off_by_its_largest_difference():
    rng = np.random.default_rng(0)
    attention = rng.dirichlet(np.ones(5), (3, 4, 5))
    attention[0, 0, 0] = [0.5, 0.5, 0, 0, 0]
    attention[1, 1] = np.eye(5)
    senders = rng.integers(0, 5, (3, 4, 5))
    senders[1, 1] = np.arange(5)
    expected = np.abs(attention - np.eye(5)[senders]).max((-1, -2))
    assert expected[1, 1] == 0
    assert attention_off(attention.copy(), senders) == pytest.approx(expected)
