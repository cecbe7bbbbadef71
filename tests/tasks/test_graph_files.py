"""Graphs from files, whole and broken."""

import networkx as nx
import numpy as np
import pytest

from mechgap.errors import InvalidInput
from mechgap.tasks import memory
from mechgap.tasks.graph_files import batch_from_files, read_graphs

WEIGHTED = nx.Graph()
WEIGHTED.add_weighted_edges_from([(0, 1, 0.5), (1, 2, 0.25), (0, 3, 2.0)])
MATRIX = nx.to_numpy_array(WEIGHTED, nodelist=range(4))


def written(folder, ending, graph=WEIGHTED):
    path = folder / f"mine{ending}"
    match ending:
        case ".graphml":
            nx.write_graphml(graph, path)
        case ".gml":
            nx.write_gml(graph, path)
        case ".edgelist":
            nx.write_edgelist(graph, path)  # with dictionaries
        case ".txt":
            nx.write_weighted_edgelist(graph, path)
        case ".csv":
            nx.write_weighted_edgelist(graph, path, delimiter=",")
        case _:
            np.savez(path, graph=nx.to_numpy_array(graph))
    return path


@pytest.mark.parametrize("ending", [".graphml", ".gml", ".edgelist", ".txt", ".csv", ".npz"])
def test_every_kind_of_file_has_the_same_graph(tmp_path, ending):
    path = written(tmp_path, ending)
    (matrix,) = read_graphs(path, "bellman_ford")
    assert np.array_equal(matrix, MATRIX)
    if ending != ".npz":  # a matrix keeps its weights until the task says what an edge is
        assert np.array_equal(read_graphs(path, "bfs")[0], matrix != 0)


def test_a_list_of_edges_may_have_a_header_comments_and_names(tmp_path):
    path = tmp_path / "roads.csv"
    path.write_text("source,target,weight\n# north\nbern, thun, 0.3\nthun,spiez,0.1\n\n")
    (matrix,) = read_graphs(path, "bellman_ford")
    assert matrix.tolist() == [[0, 0.3, 0], [0.3, 0, 0.1], [0, 0.1, 0]]
    path.write_text("2 0\n0 1\n")  # whole numbers are in their own order
    assert read_graphs(path, "bfs")[0].tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert read_graphs(path, "dfs")[0].tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_a_single_graph_is_searched_from_several_nodes(tmp_path):
    path = written(tmp_path, ".graphml")
    assert sorted(batch_from_files("bfs", [path]).inputs["s"].argmax(-1).tolist()) == [0, 1, 2, 3]
    assert batch_from_files("bfs", [path], count=2).size == 2
    assert batch_from_files("bfs", [path], sources=[3]).inputs["s"].argmax(-1).tolist() == [3]
    assert batch_from_files("dfs", [path]).size == 1
    large = written(tmp_path, ".npz", nx.cycle_graph(50))
    sources = batch_from_files("bfs", [large]).inputs["s"].argmax(-1).tolist()
    assert len(set(sources)) == 32
    assert sources == batch_from_files("bfs", [large]).inputs["s"].argmax(-1).tolist()


def test_several_graphs_have_a_source_each(tmp_path):
    path = tmp_path / "many.npz"
    np.savez(path, a=np.stack([MATRIX, MATRIX]), b=MATRIX)
    batch = batch_from_files("bellman_ford", [path, path])
    assert (batch.size, batch.nodes) == (6, 4)
    assert batch_from_files("bfs", [path], count=2).size == 2
    given = batch_from_files("bfs", [path], sources=[1, 2, 3])
    assert given.inputs["s"].argmax(-1).tolist() == [1, 2, 3]


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


def text(content):
    return lambda path: path.write_text(content)


