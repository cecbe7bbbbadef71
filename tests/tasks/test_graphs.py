"""Users' own graphs."""

import networkx as nx
import numpy as np
import pytest

from mechgap.tasks.graphs import from_graphs

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_a_matrix_becomes_a_batch():
    batch = from_graphs("bfs", PATH, 2)
    assert batch.outputs["pi"].tolist() == [[1, 2, 2]]
    assert batch.hints["reach_h"][:, 0].tolist() == [[0, 0, 1], [0, 1, 1], [1, 1, 1]]
    assert batch.inputs["adj"][0].tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]


def test_several_graphs_with_a_source_each():
    batch = from_graphs("bfs", [PATH, PATH.tolist()], [0, 2])
    assert batch.outputs["pi"].tolist() == [[0, 0, 1], [1, 2, 2]]


def test_networkx_graphs_keep_their_names_and_weights():
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 5.0)])
    batch = from_graphs("bellman_ford", graph, "a")
    assert batch.outputs["pi"].tolist() == [[0, 0, 1]]
    assert np.asarray(batch.hints["d"][-1, 0]).tolist() == [0.0, 1.0, 2.0]
    assert from_graphs("dfs", nx.path_graph(3, create_using=nx.DiGraph)).outputs["pi"].tolist() == [
        [0, 0, 1]
    ]


def test_edges_may_go_one_way_where_order_is_asked_for():
    batch = from_graphs("topological_sort", nx.DiGraph([("b", "c"), ("a", "b"), ("a", "c")]))
    # b, c and a are nodes 0, 1 and 2; each points to the next in the list a, b, c.
    assert batch.outputs["topo"].tolist() == [[1, 1, 0]]
    assert batch.outputs["topo_head"].tolist() == [[0, 0, 1]]


def test_weights_count_as_edges_where_the_task_has_none():
    assert from_graphs("bfs", PATH * 7.5).inputs["A"].tolist() == [PATH.tolist()]


def test_positions_may_be_given():
    assert np.allclose(
        from_graphs("bfs", PATH, pos=[0.1, 0.2, 0.9]).inputs["pos"], [[0.1, 0.2, 0.9]]
    )


@pytest.mark.parametrize(
    ("task", "graph", "source", "message"),
    [
        ("bfs", np.ones((2, 3)), 0, "must be square; got 2 x 3"),
        ("bfs", np.float64(3), 0, "must be square; got a single number"),
        ("bfs", "abc", 0, "square matrix of numbers or a NetworkX graph; got str"),
        ("bfs", [], 0, "at least one graph"),
        ("bfs", np.zeros((0, 0)), 0, "at least 1 node; got 0"),
        ("bfs", nx.Graph(), 0, "at least 1 node; got 0"),
        ("bfs", [[0, np.nan], [np.nan, 0]], 0, r"must be finite; got nan at \[0, 1\]"),
        ("dfs", [[0, np.inf], [0, 0]], 0, r"must be finite; got inf at \[0, 1\]"),
        ("bellman_ford", [[0, -1], [-1, 0]], 0, r"weights of at least 0; got -1.0 at \[0, 1\]"),
        (
            "bfs",
            [[0, 1], [0, 0]],
            0,
            r"because the network symmetrises .* \[0, 1\]",
        ),
        ("bellman_ford", [[0, 1], [2, 0]], 0, r"got 1 at \[0, 1\] and 2 at \[1, 0\]"),
        ("dijkstra", [[0, 1], [2, 0]], 0, "dijkstra needs a symmetric matrix"),
        ("topological_sort", PATH, 0, "without cycles or self-loops; .* among the nodes 0, 1, 2"),
        ("topological_sort", [[0, 1], [0, 1]], 0, "there is one among the nodes 1"),
        ("bfs", PATH, 3, r"source must be 0 … 2; got 3"),
        ("bfs", PATH, -1, r"source must be 0 … 2; got -1"),
        ("bfs", nx.path_graph(3), "x", "one of the graph's nodes; got 'x'"),
        ("bfs", PATH, [0, 1], "one per graph; got 2 for 1 graphs"),
        ("bfs", [PATH, np.ones((2, 2))], 0, r"same size; got \[2, 3\] nodes"),
        ("bsf", PATH, 0, "Did you mean 'bfs'"),
    ],
)
def test_bad_graphs_are_refused_with_the_reason(task, graph, source, message):
    with pytest.raises(ValueError, match=message):
        from_graphs(task, graph, source)


@pytest.mark.parametrize("pos", [[0.1, 0.2], [0.3, 0.2, 0.9], [0.1, 0.1, 0.2], [-1, 0, 1]])
def test_bad_positions_are_refused(pos):
    with pytest.raises(ValueError, match="pos must"):
        from_graphs("bfs", PATH, pos=pos)


def test_asymmetric_matrices_are_fine_for_dfs():
    assert from_graphs("dfs", [[0, 1], [0, 0]]).outputs["pi"].tolist() == [[0, 0]]
