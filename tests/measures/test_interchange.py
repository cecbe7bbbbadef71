"""Interchange interventions: exact in compiled networks, near chance where nothing is carried."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap import InvalidInput
from mechgap.calls import measure
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.measures.data import make_data
from mechgap.measures.interchange import measure as measuring
from mechgap.measures.interchange.agreement import agreement, at_moment, interchanged
from mechgap.measures.interchange.alignment import (
    aligned,
    layout_part,
    part_of,
    random_directions,
)
from mechgap.measures.interchange.cases import Cases, draw_cases, moments_of
from mechgap.measures.interchange.measure import interchange
from mechgap.measures.interchange.reading import FIRSTS, FIT_NODES, READABLE, Readable
from mechgap.measures.results import load_results
from mechgap.measures.run import measure_interchange
from mechgap.network.network import Network, unroll
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.report.interchange import by_directions
from mechgap.tasks.sampling import sample
from mechgap.training.train import Stopped
from untrained_runs import untrained_run

NODES, CASES = 7, 16
TARGET = {
    **dict.fromkeys(LIBRARY, "general"),
    "bfs": "stock-ln",
    "dfs": "stock-ln",
    "dfs_parent": "stock",
    "topological_sort": "paper",
    **dict.fromkeys(("dijkstra", "mst_prim", "dfs_full"), "full"),
}
SILENT = {
    "bfs_parent": {"pi"},
    "bellman_ford": {"pi"},
    "strongest_neighbour": {"pi"},
    "dfs": {"s_prev", "u", "here", "rooted"},
    "dfs_parent": {"s_prev", "u", "here", "rooted"},
    "dfs_full": {"s_prev", "u", "v", "here", "rooted", "highest"},
    "topological_sort": {"u", "here", "rooted", "tail"},
    "topological_sort_parent": {"u", "here", "rooted", "tail"},
    "dijkstra": {"u"},
    "mst_prim": {"u"},
}
"""Variables that every step sets anew from others, before anybody reads them."""


@cache
def drawn(name, variable, wanted=CASES, seed=1):
    program = LIBRARY[name]
    return draw_cases(program, posed(program), variable, wanted=wanted, nodes=NODES, seed=seed)


def some(name, variable, wanted=CASES, seed=1) -> Cases:
    cases = drawn(name, variable, wanted, seed)
    assert cases is not None
    return cases


@cache
def compiled(name, target, hidden_size=128, nodes=NODES):
    program = LIBRARY[name]
    domain = Domain.regular(program, nodes)
    return compile_program(program, TARGETS[target], domain, hidden_size=hidden_size)


def check_all_variables(name, target):
    """Every variable of a compiled network carries what the program says it does."""
    found, silent = compiled(name, target), set()
    for variable in LIBRARY[name].components:
        cases = drawn(name, variable)
        if cases is None:
            silent.add(variable)
            continue
        held = at_moment(found.network, cases)
        share = agreement(found.network, cases, held, layout_part(found, variable))
        for each in (share.outputs, share.hints):
            assert not each.cases or (each.follows, each.keeps) == (1.0, 0.0), variable
        assert share.outputs.cases + share.hints.cases > 0
    assert silent == SILENT.get(name, set())


@pytest.mark.parametrize("name", LIBRARY)
def test_compiled_networks_follow_in_every_variable(name):
    check_all_variables(name, TARGET[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("target", TARGETS)
def test_compiled_networks_follow_in_every_target(name, target):
    try:
        compiled(name, target)
    except InvalidInput:
        pytest.skip(f"{name} does not compile for {target}")
    check_all_variables(name, target)


def test_only_what_a_variable_needs_is_put_in():
    """With no part of the state and no hint the run is the base run's own, bit for bit."""
    network, cases = compiled("bfs", "general").network, some("bfs", "pi")
    nothing = eqx.tree_at(lambda c: c.fed, cases, {name: jnp.bool_(False) for name in cases.fed})
    hidden = network.config.hidden_size
    swapped = interchanged(network, nothing, at_moment(network, cases), jnp.zeros((hidden, hidden)))
    own = unroll(network, cases.base, training=False)
    assert all(np.array_equal(own.outputs[n], swapped.outputs[n]) for n in own.outputs)
    assert all(np.array_equal(own.hints[n], swapped.hints[n]) for n in own.hints)


def test_a_variable_is_not_carried_elsewhere():
    """By chance, or by the part of another variable, hardly any case follows."""
    found, cases = compiled("bfs", "general"), some("bfs", "pi", 128)
    network, hidden = found.network, found.network.config.hidden_size
    held = at_moment(network, cases)
    anyhow = part_of(random_directions(jax.random.key(0), hidden, 2), 2)
    for part in (anyhow, layout_part(found, "visit")):
        assert agreement(network, cases, held, part).outputs.follows < 0.1


def test_the_search_finds_what_the_layout_says():
    """In a compiled network, on cases that it was not fitted to, and not in an untrained one."""
    network = compiled("bfs", "general", 32).network
    cases, others = some("bfs", "pi", 256), some("bfs", "pi", 128, seed=2)
    untrained = Network.initial("bfs", jax.random.key(3), network.config)
    follows = []
    for each in (network, untrained):
        directions = aligned(each, cases, at_moment(each, cases), (1, 2, 4), jax.random.key(1))
        assert np.allclose(directions.T @ directions, np.eye(4), atol=1e-5)
        part = part_of(directions, 4)
        follows.append(agreement(each, others, at_moment(each, others), part).outputs.follows)
    assert follows[0] > 0.95
    assert follows[1] < 0.5


