"""Samplers draw what dm-clrs's samplers draw."""

import clrs
import jax
import numpy as np
import pytest

from dm_clrs_peer import DM_CLRS_TASKS, same_distribution
from mechgap.tasks.sampling import TRAIN_P, sample
from mechgap.tasks.specs import TASKS

NODES = 16
GRAPHS = 2000


def peer_batch(task, p):
    sampler, _ = clrs.build_sampler(task, num_samples=GRAPHS, length=NODES, seed=5, p=p)
    feedback = sampler.next()
    return {dp.name: dp.data for dp in feedback.features.inputs}, feedback.features.lengths


@pytest.mark.parametrize("task", DM_CLRS_TASKS)
@pytest.mark.parametrize(
    "p", [pytest.param((0.5,), marks=pytest.mark.slow), TRAIN_P], ids=["p=0.5", "training p"]
)
def test_graphs_have_dm_clrs_distribution(task, p):
    ours = sample(task, jax.random.key(7), batch_size=GRAPHS, nodes=NODES, p=p)
    theirs, lengths = peer_batch(task, p)
    A, B = np.asarray(ours.inputs["A"]), theirs["A"]
    off = ~np.eye(NODES, dtype=bool)
    for where in (off, ~off):  # edges have another probability than self-loops
        share = [(M[:, where] != 0).mean(axis=1) for M in (A, B)]
        assert same_distribution(*share) > 1e-3
    if TASKS[task].weighted:
        weights = [M[:, off][M[:, off] != 0][:20000] for M in (A, B)]
        assert same_distribution(*weights) > 1e-3
        assert A[A != 0].min() >= np.sqrt(1e-3) - 1e-6
        assert (A.swapaxes(1, 2) == A).all()
    if TASKS[task].has_source:
        sources = [np.argmax(s, -1) for s in (ours.inputs["s"], theirs["s"])]
        assert same_distribution(*sources) > 1e-3
    assert same_distribution(ours.lengths, lengths) > 1e-3


@pytest.mark.parametrize("task", TASKS)
def test_traces_of_fixed_length_all_have_it(task):
    lengths = sample(task, jax.random.key(3), batch_size=64, nodes=NODES).lengths
    assert all(lengths == TASKS[task].max_hints(NODES)) == TASKS[task].fixed_length


def test_acyclic_graphs_have_edges_one_way_along_any_order():
    A = np.asarray(
        sample("topological_sort", jax.random.key(0), batch_size=4000, nodes=4, p=(0.8,)).inputs[
            "A"
        ]
    )
    assert not np.linalg.matrix_power(A, 4).any()  # no walk is longer than a path can be
    assert A.mean(0)[~np.eye(4, dtype=bool)] == pytest.approx(0.4, abs=0.03)


def test_edge_probability_is_p_squared_when_undirected_and_p_when_directed():
    off = ~np.eye(NODES, dtype=bool)
    for task, edge in (("bfs", 0.09), ("dfs", 0.3)):
        A = np.asarray(
            sample(task, jax.random.key(0), batch_size=4000, nodes=NODES, p=(0.3,)).inputs["A"]
        )
        assert A[:, off].mean() == pytest.approx(edge, abs=0.005)
        assert A[:, ~off].mean() == pytest.approx(0.3, abs=0.01)


def test_positions_are_sorted_uniform_in_training_and_regular_in_test():
    drawn = np.asarray(sample("bfs", jax.random.key(1), batch_size=500, nodes=NODES).inputs["pos"])
    assert (np.diff(drawn, axis=-1) >= 0).all()
    assert same_distribution(drawn, np.random.default_rng(0).random(8000)) > 1e-3
    regular = sample("bfs", jax.random.key(1), batch_size=2, nodes=NODES, random_pos=False)
    assert np.array_equal(regular.inputs["pos"][1], np.arange(NODES, dtype=np.float32) / NODES)


def test_same_key_same_batch_and_another_key_another():
    first, again, other = (sample("dfs", jax.random.key(seed), nodes=6) for seed in (3, 3, 4))
    assert all(map(np.array_equal, jax.tree.leaves(first), jax.tree.leaves(again)))
    assert not np.array_equal(first.inputs["A"], other.inputs["A"])


def test_sampling_can_be_jitted_and_vmapped():
    keys = jax.random.split(jax.random.key(0), 3)
    many = jax.jit(jax.vmap(lambda key: sample("bfs", key, batch_size=2, nodes=5)))(keys)
    one = sample("bfs", keys[2], batch_size=2, nodes=5)
    assert np.array_equal(many.inputs["A"][2], one.inputs["A"])
    assert np.array_equal(many.hints["pi_h"][2], one.hints["pi_h"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": 0}, "at least 1 node; got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1; got 0"),
        ({"p": (1.5,)}, r"must lie in \[0, 1\]; got 1.5"),
        ({"p": (float("nan"),)}, r"must lie in \[0, 1\]; got nan"),
        ({"p": ()}, "at least one edge probability"),
    ],
)
def test_bad_arguments_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        sample("bfs", jax.random.key(0), **wrong)