BAD = {
    "no file": ("none.gml", None, "bfs", "there is no file"),
    "ending": ("mine.dot", text("graph {}"), "bfs", "unknown kind of file of graphs"),
    "broken GraphML": ("mine.graphml", text("<graphml><graph"), "bfs", "cannot be read as .gr"),
    "not GraphML": ("mine.graphml", text("<html></html>"), "bfs", "holds no graphs"),
    "broken GML": ("mine.gml", text("graph [ node [ id"), "bfs", "cannot be read as .gml"),
    "not text": ("mine.csv", lambda p: p.write_bytes(b"\xff\xfe\x00"), "bfs", "cannot be read as"),
    "one node": ("mine.txt", text("0 1\n2\n"), "bfs", "got '2' in line 2"),
    "no number": ("mine.txt", text("0 1 far\n"), "bellman_ford", "got '0 1 far' in line 1"),
    "a gap": ("mine.csv", text("0,,3\n"), "bfs", "got '0,,3' in line 1"),
    "two weights": ("mine.txt", text("0 1 2\n1 0 3\n"), "bfs", "must have one weight"),
    "no weights": ("mine.txt", text("0 1\n"), "bellman_ford", "needs the weight of every edge"),
    "weight 0": ("mine.txt", text("0 1 0\n"), "bellman_ford", "must be above 0"),
    "NaN": ("mine.txt", text("0 1 nan\n"), "bellman_ford", "weights must be finite; got nan"),
    "negative": ("mine.txt", text("0 1 -2\n"), "bellman_ford", "weights of at least 0; got -2.0"),
    "empty list": ("mine.txt", text("# nothing\n"), "bfs", "at least 1 node; got 0"),
    "empty GraphML": (
        "mine.graphml",
        lambda path: nx.write_graphml(nx.Graph(), path),
        "bfs",
        "at least 1 node; got 0",
    ),
    "no edges": ("mine.npz", npz(a=np.zeros((3, 3))), "bfs", "a graph needs an edge"),
    "directed": (
        "mine.graphml",
        lambda path: nx.write_graphml(nx.DiGraph([(0, 1)]), path),
        "bfs",
        "bfs needs an undirected graph; this one is directed",
    ),
    "directed matrix": ("mine.npz", npz(a=np.eye(3, k=1)), "bfs", "needs a symmetric matrix"),
    "a cycle": ("mine.txt", text("0 1\n1 0\n"), "topological_sort", "without cycles"),
    "parallel": (
        "mine.graphml",
        lambda path: nx.write_graphml(nx.MultiGraph([(0, 1), (0, 1)]), path),
        "bfs",
        "joined by one edge only",
    ),
    "sizes": ("mine.npz", npz(a=np.ones((3, 3)), b=np.ones((4, 4))), "bfs", "the same size"),
    "no zip": ("mine.npz", text("no"), "bfs", "cannot be read as .npz"),
    "no arrays": ("mine.npz", npz(), "bfs", "holds no graphs"),
    "not square": ("mine.npz", npz(a=np.ones((2, 3))), "bfs", "'a' is 2 x 3"),
    "no nodes": ("mine.npz", npz(a=np.ones((0, 0))), "bfs", "a graph needs"),
    "words": ("mine.npz", npz(a=np.array([["x"]])), "bfs", "must hold numbers"),
    "objects": ("mine.npz", npz(a=np.array([[None]])), "bfs", "must hold numbers"),
    "only edges": ("mine.npz", npz(a=np.ones((2, 2), bool)), "mst_prim", "needs weights"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_one_line(tmp_path, case):
    name, write, task, message = BAD[case]
    path = tmp_path / name
    if write is not None:
        write(path)
    with pytest.raises(InvalidInput) as refused:
        batch_from_files(task, [path])
    assert message in str(refused.value)
    assert str(path) in str(refused.value)


def test_what_does_not_fit_is_refused_before_it_is_made(tmp_path, monkeypatch):
    path = written(tmp_path, ".npz", nx.cycle_graph(100))
    edges = written(tmp_path, ".edgelist", nx.cycle_graph(100))
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
    for file in (path, edges):
        with pytest.raises(InvalidInput, match=r"GB of memory; 0\.0 GB are available\. Take"):
            batch_from_files("bfs", [file])
    monkeypatch.setattr(memory, "available_memory", lambda: 800_000)
    with pytest.raises(InvalidInput, match=r"searched from 32 nodes.*--count"):
        batch_from_files("bfs", [path])
    assert batch_from_files("bfs", [path], count=2).size == 2
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert batch_from_files("bfs", [path]).size == 32


def test_a_file_that_only_says_it_is_huge_is_not_read(tmp_path):
    import zipfile

    path = tmp_path / "huge.npz"
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)}
    with zipfile.ZipFile(path, "w") as packed, packed.open("a.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(InvalidInput, match=r"'a' needs about .* GB of memory"):
        read_graphs(path, "bfs")


def test_how_much_memory_there_is():
    there = memory.available_memory()
    assert there is None or there > 10**6


def test_counts_and_files_must_be_there(tmp_path):
    with pytest.raises(InvalidInput, match="at least one file"):
        batch_from_files("bfs", [])
    with pytest.raises(InvalidInput, match="count must be at least 1; got 0"):
        batch_from_files("bfs", [written(tmp_path, ".gml")], count=0)