def test_moments_are_those_at_which_a_variable_is_needed():
    dfs = LIBRARY["dfs"]
    assert moments_of(dfs, dfs.components["color"]) == (0,)  # fed back
    assert moments_of(dfs, dfs.components["found"]) == (2,)  # set by one phase for the next
    assert 0 in moments_of(dfs, dfs.components["finished"])  # read when the next step begins


@pytest.fixture
def few(monkeypatch):
    """Fewer cases than a percentage needs."""
    fewer = {"FITTED": 16, "CHOSEN": 16, "SCORED": 16, "SCORED_LARGE": 4, "LARGE": 12}
    for name, value in fewer.items():
        monkeypatch.setattr(measuring, name, value)
    measuring.sets_of.cache_clear()
    yield
    measuring.sets_of.cache_clear()


@pytest.mark.usefixtures("few")
def test_a_run_is_measured_seed_by_seed_and_gone_on_with(tmp_path):
    folder = untrained_run(tmp_path / "run", seeds=(0, 1), use_ln=False)
    measure(folder)

    def stop(what, done, _):
        if (what, done) == ("interchange", 1):
            raise Stopped

    with pytest.raises(Stopped):
        measure_interchange(folder, dimensions=(1, 2), on_progress=stop)
    first = load_results(folder)
    assert [bool(row.interchange) for row in first.networks] == [True, False]
    results = measure(folder, causal=True)
    assert load_results(folder).to_json() == results.to_json()
    assert results.seeds[0].interchange == first.seeds[0].interchange  # not sought again
    found = results.seeds[1].interchange
    assert found.keys() == {"bfs", "bfs_parent"}
    assert found["bfs"].variables.keys() == {"visit", "pi"}
    assert set(found["bfs"].variables["pi"].curve) == {0, 1, 2, 4}
    curves = {(variable, who): curve for variable, who, curve in by_directions(results)}
    for name in ("visit", "pi"):
        of_seeds = [results.seeds[s].interchange["bfs"].variables[name].curve for s in (0, 1)]
        for k, share in curves[f"bfs: {name}", "learned"].items():
            known = [curve[k] for curve in of_seeds if k in curve]
            assert share == pytest.approx(sum(known) / len(known))
    assert not any(who == "compiled network" for _, who in curves)
    assert results.baselines["compiled"].interchange["bfs"].score == 1.0
    assert results.baselines["untrained"].interchange["bfs"].score < 0.5
    # Measured again it keeps what is known of the same networks.
    again = measure(folder)
    assert again.seeds[1].interchange == found


@pytest.mark.parametrize(
    ("more", "dimensions", "said"),
    [
        ({}, (1, 5), r"from 1 to the hidden size, 4; got 1, 5"),
        ({}, (), r"got none"),
        ({"nb_msg_passing_steps": 3}, None, r"bfs selects 1 times .* 3 times.*--nb-msg-passing"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(tmp_path, more, dimensions, said):
    folder = untrained_run(tmp_path / "run", seeds=(0,), **more)
    with pytest.raises(InvalidInput, match=said):
        measure(folder, causal=True, dimensions=dimensions)
    assert not (folder / "measures.json").exists()


def test_a_network_without_the_programs_phases_is_refused():
    network = Network.initial("dfs", jax.random.key(0))
    with pytest.raises(InvalidInput, match="dfs selects 3 times"):
        interchange(network, LIBRARY["dfs"])


@pytest.mark.parametrize("name", ["bfs", "bellman_ford", "dfs", "dijkstra"])
def test_compiled_networks_are_read_rightly(name):
    """Whatever the layout says that the hidden state carries is read off it at every moment."""
    found, program = compiled(name, TARGET[name], nodes=FIT_NODES), LIBRARY[name]
    batch = sample(
        program.task, jax.random.key(5), batch_size=8, nodes=NODES, random_pos=False
    ).trim()
    test = make_data("test", batch, [program])
    readable = Readable(found.network, test.truths[0], test)
    read = 0
    for variable in program.components:
        units = np.flatnonzero(np.diag(layout_part(found, variable)))
        if units.size:
            reading = readable.read(variable, jnp.eye(found.network.config.hidden_size)[:, units])
            assert (reading.right, reading.wrong_nodes) == (1.0, 0), variable
            read += 1
    assert read > 1


def _broken(network):
    """Parameters shuffled within each array: an answer is no longer computed."""
    leaves, tree = jax.tree.flatten(eqx.filter(network, eqx.is_inexact_array))
    keys = jax.random.split(jax.random.key(1), len(leaves))
    mixed = [
        jax.random.permutation(key, leaf.ravel()).reshape(leaf.shape)
        for key, leaf in zip(keys, leaves, strict=True)
    ]
    return eqx.combine(jax.tree.unflatten(tree, mixed), network)


def test_what_is_wrong_first(monkeypatch):
    """A network whose state is spoiled is wrong there no later than in what it says of it."""
    found, program = compiled("bfs", "stock"), LIBRARY["bfs"]
    batch = sample("bfs", jax.random.key(5), batch_size=8, nodes=NODES, random_pos=False).trim()
    test = make_data("test", batch, [program])
    readable = Readable(_broken(found.network), test.truths[0], test)
    units = np.flatnonzero(np.diag(layout_part(found, "visit")))
    directions = jnp.eye(found.network.config.hidden_size)[:, units]
    unread = readable.read("visit", directions)
    assert unread.wrong_nodes
    assert (unread.right < READABLE) == (unread.first == {})
    monkeypatch.setattr("mechgap.measures.interchange.reading.READABLE", 0.0)
    reading = readable.read("visit", directions)
    assert set(reading.first) == set(FIRSTS)
    assert sum(reading.first.values()) == pytest.approx(1)
