"""Measures of large graphs, as lists, are those of matrices."""

import json

import jax
import numpy as np
import pytest

from command_line import call
from mechgap import calls
from mechgap.errors import InvalidInput
from mechgap.measures.at_sizes import FILE, load_sizes
from mechgap.measures.data import make_data
from mechgap.measures.large import LargeGraph, see_on_lists, uniform_on_lists
from mechgap.measures.snapshot import see_block, see_on, seen_together, uniform_on
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.programs.library import mechanisms
from mechgap.tasks.sampling import sample
from mechgap.typed import plain
from untrained_runs import untrained_run


@pytest.mark.parametrize(("task", "phases", "heads"), [
    ("bfs", 1, 2), ("bellman_ford", 1, 1), ("dfs", 3, 1), ("dijkstra", 2, 1),
])  # fmt: skip
def test_an_untrained_network_is_seen_alike(task, phases, heads):
    config = NetworkConfig(
        hidden_size=8,
        nb_heads=heads,
        nb_msg_passing_steps=phases,
        use_edge_info=True,
        hint_repred_mode="hard_on_eval",
    )
    network = Network.initial(task, jax.random.key(0), config)
    batch = sample(task, jax.random.key(1), batch_size=5, nodes=8, graphs="er-sparse").trim()
    programs = mechanisms(batch.task)
    on_matrices = plain(see_on(network, make_data("test", batch, programs)))
    graphs = [LargeGraph.of(batch[k : k + 1], programs) for k in range(batch.size)]
    on_lists = plain(see_on_lists(network, graphs, programs))
    seen_by_all = {p.name for p in programs if p.sees_all}
    assert bool(on_lists["mechanisms"]) == (not seen_by_all)
    for part in ("accuracy", "graph_accuracy"):
        assert on_lists[part] == pytest.approx(on_matrices[part])
    for name, found in on_lists["mechanisms"].items():
        wanted = on_matrices["mechanisms"][name]
        parts, of_matrices = found.pop("parts"), wanted.pop("parts")
        assert found == pytest.approx(wanted, abs=1e-5)
        for rows in parts:
            assert parts[rows] == pytest.approx(of_matrices[rows], abs=1e-5)
        found, wanted = (
            np.array(each["by_phase"][name], float) for each in (on_lists, on_matrices)
        )
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize(("task", "phases", "p"), [("bfs", 1, 0.3), ("dfs", 3, 0.1)])
def test_graphs_are_seen_alike_in_blocks(task, phases, p):
    config = NetworkConfig(hidden_size=8, nb_msg_passing_steps=phases)
    network = Network.initial(task, jax.random.key(0), config)
    # Sparse enough for graphs without any row that is updated, whose agreement is no number.
    batch = sample(task, jax.random.key(1), batch_size=7, nodes=5, p=[p]).trim()
    programs = mechanisms(batch.task)
    whole = plain(see_on(network, make_data("test", batch, programs)))
    cut = [make_data("test", batch[k : k + 4], programs) for k in (0, 4)]
    blocks = plain(seen_together([see_block(network, data) for data in cut]))
    for mechanism, beside in whole.pop("mechanisms").items():
        other = blocks["mechanisms"][mechanism]
        for rows, kinds in beside.pop("parts").items():
            assert other["parts"][rows] == pytest.approx(kinds, abs=1e-6)
        assert {name: other[name] for name in beside} == pytest.approx(beside, abs=1e-6)
        by_phase = whole["by_phase"][mechanism]
        assert blocks["by_phase"][mechanism] == pytest.approx(by_phase, abs=1e-6)
    assert blocks["breaking"]["hints"] == whole["breaking"].pop("hints")
    assert blocks["breaking"]["along"] == pytest.approx(whole["breaking"].pop("along"))
    assert {k: blocks["breaking"][k] for k in whole["breaking"]} == whole["breaking"]
    for part in ("accuracy", "graph_accuracy", "hints"):
        assert blocks[part] == pytest.approx(whole[part], abs=1e-6)


def test_a_compiled_network_has_no_gap_on_large_graphs():
    compiled = calls.compile("bfs", "stock", 400)
    grid = compiled.certificate.domain.position_grid
    batch = sample("bfs", jax.random.key(2), batch_size=1, nodes=400, graphs="delaunay",
                   random_pos=False).on_grid(grid)  # fmt: skip
    seen = see_on_lists(
        compiled.network, [LargeGraph.of(batch, [compiled.program])], [compiled.program]
    )
    assert seen.graph_accuracy == 1
    beside = seen.mechanisms["bfs"]
    assert (beside.agreement, beside.agreement_strict) == (1, 1)
    assert beside.tv == pytest.approx(0, abs=1e-6)


