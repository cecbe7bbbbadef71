"""Programs that see all nodes, compiled to `full`: Dijkstra and Prim are exact; what cannot be is
refused. dm-clrs has no edge information, so its own network can only run the programs without."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dm_clrs_peer import peer_scores
from mechgap.compiler.certificate import Certificate
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.files import save_compiled
from mechgap.compiler.target import TARGETS, Target
from mechgap.compiler.verify import fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.network.files import load_network
from mechgap.network.trace import run
from mechgap.programs.depth_first import dfs
from mechgap.programs.expressions import edge, other, self, where
from mechgap.programs.interpreter import Execution
from mechgap.programs.library import LIBRARY
from mechgap.programs.phases import minimum
from mechgap.programs.queues import dijkstra, mst_prim
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official
from mechgap.tasks.sampling import make_batch
from mechgap.tasks.specs import get_task
from weighted_graphs import weighted

PROGRAM = pytest.mark.parametrize("program", [dijkstra, mst_prim], ids=lambda p: p.name)


def compiled(program, nodes=64, **domain):
    inputs = replace(Domain.regular(program, nodes), **domain)
    return compile_program(program, TARGETS["full"], inputs, hidden_size=28)


def assert_exact(program, found, outside=0):
    assert found.outputs == {"pi": 1.0}
    assert found.hints == dict.fromkeys(program.hints, 1.0)
    assert found.missed_graphs_inside == found.missed_graphs_outside == 0, found.first
    assert found.outside_certificate <= outside


@PROGRAM
@pytest.mark.parametrize(("split", "nodes", "outside"), [("validation", 16, 0), ("test", 64, 9)])
def test_exact_on_the_official_sets(program, split, nodes, outside):
    network = compiled(program, nodes)
    found = verify(network, official(program.name, split))
    assert_exact(program, found, outside)
    assert found.attention <= network.certificate.attention_error


@pytest.mark.slow
@PROGRAM
@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 33])
def test_exact_on_new_graphs(program, nodes):
    assert_exact(program, verify(compiled(program), fresh_graphs(program, nodes, 32, 1)), 6)


def hostile(nodes, rng):
    """Paths, cycles, stars, trees, complete and empty graphs, in two parts, with loops or none."""
    path, star, tree = np.eye(nodes, k=1), np.zeros((nodes, nodes)), np.zeros((nodes, nodes))
    star[nodes // 2] = 1
    for child in range(1, nodes):
        tree[(child - 1) // 2, child] = 1
    parts = np.add.outer(np.arange(nodes) % 2, np.arange(nodes) % 2) % 2 == 0
    shapes = [path, np.maximum(path, np.roll(np.eye(nodes), 1, axis=1)), star, tree]
    shapes = [*shapes, np.zeros_like(path), np.ones_like(path), parts, parts * tree]
    shapes = [np.maximum(shape, shape.T) for shape in shapes]
    looped = [*shapes, *(np.maximum(shape, np.eye(nodes)) for shape in shapes)]
    return np.stack([shape * weighted(rng, nodes, 1.1) * min(1.0, 3.5 / nodes) for shape in looped])


@PROGRAM
@pytest.mark.parametrize("nodes", [2, 5, 16])
def test_hostile_graphs_from_every_kind_of_source(program, nodes):
    network, rng = compiled(program, 16), np.random.default_rng(nodes)
    for source in {0, nodes // 2, nodes - 1}:
        graphs = hostile(nodes, rng)
        assert_exact(program, verify(network, from_graphs(program.name, graphs, source)), 3)


@PROGRAM
def test_any_graph_at_positions_as_close_as_allowed(program):
    network = compiled(program, 64)

    @settings(max_examples=6, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def survives(seed):
        rng = np.random.default_rng(seed)
        graphs = np.stack([weighted(rng, 11, rng.random()) for _ in range(16)])
        positions = np.minimum(np.cumsum(rng.choice([1 / 64, 0.05], (16, 11)), axis=-1), 1.0)
        batch = make_batch(
            get_task(program.name),
            jnp.asarray(graphs, jnp.float32),
            jnp.asarray(rng.integers(11, size=16), jnp.int32),
            jnp.asarray(positions, jnp.float32),
        )
        found = verify(network, batch)
        assert found.exact, found.first

    survives()


def test_ties_and_long_ways_are_outside_the_certificate():
    square = np.zeros((4, 4))
    square[0, 1] = square[0, 2] = square[1, 3] = square[2, 3] = 0.5
    network = compiled(dijkstra, 4)
    with pytest.raises(InvalidInput, match="competing values closer than certified"):
        run(network.network, from_graphs("dijkstra", square + square.T), within=network)
    path = np.eye(8, k=1)
    with pytest.raises(InvalidInput, match=r"'dist' below 0 or above 4"):
        run(compiled(dijkstra, 8).network, from_graphs("dijkstra", path + path.T),
            within=compiled(dijkstra, 8))  # fmt: skip
    with pytest.raises(InvalidInput, match=r"'weight' below 0 or above 1\.001"):
        run(network.network, from_graphs("dijkstra", 3 * (square + square.T)), within=network)


def test_the_certificate_says_how_close_values_may_be():
    near, far = compiled(dijkstra, 64, largest_value=2.0), compiled(dijkstra, 64)
    assert near.certificate.value_gap(7) < 1.2e-5 < far.certificate.value_gap(7) < 2e-5
    assert compiled(mst_prim).certificate.value_gap(1) < 3e-6
    assert "competing values apart" in dict(near.certificate.guarantees)
    assert near.certificate.errors(7)["dist"] < 1e-5
    with pytest.raises(InvalidInput, match=r"value_gap must be at least .*; got 1e-06"):
        compiled(dijkstra, value_gap=1e-6)
    with jax.enable_x64(True):
        fine = compiled(dijkstra, dtype="float64", value_gap=1e-11)
        assert_exact(dijkstra, verify(fine, fresh_graphs(dijkstra, 12, 8, 3)))


def test_numbers_are_as_exact_as_certified():
    network, batch = compiled(dijkstra), official("dijkstra", "test")
    meaning, reasons = network.interpreted(batch)
    assert isinstance(meaning, Execution)
    assert isinstance(network.certificate, Certificate)
    inside = ~np.any(list(reasons.values()), axis=0)
    steps = batch.max_hints - 1
    off = np.abs(np.asarray(run(network.network, batch).hints["d"])[:steps]
                 - meaning.states["dist"][1 : steps + 1])  # fmt: skip
    counted = np.arange(1, steps + 1)[:, None] < np.asarray(batch.lengths)
    worst = (off.max(-1) * counted).max(0)
    growth = network.certificate.numbers["dist"]
    assert (worst <= meaning.hops * growth.each_hop + meaning.carried * growth.each_size)[
        inside
    ].all()


def test_a_compiled_file_keeps_the_program(tmp_path):
    network = compiled(mst_prim, 4)
    save_compiled(network, tmp_path / "prim.safetensors")
    _, about = load_network(tmp_path / "prim.safetensors")
    assert about["source"] == str(mst_prim)
    assert about["certificate"]["value_gap"] == network.certificate.value_gap(5)


@pytest.mark.parametrize("target", ["paper", "general", "stock", "stock-ln"])
def test_masked_attention_is_refused_with_the_reason(target):
    with pytest.raises(InvalidInput, match=r"full-attention-needed.*one hint late") as refused:
        compile_program(dijkstra, TARGETS[target], Domain.regular(dijkstra, 8))
    assert ("edge-information-needed" in str(refused.value)) == target.startswith("stock")


@pytest.mark.parametrize("program", ["bfs", "bellman_ford", "dfs"])
def test_programs_that_look_at_neighbours_are_refused(program):
    with pytest.raises(InvalidInput, match="neighbours-only"):
        compile_program(LIBRARY[program], TARGETS["full"], Domain.regular(LIBRARY[program], 8))


def test_the_real_dm_clrs_runs_a_program_that_sees_all():
    """DFS asks for edges in its masks, so it may see all; and it needs no edge information."""
    everywhere = replace(dfs, sees_all=True)
    target = Target("all", "dm-clrs's gatv2_full, no layer norm", False, False, False, True)
    compiled = compile_program(everywhere, target, Domain.regular(dfs, 16), hidden_size=40)
    found = verify(compiled, fresh_graphs(dfs, 16, 8, 0))
    assert found.outside_certificate == 0
    assert found.exact
    assert compiled.network.config.processor_type == "gatv2_full"
    output, _ = peer_scores(compiled.network, graphs=4, nodes=16, seed=5)
    assert output == 1.0


take, relax = dijkstra.phases


def taking(**change):
    return {"phases": (replace(take, **change), relax)}


def relaxing(**change):
    return {"phases": (take, replace(relax, **change))}


def signalling(**change):
    return relaxing(update={**relax.update, **change})


REACHED = other.done & ~self.start
LATER = {name: value for name, value in relax.update.items() if name != "dist"}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (taking(select=minimum(self.dist)), "unknown-selection"),
        (taking(select=minimum(other.done & other.queued)), "unknown-selection"),
        (taking(mask=other.queued & edge.loop), "mask-not-a-conjunction"),
        (taking(update={**take.update, "taken": other.queued & edge.link}), "edge-information"),
        (signalling(dist=where(REACHED, 2 * other.dist, 0)), "unknown-number"),
        (signalling(dist=where(REACHED, edge.weight - other.dist, 0)), "unknown-number"),
        (signalling(dist=where(other.done | self.start, edge.weight, 0)), "unknown-number"),
        (signalling(dist=where(REACHED, edge.weight, 1)), "unknown-number"),
        ({"phases": (replace(take, update={**take.update, "dist": relax.update["dist"]}),
                     replace(relax, update=LATER))}, "unknown-number"),
        (taking(update={**take.update, "taken": other.queued & ~edge.loop}), "not-alternatives"),
        (signalling(dist=where(REACHED & edge.loop, edge.weight, 0)), "unknown-number"),
        (taking(update={**take.update, "done": other.queued & edge.loop | self.done}), "too-early"),
        ({"init": {**dijkstra.init, "taken": self.start}}, "not-a-hint"),
    ],
)  # fmt: skip
def test_what_cannot_compile_is_refused_by_name(change, name):
    with pytest.raises(InvalidInput, match=name):
        compile_program(replace(dijkstra, **change), TARGETS["full"], Domain.regular(dijkstra, 8))
