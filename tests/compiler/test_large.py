"""Large graphs: for how large ones programs are certified, and verification on lists of edges."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import pytest

from command_line import call
from mechgap import calls
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.sizes import compile_for, largest
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import Verdict, fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.programs.library import LIBRARY

KINDS = [("bfs", "stock-ln"), ("bellman_ford", "general"), ("dfs", "stock"),
         ("topological_sort", "stock"), ("dijkstra", "full"), ("mst_prim", "full")]  # fmt: skip


@pytest.mark.parametrize(("name", "target"), KINDS)
def test_lists_show_what_matrices_show(name, target, monkeypatch):
    """Graphs inside the certificate and outside it; hints that are not claimed, too."""
    program = LIBRARY[name]
    domain = replace(Domain.regular(program, 10), steps=12)
    network = compile_program(program, TARGETS[target], domain)
    batch = fresh_graphs(program, 10, 6, 3, "er-sparse+tree")
    on_matrices = verify(network, batch)
    monkeypatch.setattr("mechgap.network.sparse.MATRICES_UP_TO", 1)
    on_lists = verify(network, batch)
    assert on_lists.attention == pytest.approx(on_matrices.attention, abs=1e-6)
    assert replace(on_lists, attention=0.0) == replace(on_matrices, attention=0.0)


def test_a_wrong_network_is_found_out_on_lists(monkeypatch):
    monkeypatch.setattr("mechgap.network.sparse.MATRICES_UP_TO", 1)
    network = calls.compile("bfs", "stock", 12)
    batch = fresh_graphs(LIBRARY["bfs"], 12, 4, 0, "tree")
    assert verify(network, batch).exact
    spoiled = eqx.tree_at(
        lambda n: n.processor.attention, network.network, replace_fn=lambda a: -jnp.abs(a)
    )
    found = verify(replace(network, network=spoiled), batch)
    assert found.verdict is Verdict.NETWORK_IS_NOT_PROGRAM
    assert found.first is not None


@pytest.mark.parametrize(("name", "target", "at_least"), [
    ("bfs", "stock", 10**5), ("reachability", "general", 10**5), ("dfs", "stock", 1600),
    ("dijkstra", "full", 1600),
])  # fmt: skip
def test_the_largest_size_is_one_that_compiles(name, target, at_least):
    program, target = LIBRARY[name], TARGETS[target]
    found = largest(program, target)
    assert found.nodes >= at_least
    assert compile_for(program, target, found.nodes).certificate.domain.nodes == found.nodes
    with pytest.raises(InvalidInput, match=f"cannot be certified.*have {found.nodes:,} nodes"):
        compile_for(program, target, found.nodes + max(1, found.nodes // 64))
    assert "cannot be certified" in found.why


def test_a_target_that_does_not_take_a_program_has_no_size():
    found = largest(LIBRARY["dijkstra"], TARGETS["stock"])
    assert found.nodes == 0
    assert "full-attention-needed" in found.why


def test_a_large_graph_on_the_command_line(monkeypatch, capsys):
    """Three hundred nodes are more than matrices are for."""
    asked = "verify bfs --target stock --nodes 300 --kind delaunay --graphs 2"
    said = call(monkeypatch, capsys, *asked.split())
    assert said.returncode == 0
    assert "exact on 2 graphs of 300 nodes, all inside the certificate" in " ".join(
        said.stdout.split()
    )


def test_positions_that_are_on_no_grid_are_outside():
    network = calls.compile("bfs", "stock", 1000)
    assert network.certificate.domain.position_grid is not None
    found = verify(network, fresh_graphs(LIBRARY["bfs"], 1000, 1, 0, "tree"))
    assert found.verdict is Verdict.NOTHING_INSIDE
    assert any("no multiple" in why for why in found.outside_reasons)


@pytest.mark.parametrize(("asked", "why"), [
    ("verify bfs --kind moon", "unknown kind of graphs"),
    ("verify bfs --official test --kind tree", "--kind is for new graphs"),
    ("verify bfs --exhaustive 3 --kind tree", "give it alone"),
    ("zoo --dtype float64", "--dtype is for --largest"),
    ("zoo --largest --dtype float16", "float32 or float64"),
    ("zoo --largest --hidden-size 0", "hidden_size must be at least 1"),
])  # fmt: skip
def test_what_cannot_be_asked_for(asked, why, monkeypatch, capsys):
    said = call(monkeypatch, capsys, *asked.split())
    assert said.returncode == 2
    assert why in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1


def test_graphs_that_do_not_fit_are_not_drawn(monkeypatch, capsys):
    """A size that is certified, and has no room as a matrix."""
    said = call(monkeypatch, capsys, *["verify", "bfs", "--target", "stock", "--nodes", "100000"])
    assert said.returncode == 2
    assert "GB of memory" in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1
