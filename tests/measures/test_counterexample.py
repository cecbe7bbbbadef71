"""The smallest graph on which a network is wrong."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap import InvalidInput
from mechgap.calls import compile, counterexamples
from mechgap.compiler.exhaustive import exhaustive
from mechgap.measures import counterexample as searching
from mechgap.measures.counterexample import smallest_wrong
from mechgap.measures.counterexamples import FILE
from mechgap.network.network import Network
from mechgap.network.trace import outputs
from mechgap.programs.library import LIBRARY
from mechgap.tasks.enumerated import every_graph
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.sampling import sample
from mechgap.tasks.scores import right_graphs
from mechgap.tasks.specs import get_task
from mechgap.training.run import Run
from untrained_runs import untrained_run

BFS = get_task("bfs")


def asked(network, found):
    """What a network says of a counterexample, made anew."""
    A = np.zeros((found.nodes, found.nodes))
    for a, b, weight in found.edges:
        A[a, b] = A[b, a] = weight
    batch = from_graphs("bfs", A, found.source)
    return batch, outputs(network, batch)


def test_a_compiled_network_is_right_on_all():
    network = compile("bfs", "stock-ln", 8).network
    found = smallest_wrong(network, BFS, 4, [LIBRARY["bfs"]], beyond=(8,))
    assert found.found is None
    assert found.all_of == {1: 1, 2: 4, 3: 24, 4: 256}
    assert "none among all 285 graphs up to 4 nodes" in found.sentence


def test_the_first_wrong_graph_is_told():
    network = Network.initial("bfs", jax.random.key(0))
    searched = smallest_wrong(network, BFS, 4, [LIBRARY["bfs"]])
    found = searched.found
    assert found is not None
    batch, said = asked(network, found)
    assert not right_graphs(batch, said)[0]
    answers = np.asarray(said["pi"]).argmax(-1)[0]
    assert {w.node: w.answered for w in found.wrong} == {
        i: answers[i] for i in np.flatnonzero(answers != np.asarray(batch.outputs["pi"])[0])
    }
    # All before it are right.
    before = sum(searched.all_of.values()) - 1
    for nodes in range(1, found.nodes + 1):
        for every in every_graph(BFS, nodes):
            right = np.asarray(right_graphs(every, outputs(network, every)))[:before]
            assert right.all()
            before -= len(right)
    assert before == 0


def test_larger_graphs_are_searched_and_lose_edges(monkeypatch):
    """A network that is the program up to four nodes, and forgets to attend beyond them."""
    network = compile("bfs", "general", 8).network

    def wrong_beyond(net, batch):
        margin, right = original(net, batch)
        large = (batch.nodes > 4) & (jnp.sum(batch.inputs["A"] > 0, axis=(1, 2)) >= 6)
        return jnp.where(large, -1.0, margin), right & ~large

    original = searching._margins
    monkeypatch.setattr(searching, "_margins", wrong_beyond)
    searched = smallest_wrong(network, BFS, 3, beyond=(8,))
    assert searched.all_of == {1: 1, 2: 4, 3: 24}
    assert searched.found is not None
    # The fewest edges that are six entries; one less, and it would be right.
    assert sum(1 if a == b else 2 for a, b, _ in searched.found.edges) in (6, 7)


def test_climbing_keeps_graphs_without_cycles():
    one = sample("topological_sort", jax.random.key(1), batch_size=1, nodes=9, random_pos=False)
    others = searching._with_another_edge(one, np.random.default_rng(0))
    A = np.asarray(others.inputs["A"]) > 0
    assert not np.linalg.matrix_power(A.astype(int), 9).any()
    changed = ((np.asarray(one.inputs["A"]) > 0) != A).sum((1, 2))
    assert (changed == 1).all()


def test_every_seed_of_a_run_once(tmp_path):
    folder = untrained_run(tmp_path / "run", seeds=(0, 1))
    first = counterexamples(folder, max_nodes=3)
    assert list(first.seeds) == [0, 1]
    written = json.loads((folder / FILE).read_text())
    assert written["seeds"]["0"]["sentence"] == first.seeds[0].sentence
    del written["seeds"]["1"]
    written["seeds"]["0"]["all_of"] = {"1": 77}  # is left as it is
    (folder / FILE).write_text(json.dumps(written))
    again = counterexamples(Run.open(folder), max_nodes=3)
    assert again.seeds[0].all_of == {1: 77}
    assert again.seeds[1] == first.seeds[1]
    assert counterexamples(folder, max_nodes=2).seeds[0].all_of != {1: 77}


def test_what_cannot_be_searched(tmp_path):
    folder = untrained_run(tmp_path / "run", seeds=(0,))
    with pytest.raises(InvalidInput, match=r"are enumerated\. Ask for up to 6 nodes"):
        counterexamples(folder, max_nodes=9)
    with pytest.raises(InvalidInput, match="kind of parameters"):
        counterexamples(folder, "frist")
    biased = untrained_run(tmp_path / "biased", seeds=(0,), use_pre_att_bias=True)
    with pytest.raises(InvalidInput, match="one size only"):
        counterexamples(biased)


def test_a_program_is_verified_on_every_graph():
    found = list(exhaustive(lambda n: compile("bfs", "paper", n), 4))
    assert [(each.nodes, each.graphs, each.inside) for each in found] == [
        (1, 1, 1), (2, 4, 4), (3, 24, 24), (4, 256, 256)
    ]  # fmt: skip
    assert all(each.exact for each in found)


def test_a_spoiled_network_is_not_exact_on_every_graph():
    def spoiled(nodes):
        compiled = compile("bfs", "general", nodes)
        weight = compiled.network.processor.value.weight
        network = eqx.tree_at(lambda n: n.processor.value.weight, compiled.network, -weight)
        return replace(compiled, network=network)

    found = list(exhaustive(spoiled, 3))
    assert not found[-1].exact
    assert found[-1].first is not None
    assert found[-1].sentence.startswith("NOT exact: ")
