"""Graphs of other kinds than CLRS's, against NetworkX and SciPy."""

import hashlib

import jax
import networkx as nx
import numpy as np
import pytest
from scipy.spatial import Delaunay

from dm_clrs_peer import DM_CLRS_TASKS, peer_trace, same_distribution
from mechgap.errors import InvalidInput
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.tasks.families import FAMILIES, triangulation
from mechgap.tasks.kinds import ER, KINDS, SPARSE, kinds_of
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import TASKS

GRAPHS, NODES = 400, 24


def drawn(name: str, nodes: int, graphs: int = 1, seed: int = 0) -> np.ndarray:
    keys = jax.random.split(jax.random.key(seed), graphs)
    return np.asarray(jax.jit(jax.vmap(lambda key: FAMILIES[name](key, nodes)))(keys))


def test_every_kind_has_a_generator():
    assert {ER, SPARSE, *FAMILIES} == set(KINDS)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 7, 16])
def test_graphs_are_undirected_connected_and_without_loops(name, nodes):
    for edges in drawn(name, nodes, 4):
        assert edges.shape == (nodes, nodes)
        assert (edges == edges.T).all()
        assert not edges.diagonal().any()
        if name != "ws":  # rewiring may cut a node off, though it hardly does
            assert nx.is_connected(nx.from_numpy_array(edges))


@pytest.mark.parametrize(
    ("name", "nodes", "peer"),
    [
        ("path", 9, nx.path_graph(9)),
        ("cycle", 9, nx.cycle_graph(9)),
        ("grid", 16, nx.grid_2d_graph(4, 4)),
        ("grid", 12, nx.grid_2d_graph(3, 4)),
        ("ladder", 12, nx.ladder_graph(6)),
        ("barbell", 9, nx.barbell_graph(3, 3)),
        ("barbell", 16, nx.barbell_graph(5, 6)),
        ("barbell", 17, nx.barbell_graph(6, 5)),
        ("ws", 5, nx.complete_graph(5)),
        ("ba", 3, nx.star_graph(2)),
    ],
)
def test_structured_graphs_are_networkx_s_with_random_names(name, nodes, peer):
    one, other = drawn(name, nodes, 2)
    assert nx.is_isomorphic(nx.from_numpy_array(one), peer)
    assert nx.is_isomorphic(nx.from_numpy_array(other), peer)
    if peer.number_of_edges() < nodes * (nodes - 1) // 2 and nodes > 3:
        assert (one != other).any()


def test_a_grid_that_is_not_full_lacks_the_end_of_its_last_row():
    full = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4), ordering="sorted")
    full.remove_nodes_from([10, 11])
    assert nx.is_isomorphic(nx.from_numpy_array(drawn("grid", 10)[0]), full)


def test_an_odd_ladder_has_one_node_more_at_an_end():
    peer = nx.ladder_graph(4)
    peer.add_edge(0, 8)
    assert nx.is_isomorphic(nx.from_numpy_array(drawn("ladder", 9)[0]), peer)


def test_trees_are_trees_and_all_are_as_likely():
    assert all(nx.is_tree(nx.from_numpy_array(tree)) for tree in drawn("tree", NODES, 50))
    trees = drawn("tree", 4, 4000)
    found, counts = np.unique(trees.reshape(4000, -1), axis=0, return_counts=True)
    assert len(found) == 4**2  # Cayley
    assert counts == pytest.approx(250, abs=5 * np.sqrt(250))


PEERS = {
    "tree": lambda seed: nx.random_labeled_tree(NODES, seed=seed),
    "ws": lambda seed: nx.watts_strogatz_graph(NODES, 4, 0.1, seed=seed),
    "ba": lambda seed: nx.barabasi_albert_graph(NODES, 2, seed=seed),
}


