"""Runs measured on other graphs than their test set."""

import json
from functools import partial

import networkx as nx
import numpy as np
import pytest

from command_line import call
from mechgap.errors import InvalidInput
from mechgap.measures.elsewhere import other_graphs, own_graphs
from mechgap.measures.reference import compile_reference
from mechgap.tasks import memory
from mechgap.training.presets import make_recipe
from untrained_runs import untrained_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = untrained_run(tmp_path_factory.mktemp("runs") / "bfs", seeds=(0,))
    (made / "measures.json").write_text("the run's own")
    return made


@pytest.fixture
def mechgap(monkeypatch, capsys):
    return partial(call, monkeypatch, capsys)


def everything(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_is_measured_on_other_graphs(folder, mechgap):
    done = mechgap("measure", folder, "--graphs", "tree", "--nodes", 9, "--count", 4, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["graphs"] == {
        "name": "tree-9-4-graphs",
        "count": 4,
        "nodes": 9,
        "deep": 40,
        "outside_certificate": 0,
        "constant_outputs": [],
    }
    assert list(found["seeds"]) == ["0"]
    compiled = found["baselines"]["compiled"]
    assert (compiled["accuracy"], compiled["graph_accuracy"], compiled["external"]) == (1, 1, 1)
    assert compiled["gaps"]["test"]["bfs"]["agreement"] == 1
    written = json.loads((folder / "elsewhere/tree-9-4-graphs/measures.json").read_text())
    assert written == found
    assert (folder / "elsewhere/tree-9-4-graphs/measures.safetensors").is_file()
    assert (folder / "measures.json").read_text() == "the run's own"
    assert not (folder / "measures.safetensors").exists()


def test_a_run_is_measured_on_the_user_s_graphs(folder, mechgap, tmp_path):
    nx.write_graphml(nx.karate_club_graph().subgraph(range(9)), tmp_path / "my club.graphml")
    done = mechgap("measure", folder, "--graphs-from", tmp_path / "my club.graphml", "--count", 4)
    assert done.returncode == 0, done.stderr
    assert "on my_club: 4 graphs of 9 nodes" in done.stdout
    assert f"written: {folder}/elsewhere/my_club/measures.json" in done.stdout
    assert (folder / "elsewhere/my_club/measures.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--graphs", "tre"], "unknown kind of graphs 'tre'. Did you mean 'tree'?"),
        (["--graphs", "tree", "--nodes", "0"], "a graph needs at least 1 node; got 0"),
        (["--graphs", "tree", "--count", "0"], "count must be at least 1; got 0"),
        (["--graphs", "tree", "--nodes", "9000000"], "GB of memory"),
        (["--graphs", "tree", "--graphs-from", "a.gml"], "not both"),
        (["--graphs-from", "a.gml", "--nodes", "8"], "nodes is the size of other graphs"),
        (["--nodes", "8"], "nodes is the size of other graphs"),
        (["--count", "8"], "count is of other graphs"),
        (["--graphs-from", "none.gml"], "there is no file 'none.gml'"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(folder, mechgap, arguments, message):
    before = everything(folder)
    done = mechgap("measure", folder, *arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert message in done.stderr
    assert everything(folder) == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.graphml", "<graphml", "cannot be read as .graphml"),
        ("mine.gml", "graph [", "cannot be read as .gml"),
        ("mine.dot", "graph {}", "unknown kind of file"),
        ("mine.npz", "no zip", "cannot be read as .npz"),
        ("mine.csv", "", "at least 1 node; got 0"),
        ("mine.gml", "graph [ directed 1 node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]",
         "bfs needs an undirected graph"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line_and_nothing_is_written(
    folder, mechgap, tmp_path, name, content, message
):
    (tmp_path / name).write_text(content)
    before = everything(folder)
    done = mechgap("measure", folder, "--graphs-from", tmp_path / name)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert message in done.stderr
    assert everything(folder) == before


def test_a_bias_ties_networks_to_one_size(tmp_path):
    given = {"use_pre_att_bias": True, "train_lengths": (6,), "length_generalize": False}
    recipe = make_recipe("bfs", overrides=given)
    with pytest.raises(InvalidInput, match="to graphs of 6 nodes; got 7"):
        other_graphs(recipe, "tree", 7)
    np.savez(tmp_path / "mine.npz", nx.to_numpy_array(nx.cycle_graph(7)))
    with pytest.raises(InvalidInput, match="to graphs of 6 nodes; got 7"):
        own_graphs(recipe, [tmp_path / "mine.npz"])
    assert other_graphs(recipe, "tree", 6, 2).batch.nodes == 6


def test_long_traces_that_do_not_fit_are_refused(monkeypatch):
    recipe = make_recipe("bfs")
    monkeypatch.setattr(memory, "available_memory", lambda: 12 * 4 * 2 * 16**2)
    with pytest.raises(InvalidInput, match="to measure 2 graphs of 16 nodes needs about"):
        other_graphs(recipe, "path", 16, 2)


def test_names_of_files_stay_inside_the_folder(tmp_path):
    path = tmp_path / "...npz"
    with path.open("wb") as file:
        np.savez(file, nx.to_numpy_array(nx.cycle_graph(3)))
    assert own_graphs(make_recipe("bfs"), [path]).name == "graphs"


def test_the_compiled_network_is_made_for_the_distances_of_other_graphs():
    recipe = make_recipe("bellman_ford")
    batch = other_graphs(recipe, "path", 32, 4).batch
    assert float(batch.hints["d"].max()) > 4  # more than CLRS's graphs have
    usual, wider = (compile_reference(recipe, 32, each).compiled for each in (None, batch))
    assert usual is not None
    assert wider is not None
    assert any(where.any() for where in usual.outside(batch).values())
    assert not any(where.any() for where in wider.outside(batch).values())
