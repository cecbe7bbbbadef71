"""A program on lists of edges does what it does on matrices."""

import jax
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from mechgap.errors import InvalidInput
from mechgap.programs.interpreter import interpret
from mechgap.programs.library import LIBRARY
from mechgap.programs.on_edges import listed_graph, run_on_edges
from mechgap.tasks.edge_lists import EdgeLists, Edges
from mechgap.tasks.sampling import sample


@pytest.mark.parametrize("name", LIBRARY)
def test_it_is_the_interpreter(name):
    program = LIBRARY[name]
    batch = sample(program.task, jax.random.key(5), batch_size=4, nodes=9, graphs="er-sparse")
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    wanted = interpret(program, inputs, steps=None)
    for k in range(batch.size):
        edges = Edges.of(9, *np.nonzero(inputs["adj"][k] + inputs["A"][k]))
        at = edges.receivers, edges.senders
        mine = {n: v[k] if v.ndim == 2 else v[k][at] for n, v in inputs.items()}
        steps = len(next(iter(wanted.states.values()))) - 1
        found = run_on_edges(program, edges, mine, steps)
        if found.tied is not None:
            senders = found.senders[..., edges.receivers] == edges.senders
            acceptable = wanted.acceptable[:, k][:, edges.receivers, edges.senders]
            assert np.array_equal((found.tied | senders)[:, 0], acceptable)
        for field in ("senders", "updated", "shared", "widened"):
            assert np.array_equal(getattr(found, field), getattr(wanted, field)[:, [k]]), field
        for component, values in wanted.states.items():
            assert np.array_equal(found.states[component], values[:, [k]]), component
        assert (found.hops, found.carried) == (wanted.hops[k], wanted.carried[k])
        np.testing.assert_allclose(found.gaps, wanted.gaps[:, [k]], rtol=1e-12)
        assert run_on_edges(program, edges, mine).length == found.length


def test_a_large_graph_is_scipys():
    """Ten thousand nodes; distances and levels are those of SciPy."""
    nodes = 10_000
    graph = nx.gnm_random_graph(nodes, 30_000, seed=1)
    one, other = np.array(graph.edges).T
    weight = np.random.default_rng(0).uniform(0.1, 1, len(one))
    edges = Edges.of(nodes, one, other)
    matrix = csr_array((np.r_[weight, weight], (np.r_[one, other], np.r_[other, one])))
    A = np.asarray(matrix[edges.receivers, edges.senders]).reshape(-1)
    source = np.zeros(nodes)
    source[17] = 1
    inputs = {"pos": np.arange(nodes) / nodes, "s": source, "A": A, "adj": 1.0 * (A > 0)}
    found = run_on_edges(LIBRARY["bellman_ford"], edges, inputs)
    wanted = shortest_path(matrix, indices=17)
    reached = np.isfinite(wanted)
    np.testing.assert_allclose(found.states["dist"][-1, 0][reached], wanted[reached], atol=1e-9)
    hops = shortest_path(matrix, unweighted=True, indices=17)
    inputs |= {"A": inputs["adj"]}
    found = run_on_edges(LIBRARY["bfs"], edges, inputs)
    assert found.length == 1 + hops[np.isfinite(hops)].max()
    parents = np.rint(found.states["pi"][-1, 0] * nodes).astype(int)
    inner = np.flatnonzero(np.isfinite(hops) & (hops > 0))
    assert (hops[parents[inner]] == hops[inner] - 1).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_a_list_has_every_edge_both_ways_once(nodes, told):
    ends = [(a % nodes, b % nodes) for a, b in told]
    one, other = np.array(ends, int).reshape(-1, 2).T
    edges = Edges.of(nodes, one, other)
    pairs = list(zip(edges.receivers.tolist(), edges.senders.tolist(), strict=True))
    wanted = {*ends, *((b, a) for a, b in ends), *((i, i) for i in range(nodes))}
    assert pairs == sorted(wanted)
    assert [pairs[k] for k in edges.opposite] == [(b, a) for a, b in pairs]
    assert all(edges.receivers[edges.offsets[i]] == i for i in range(nodes))
    everyone = np.arange(nodes)
    listed, at = edges.place(np.repeat(everyone, nodes), np.tile(everyone, nodes))
    queries = [(i, j) for i in range(nodes) for j in range(nodes)]
    assert listed.tolist() == [pair in wanted for pair in queries]
    assert all(pairs[k] == q for k, q, is_in in zip(at, queries, listed, strict=True) if is_in)


def test_what_is_no_list():
    nothing = np.zeros(0, int)
    with pytest.raises(InvalidInput, match="at least 1 node"):
        Edges.of(0, nothing, nothing)
    with pytest.raises(InvalidInput, match="from 0 to 2; got 1-3"):
        Edges.of(3, np.array([0, 1]), np.array([1, 3]))
    alone = Edges.of(1, nothing, nothing)
    inputs = {"pos": np.zeros(1), "s": np.ones(1), "A": np.zeros(1), "adj": np.zeros(1)}
    assert run_on_edges(LIBRARY["bfs"], alone, inputs).length == 1


def test_edges_without_direction_have_one_number():
    edges = Edges.of(3, np.array([0, 1]), np.array([1, 2]))
    inputs = {"pos": np.arange(3) / 3, "s": np.eye(3)[0], "adj": np.ones(7), "A": np.ones(7)}
    assert run_on_edges(LIBRARY["bellman_ford"], edges, inputs).length == 3
    weights = np.where((edges.receivers == 1) & (edges.senders == 0), 0.5, 1.0)
    one_way = {**inputs, "A": weights}
    for run in (run_on_edges, lambda *graph: listed_graph(*graph, hints=3)):
        with pytest.raises(InvalidInput, match=r"'A' is the same both ways; got 1 at 0-1 and 0.5"):
            run(LIBRARY["bellman_ford"], edges, one_way)
    assert run_on_edges(LIBRARY["dfs"], edges, one_way).length  # has directed graphs


@pytest.mark.parametrize("name", ["bfs", "bellman_ford", "dfs"])
def test_a_graph_for_a_network_is_that_of_a_batch(name):
    """Its list, inputs and first hints."""
    program = LIBRARY[name]
    batch = sample(program.task, jax.random.key(6), batch_size=1, nodes=9, graphs="tree").trim()
    wanted = EdgeLists.of(batch)
    edges, inputs = wanted.graph(0)
    found = listed_graph(program, edges, inputs, int(batch.lengths[0]))
    real = len(edges.receivers)
    assert (found.steps, int(found.lengths[0])) == (wanted.steps, int(wanted.lengths[0]))
    for part in ("receivers", "senders", "opposite"):
        assert np.array_equal(getattr(found, part), getattr(wanted, part)[:, :real]), part
    assert np.array_equal(found.offsets, wanted.offsets)
    for name, values in found.inputs.items():
        assert np.array_equal(values[0], np.float32(inputs[name])), name
    for name, values in found.hints.items():
        assert np.array_equal(values, wanted.hints[name]), name