@pytest.mark.parametrize("name", PEERS)
def test_random_graphs_are_distributed_as_networkx_s(name):
    ours = [nx.from_numpy_array(edges) for edges in drawn(name, NODES, GRAPHS)]
    theirs = [PEERS[name](seed) for seed in range(GRAPHS)]

    def of_graphs(measure):
        return [np.array([measure(graph) for graph in graphs]) for graphs in (ours, theirs)]

    def degrees(graph):
        return sorted(dict(graph.degree).values())

    assert len({*map(nx.Graph.number_of_edges, [*ours, *theirs])}) == 1
    for a, b in zip(*(np.array(d).T for d in of_graphs(degrees)), strict=True):  # by rank
        off = np.hypot(a.std(), b.std()) / np.sqrt(GRAPHS)
        assert abs(a.mean() - b.mean()) <= 4.5 * off
    for measure in (
        lambda graph: max(dict(graph.degree).values()),
        lambda graph: sum(d**2 for _, d in graph.degree),
        nx.transitivity,
        lambda graph: nx.diameter(graph) if nx.is_connected(graph) else NODES,
    ):
        assert same_distribution(*of_graphs(measure)) > 1e-3


def test_another_probability_of_rewiring_would_be_noticed():
    """The test above can fail: these are not the same small worlds."""
    ours = [nx.transitivity(nx.from_numpy_array(e)) for e in drawn("ws", NODES, GRAPHS)]
    others = [
        nx.transitivity(nx.watts_strogatz_graph(NODES, 4, 0.13, seed=seed))
        for seed in range(GRAPHS)
    ]
    assert same_distribution(ours, others) < 1e-3


@pytest.mark.parametrize(("nodes", "graphs"), [(4, 100), (10, 100), (64, 50)])
def test_triangulations_are_scipy_s(nodes, graphs):
    points = jax.random.uniform(jax.random.key(nodes), (graphs, nodes, 2))
    for given, edges in zip(points, jax.jit(jax.vmap(triangulation))(points), strict=True):
        peer = np.zeros((nodes, nodes), bool)
        for triangle in Delaunay(np.asarray(given, np.float64)).simplices:
            peer[np.ix_(triangle, triangle)] = True
        assert np.array_equal(edges, peer & ~np.eye(nodes, dtype=bool))


def test_a_point_between_two_others_parts_them():
    points = np.array([[0, 0], [1, 0], [0.5, 0]], np.float32)
    assert np.asarray(triangulation(jax.numpy.asarray(points))).tolist() == [
        [False, False, True],
        [False, False, True],
        [True, True, False],
    ]


EDGES_BEFORE = {"undirected": "74f00c8ab6f1", "directed": "40ae1ff765ab", "acyclic": "b12c3c8ecd76"}
"""Checksums of CLRS's own graphs from before there were others."""


@pytest.mark.parametrize("name", TASKS)
def test_clrs_s_own_graphs_are_what_they_were(name):
    task = TASKS[name]
    batch = sample(name, jax.random.key(42), batch_size=16, nodes=12)
    edges = np.packbits(np.asarray(batch.inputs["A"]) != 0).tobytes()
    kind = "acyclic" if task.acyclic else "directed" if task.directed else "undirected"
    assert hashlib.sha256(edges).hexdigest()[:12] == EDGES_BEFORE[kind]
    same = sample(name, jax.random.key(42), batch_size=16, nodes=12, graphs="er")
    assert all(map(np.array_equal, jax.tree.leaves(batch), jax.tree.leaves(same)))


ALL = "+".join([*FAMILIES, "er-sparse"])


@pytest.mark.parametrize("name", ["dfs", "bfs"])
def test_sparse_graphs_have_the_edges_they_should(name):
    """As NetworkX's with p between log n / n and 3 log n / n, in mean and spread of edges."""
    nodes, graphs = 24, 600
    batch = sample(name, jax.random.key(3), batch_size=graphs, nodes=nodes, graphs="er-sparse")
    edges = np.asarray(batch.inputs["A"]) != 0
    directed = TASKS[name].directed
    assert (edges == edges.mT).all() != directed
    assert not edges.diagonal(axis1=1, axis2=2).any()
    rng, low = np.random.default_rng(0), np.log(nodes) / nodes
    theirs = [
        nx.gnp_random_graph(nodes, rng.uniform(low, 3 * low), seed=i, directed=directed).size()
        for i in range(graphs)
    ]
    ours = edges.sum(axis=(1, 2)) / (1 if directed else 2)
    assert same_distribution(ours, theirs) > 1e-3
    mixed = sample(name, jax.random.key(3), batch_size=graphs, nodes=nodes, graphs="er-sparse+er")
    loops = (np.asarray(mixed.inputs["A"]).diagonal(axis1=1, axis2=2) != 0).any(axis=-1)
    assert 0.4 < loops.mean() < 0.6, "half are CLRS's, which have self-loops"


