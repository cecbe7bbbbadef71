"""What the programs mean: CLRS's traces, and plain Python where CLRS has none."""

import jax
import networkx as nx
import numpy as np
import pytest

import mechgap.lang
from mechgap.programs.components import Kind
from mechgap.programs.evaluation import pointed
from mechgap.programs.interpreter import execution_batch, interpret
from mechgap.programs.library import (
    LIBRARY,
    reachability,
    smallest_label,
    strongest_neighbour,
)
from mechgap.programs.validate import problems
from mechgap.tasks.official import official
from mechgap.tasks.sampling import sample


def arrays(batch):
    return {name: np.asarray(value) for name, value in batch.inputs.items()}


@pytest.mark.parametrize("program", LIBRARY.values(), ids=lambda p: p.name)
def test_programs_print_back_as_themselves(program):
    scope = dict(vars(mechgap.lang))
    exec(str(program), scope)
    assert scope[program.name] == program
    assert list(problems(program)) == []


@pytest.mark.parametrize("split", ["validation", "test"])
@pytest.mark.parametrize("name", ["bfs", "bfs_parent", "bellman_ford"])
def test_the_interpreter_agrees_with_the_official_traces(name, split):
    program = LIBRARY[name]
    batch = official(program.task, split)
    run = interpret(program, arrays(batch), steps=batch.max_hints - 1)
    valid = (np.arange(batch.max_hints)[:, None] < np.asarray(batch.lengths))[..., None]
    for hint, component in program.hints.items():
        state, truth = run.states[component.name], np.asarray(batch.hints[hint])
        if component.kind is Kind.POINTER:
            state = pointed(state, np.asarray(batch.inputs["pos"], float))
        assert np.abs((state - truth) * valid).max() <= (
            1e-6 if component.kind is Kind.FLOAT else 0
        )


def test_two_mechanisms_of_bfs_differ_in_attention_and_nothing_else():
    batch = sample("bfs", jax.random.key(0), batch_size=64, nodes=12, random_pos=False).trim()
    keeps, follows = (
        interpret(LIBRARY[name], arrays(batch), steps=batch.steps) for name in ("bfs", "bfs_parent")
    )
    assert all(np.array_equal(keeps.states[c], follows.states[c]) for c in ("visit", "pi"))
    last = follows.states["visit"][-2] == 1
    nodes = np.arange(12)
    assert (keeps.senders[-1][last] == np.broadcast_to(nodes, last.shape)[last]).all()
    parents = pointed(follows.states["pi"][-1], np.asarray(batch.inputs["pos"], float))
    assert (follows.senders[-1][last] == parents[last]).all()


def graphs(task, seed=5, nodes=9):
    batch = sample(task, jax.random.key(seed), batch_size=40, nodes=nodes, random_pos=False)
    inputs = arrays(batch)
    return inputs, [nx.from_numpy_array(A) for A in inputs["A"]]


def test_reachability_is_the_sources_component():
    inputs, plain = graphs("bfs")
    found = execution_batch(reachability, inputs).outputs["reachable"]
    for i, graph in enumerate(plain):
        expected = nx.node_connected_component(graph, int(inputs["s"][i].argmax()))
        assert set(np.flatnonzero(np.asarray(found[i]))) == expected


def test_smallest_label_is_the_first_node_of_the_component():
    inputs, plain = graphs("bfs")
    found = execution_batch(smallest_label, inputs).outputs["label"]
    for i, graph in enumerate(plain):
        for component in nx.connected_components(graph):
            assert np.allclose(np.asarray(found[i])[list(component)], min(component) / 9)


def test_strongest_neighbour_is_the_heaviest_edge():
    inputs, plain = graphs("bellman_ford")
    found = execution_batch(strongest_neighbour, inputs).outputs["strongest"]
    for i, graph in enumerate(plain):
        for node in graph:
            others = {j: w["weight"] for j, w in graph[node].items() if j != node}
            expected = max(others, key=lambda j: others[j]) if others else node
            assert int(found[i, node]) == expected


def test_bellman_ford_distances_are_dijkstras():
    inputs, plain = graphs("bellman_ford")
    run = interpret(LIBRARY["bellman_ford"], inputs)
    for i, graph in enumerate(plain):
        lengths = nx.single_source_dijkstra_path_length(graph, int(inputs["s"][i].argmax()))
        for node in graph:
            assert run.states["dist"][-1, i, node] == pytest.approx(lengths.get(node, 0.0))


def test_a_fixpoint_program_stops_and_a_counted_one_counts():
    inputs, _ = graphs("bfs")
    assert len(interpret(LIBRARY["bfs"], inputs).senders) <= 9
    assert len(interpret(LIBRARY["bfs"], inputs, steps=4).senders) == 4