def test_uniform_attention_is_seen_alike():
    batch = sample("bfs", jax.random.key(3), batch_size=4, nodes=9, graphs="er-sparse").trim()
    programs = mechanisms(batch.task)
    on_matrices = plain(uniform_on(make_data("test", batch, programs)))
    graphs = [LargeGraph.of(batch[k : k + 1], programs) for k in range(batch.size)]
    on_lists = plain(uniform_on_lists(graphs, programs))
    for name, wanted in on_matrices["mechanisms"].items():
        found = on_lists["mechanisms"][name]
        parts, of_matrices = found.pop("parts"), wanted.pop("parts")
        assert found == pytest.approx(wanted, abs=1e-5)
        for rows in parts:
            assert parts[rows] == pytest.approx(of_matrices[rows], abs=1e-5)


def test_a_run_at_several_sizes(tmp_path, monkeypatch, capsys):
    """Both ways to run, each seed once, and the same command resumes."""
    run = untrained_run(tmp_path / "run")
    monkeypatch.setattr("mechgap.measures.at_sizes.MATRICES_UP_TO", 8)
    asked = ["measure", run, "--graphs", "tree,ws", "--nodes", "6,10", "--count", "2"]
    said = call(monkeypatch, capsys, *asked)
    assert said.returncode == 0
    assert said.stdout.count("compiled") == 4
    assert said.stdout.count("uniform") == 8  # beside both mechanisms
    found = load_sizes(run)
    assert [(on.kind, on.nodes, on.on_lists) for on in found.graphs] == [
        ("tree", 6, False), ("tree", 10, True), ("ws", 6, False), ("ws", 10, True),
    ]  # fmt: skip
    assert all(on.baselines["compiled"].graph_accuracy == 1 for on in found.graphs)
    monkeypatch.setattr("mechgap.measures.at_sizes._drawn", None)  # nothing is looked at again
    again = call(monkeypatch, capsys, *asked, "--json")
    assert json.loads(again.stdout) == json.loads((run / FILE).read_text())


def test_small_graphs_as_lists_when_asked(tmp_path, monkeypatch, capsys):
    """The same graphs and networks: what is decided anyway is the same, and both are kept."""
    run = untrained_run(tmp_path / "run", seeds=(0,), hint_repred_mode="hard_on_eval")
    calls.measure_sizes(run, ["tree"], [7], count=3)
    asked = ("--graphs", "tree", "--nodes", "7", "--count", "3", "--lists")
    said = call(monkeypatch, capsys, "measure", run, *asked)
    assert "7 (lists)" in said.stdout
    matrices, lists = (load_sizes(run).of("tree", 7, 3, lists) for lists in (False, True))
    for name in ("accuracy", "graph_accuracy"):
        assert getattr(lists.seeds["0"], name) == getattr(matrices.seeds["0"], name)
    for name, beside in matrices.seeds["0"].mechanisms.items():
        assert lists.seeds["0"].mechanisms[name].tv == pytest.approx(beside.tv, abs=1e-5)


@pytest.mark.parametrize(("asked", "why"), [
    (["--graphs", "tree,moon"], "kind of graphs"),
    (["--graphs", "tree,ws", "--nodes", "0,4"], "at least 1"),
    (["--graphs", "tree,ws", "--count", "0"], "count must be at least 1"),
    (["--graphs", "tree,ws", "--causal"], "measured alone"),
    (["--nodes", "4,8"], "measured alone"),
    (["--lists"], "--lists needs kinds"),
    (["--graphs", "tree", "--nodes", "many"], "whole numbers"),
])  # fmt: skip
def test_what_cannot_be_asked_for(asked, why, tmp_path, monkeypatch, capsys):
    said = call(monkeypatch, capsys, "measure", untrained_run(tmp_path / "run"), *asked)
    assert said.returncode == 2
    assert why in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run" / FILE).exists()


def test_sizes_that_are_no_sizes(tmp_path):
    run = untrained_run(tmp_path / "run")
    (run / FILE).write_text("{}")
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_sizes(run)