@pytest.mark.parametrize("name", DM_CLRS_TASKS)
def test_traces_on_all_kinds_are_dm_clrs_s(name):
    """Also the longest: nothing is cut off."""
    task = TASKS[name]
    batch = sample(name, jax.random.key(1), batch_size=48, nodes=9, graphs=ALL)
    A = np.asarray(batch.inputs["A"])
    assert not A.diagonal(axis1=1, axis2=2).any()
    for i in range(batch.size):
        source = int(np.argmax(batch.inputs["s"][i])) if task.has_source else 0
        peer = peer_trace(task, A[i], source)
        assert int(batch.lengths[i]) == peer.length
        for output, value in peer.outputs.items():
            assert np.array_equal(batch.outputs[output][i], value), output


@pytest.mark.parametrize("name", [n for n, p in LIBRARY.items() if posed(p).tracer is not None])
def test_traces_of_programs_end_on_all_kinds(name):
    batch = sample(posed(LIBRARY[name]), jax.random.key(2), batch_size=128, nodes=16, graphs=ALL)
    assert int(batch.lengths.max()) <= batch.max_hints


def test_edges_are_as_the_task_has_them():
    given = {"batch_size": 8, "nodes": 12, "graphs": "tree"}
    A = {
        name: np.asarray(sample(name, jax.random.key(0), **given).inputs["A"])
        for name in ("bfs", "dfs", "topological_sort", "bellman_ford")
    }
    assert (A["bfs"] == A["bfs"].mT).all()
    assert np.array_equal(A["bfs"], A["dfs"])  # both ways
    one_way = A["topological_sort"]
    assert np.array_equal(one_way + one_way.mT, A["bfs"])
    assert not np.linalg.matrix_power(one_way, 12).any()
    assert np.array_equal(A["bellman_ford"] != 0, A["bfs"] != 0)


def test_weights_are_distributed_as_clrs_s():
    weights = [
        np.asarray(
            sample("bellman_ford", jax.random.key(3), batch_size=200, graphs=kind).inputs["A"]
        )
        for kind in ("er", "grid")
    ]
    off = np.triu(np.ones((16, 16), bool), 1)
    ours, clrs = (A[:, off][A[:, off] != 0][:4000] for A in weights)
    assert same_distribution(ours, clrs) > 1e-3


def test_a_mixture_holds_all_its_kinds_in_equal_shares():
    batch = sample("bfs", jax.random.key(0), batch_size=600, nodes=12, graphs="tree+er+cycle")
    A = np.asarray(batch.inputs["A"])
    degrees = A.sum(-1)
    is_cycle = (degrees == 2).all(1) & ~A.diagonal(axis1=1, axis2=2).any(1)
    is_tree = np.array([nx.is_tree(nx.from_numpy_array(edges)) for edges in A])
    shares = np.array([is_tree.mean(), is_cycle.mean(), 1 - is_tree.mean() - is_cycle.mean()])
    assert shares == pytest.approx(1 / 3, abs=0.08)


def test_mixtures_can_be_jitted_and_vmapped():
    def draw(key):
        return sample("bfs", key, batch_size=3, nodes=6, graphs="+".join(KINDS))

    keys = jax.random.split(jax.random.key(0), 3)
    many = jax.jit(jax.vmap(draw))(keys)
    assert np.array_equal(many.inputs["A"][2], draw(keys[2]).inputs["A"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tre", "unknown kind of graphs 'tre'. Did you mean 'tree'?"),
        ("tree+", "unknown kind of graphs ''"),
        ("tree+grid+tree", "each kind of graphs is named once; got 'tree+grid+tree'"),
    ],
)
def test_unknown_kinds_are_refused(text, message):
    with pytest.raises(InvalidInput) as refused:
        kinds_of(text)
    assert message in str(refused.value)
    with pytest.raises(InvalidInput):
        sample("bfs", jax.random.key(0), graphs=text)
