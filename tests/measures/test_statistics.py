"""Correlations and clusters, beside SciPy and by hand."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechgap import sample
from mechgap.measures.correlation import correlation, smallest_detectable
from mechgap.measures.data import make_data
from mechgap.measures.internal import internal_gap
from mechgap.measures.solutions import (
    Collected,
    adjusted_rand,
    mean_silhouette,
    solutions,
)
from mechgap.measures.yardsticks import self_attention, uniform_attention
from mechgap.network.network import Network
from mechgap.network.trace import run


def test_the_paper_s_p_values_follow_from_about_108_seeds():
    """Its r = -0.055 with p = 0.569 belongs to N near 108, as the notes on the paper say."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=108)
    noise = rng.normal(size=108)
    noise -= x * (x @ noise) / (x @ x)  # uncorrelated, then mixed to r
    x, noise = (x - x.mean()) / x.std(), (noise - noise.mean()) / noise.std()
    noise -= x * (x @ noise) / (x @ x)
    y = -0.055 * x + np.sqrt(1 - 0.055**2) * noise / noise.std()
    found = correlation(list(x), list(y))
    assert found.pearson_r == pytest.approx(-0.055, abs=1e-3)
    assert found.pearson_p == pytest.approx(0.569, abs=0.01)
    assert found.n == 108
    assert found.warning is None
    low, high = found.pearson_interval
    assert low < found.pearson_r < high


def test_few_seeds_are_warned_about():
    found = correlation([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0])
    assert found.warning is not None
    assert f"{smallest_detectable(4):.2f}" in found.warning
    assert "fewer than 3" in str(correlation([1.0, 2.0], [1.0, 2.0]).warning)
    assert "same for all" in str(correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).warning)


def test_seeds_without_a_number_are_left_out():
    assert correlation([1.0, 2.0, 3.0, 4.0], [1.0, float("nan"), 3.0, 5.0]).n == 3


def test_smallest_detectable_is_where_p_is_five_percent():
    rng = np.random.default_rng(1)
    x = rng.normal(size=20)
    r = smallest_detectable(20)
    noise = rng.normal(size=20)
    x = (x - x.mean()) / x.std()
    noise -= noise.mean()
    noise -= x * (x @ noise) / (x @ x)
    y = r * x + np.sqrt(1 - r**2) * noise / noise.std()
    assert correlation(list(x), list(y)).pearson_p == pytest.approx(0.05, abs=1e-6)


@pytest.fixture(scope="module")
def graphs():
    return make_data("some", sample("bfs", jax.random.key(5), batch_size=6, nodes=9).trim())


def test_distances_between_solutions_are_the_internal_gap(graphs):
    truth = graphs.truths[0]
    networks = [Network.initial("bfs", jax.random.key(k)) for k in range(3)]
    attentions = [run(network, graphs.batch).attention for network in networks]
    attentions += [truth.attention, uniform_attention(graphs), self_attention(graphs)]
    collected = Collected(graphs)
    for attention in attentions:
        collected.add(np.asarray(attention))
    found = solutions(collected.distances(), len(attentions)).distances
    for k, attention in enumerate(attentions):
        assert found[3, k] == pytest.approx(internal_gap(attention, truth, graphs).l1, rel=1e-4)
    assert np.allclose(np.diag(found), 0)
    np.testing.assert_allclose(found, found.T)


def test_attention_outside_the_graph_counts_between_solutions(graphs):
    truth = graphs.truths[0]
    nodes = graphs.batch.nodes
    everywhere = np.full((graphs.batch.steps, graphs.batch.size, 1, nodes, nodes), 1 / nodes)
    collected = Collected(graphs)
    collected.add(np.asarray(truth.attention))
    collected.add(everywhere)
    found = solutions(collected.distances(), 2)
    assert found.mean_between == pytest.approx(2 * (1 - 1 / nodes), rel=1e-4)


def test_clear_clusters_are_found():
    rng = np.random.default_rng(0)
    centres = np.repeat(10.0 * np.eye(3), 6, axis=0)
    points = centres + 0.1 * rng.normal(size=centres.shape)
    from scipy.spatial.distance import pdist

    found = solutions(pdist(points, "cityblock"), 18)
    assert found.clusters == 3
    assert found.stability == pytest.approx(1)
    assert len({tuple(found.labels[6 * k : 6 * k + 6]) for k in range(3)}) == 3
    assert sorted(found.order) == list(range(18))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_solutions(count):
    found = solutions(np.ones(count * (count - 1) // 2), count)
    assert found.clusters == 1
    assert np.isnan(found.stability)
    assert found.distances.shape == (count, count)


def test_equal_solutions_are_one_cluster():
    assert solutions(np.zeros(10), 5).clusters == 1


@given(st.lists(st.integers(1, 3), min_size=4, max_size=12).filter(lambda x: len(set(x)) > 1))
def test_indices_agree_with_their_definitions(labels):
    """Both written again, slowly, from their definitions."""
    a = np.array(labels)
    rng = np.random.default_rng(len(labels))
    points = rng.normal(size=(len(a), 2))
    square = np.abs(points[:, None] - points[None]).sum(-1)
    scores = []
    for i in range(len(a)):
        mine = [j for j in range(len(a)) if a[j] == a[i] and j != i]
        if not mine:
            scores.append(0.0)
            continue
        own = np.mean([square[i, j] for j in mine])
        other = min(square[i, a == label].mean() for label in set(labels) - {labels[i]})
        scores.append((other - own) / max(own, other))
    assert mean_silhouette(square, a) == pytest.approx(np.mean(scores))
    assert adjusted_rand(a, a) == 1
    assert adjusted_rand(a, 4 - a) == pytest.approx(1)
