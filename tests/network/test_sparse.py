"""The network on lists of edges is the network on matrices."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.errors import InvalidInput
from mechgap.network import lists
from mechgap.network.config import NetworkConfig
from mechgap.network.decoders import postprocess
from mechgap.network.network import Network
from mechgap.network.sparse import everything, run_on_edges
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY
from mechgap.tasks.edge_lists import EdgeLists
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import Type, get_task

TASKS = ("bfs", "bellman_ford", "dfs", "topological_sort", "dijkstra", "mst_prim")
HARD: dict[str, Any] = {"hint_repred_mode": "hard_on_eval"}


def graphs(task, nodes=9, key=0, size=3):
    """Sparse ones, of different numbers of edges."""
    return sample(
        task, jax.random.key(key), batch_size=size, nodes=nodes, graphs="er-sparse"
    ).trim()


def assert_same(network, batch):
    """Hints, outputs and attention of both ways, while both have come to the same decisions."""
    dense = run(network, batch)
    found = run_on_edges(network, EdgeLists.of(batch), everything)
    decided = postprocess(batch.task.hints, dense.hints, hard=True) if dense.hints else {}
    for f in batch.task.hints if dense.hints else ():
        wanted = np.asarray(decided[f.name])
        wanted = wanted.argmax(-1) if f.type is Type.POINTER else wanted
        np.testing.assert_allclose(found.hints[f.name], wanted, atol=2e-4, err_msg=f.name)
    for f in batch.task.outputs:
        wanted = np.asarray(dense.outputs[f.name])
        wanted = wanted.argmax(-1) if f.type is Type.POINTER else wanted
        np.testing.assert_allclose(found.outputs[f.name], wanted, atol=2e-4, err_msg=f.name)
    attention, (receivers, senders, _) = found.kept
    matrix = np.zeros((*dense.attention.shape[:3], batch.nodes + 1, batch.nodes + 1))
    time, sample, head = np.ogrid[tuple(slice(n) for n in dense.attention.shape[:3])]
    rows, columns = (np.asarray(x)[:, :, None] for x in (receivers, senders))
    matrix[time[..., None], sample[..., None], head[..., None], rows, columns] = attention
    seen = np.zeros(matrix.shape, bool)
    seen[time[..., None], sample[..., None], head[..., None], rows, columns] = True
    seen = seen[..., :-1, :-1]
    wanted = np.where(seen, np.asarray(dense.attention), 0)
    np.testing.assert_allclose(matrix[..., :-1, :-1], wanted, atol=1e-5)
    if not network.config.attends_to_all:
        np.testing.assert_allclose(wanted.sum(-1), 1, atol=1e-5)  # nobody is missing


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("full", [False, True], ids=["along edges", "to all"])
def test_untrained_networks_are_the_same(task, full):
    """Their pointers point anywhere, so lists grow along them."""
    config = NetworkConfig(
        hidden_size=12,
        nb_heads=2,
        nb_msg_passing_steps=2,
        use_edge_info=True,
        processor_type="gatv2_full" if full else "gatv2",
        **HARD,
    )
    network = Network.initial(task, jax.random.key(1), config)
    assert_same(network, graphs(task))


@pytest.mark.parametrize("more", [{"hint_mode": "none"}, {"hint_mode": "decoded_only"},
                                  {"simplify_decoders": True}, {"use_ln": False}])  # fmt: skip
def test_every_option_is_the_same(more):
    config = NetworkConfig(hidden_size=8, **{**HARD, **more})
    assert_same(Network.initial("bfs", jax.random.key(2), config), graphs("bfs", size=4))


@pytest.mark.parametrize(("name", "target"), [
    ("bfs", "stock-ln"), ("bellman_ford", "general"), ("dfs", "stock"),
    ("topological_sort", "stock"), ("dijkstra", "full"), ("mst_prim", "full"),
])  # fmt: skip
def test_compiled_networks_are_the_same(name, target):
    program = LIBRARY[name]
    network = compile_program(program, TARGETS[target], Domain.regular(program, 12)).network
    network = Network(
        network.task, replace(network.config, **HARD), network.encoders, network.processor,
        network.decoders,
    )  # fmt: skip
    assert_same(network, sample(name, jax.random.key(3), batch_size=2, nodes=12,
                                random_pos=False, graphs="er-sparse").trim())  # fmt: skip


@pytest.mark.parametrize("block", [100, 1 << 22], ids=["in blocks", "at once"])
def test_plain_jax_is_the_same(block, monkeypatch):
    monkeypatch.setattr(lists, "runs_natively", lambda: False)
    monkeypatch.setattr(lists, "BLOCK", block)
    jax.clear_caches()
    config = NetworkConfig(hidden_size=8, processor_type="gatv2_full", use_edge_info=True, **HARD)
    for task in ("bfs", "dijkstra"):
        assert_same(Network.initial(task, jax.random.key(4), config), graphs(task, nodes=7))
    jax.clear_caches()


def test_a_list_is_the_graph():
    batch = graphs("dfs")
    lists = EdgeLists.of(batch)
    for k in range(batch.size):
        real = np.asarray(lists.receivers[k]) < batch.nodes
        r, s = np.asarray(lists.receivers[k])[real], np.asarray(lists.senders[k])[real]
        A = np.zeros((batch.nodes, batch.nodes))
        A[r, s] = np.asarray(lists.inputs["A"][k])[real]
        np.testing.assert_array_equal(A, batch.inputs["A"][k])
        back = np.asarray(lists.opposite[k])[: len(r)]
        np.testing.assert_array_equal(r[back], s)
        np.testing.assert_array_equal(s[back], r)
        assert list(zip(r, s, strict=True)) == sorted(zip(r, s, strict=True))


def test_what_cannot_run_on_lists():
    batch = graphs("bfs")
    lists = EdgeLists.of(batch)
    tied = NetworkConfig(hidden_size=4, use_pre_att_bias=True, pre_att_bias_nodes=batch.nodes)
    with pytest.raises(InvalidInput, match="Run it on matrices"):
        run_on_edges(Network.initial("bfs", jax.random.key(0), tied), lists)
    with pytest.raises(InvalidInput, match="cannot run on graphs of bfs"):
        run_on_edges(Network.initial("dfs", jax.random.key(0)), lists)
    task = get_task("bfs")
    on_edges = replace(task.hints[0], location=type(task.hints[0].location).EDGE)
    other = replace(task, features=(*task.inputs, on_edges, *task.outputs))
    with pytest.raises(InvalidInput, match="told for pairs of nodes"):
        EdgeLists.of(type(batch)(other, batch.inputs, batch.hints, batch.outputs, batch.lengths))
