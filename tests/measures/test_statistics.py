"""Correlations and clusters, beside SciPy and by hand."""

import math
from itertools import permutations
from typing import Any

import jax
import numpy as np
import pandas
import pytest
import statsmodels.formula.api as formula
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.spatial.distance import pdist

from mechgap import sample
from mechgap.measures.correlation import MOST_ORDERINGS, correlation, smallest_detectable
from mechgap.measures.data import make_data
from mechgap.measures.mixed import mixed_model
from mechgap.measures.solutions import (
    adjusted_rand,
    mean_silhouette,
    solutions,
)

stats: Any = scipy_stats


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


@pytest.mark.parametrize("count", [4, 6])
def test_p_values_of_few_seeds_are_exact(count):
    """The share of all pairings that correlate as much, counted one by one."""
    rng = np.random.default_rng(count)
    x, y = rng.normal(size=(2, count))
    found = correlation(list(x), list(y))
    others = [abs(stats.pearsonr(x, y[list(order)])[0]) for order in permutations(range(count))]
    share = np.mean(np.array(others) >= abs(stats.pearsonr(x, y)[0]) - 1e-9)
    assert found.pearson_p == pytest.approx(share)
    perfect = correlation(list(np.sort(x)), list(np.sort(y)))
    assert perfect.spearman_p == pytest.approx(2 / math.factorial(count))
    low, high = perfect.spearman_interval
    assert low < high < 1


def test_fisher_s_interval_is_scipy_s():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 25))
    found = correlation(list(x), list(y))
    theirs = stats.pearsonr(x, y).confidence_interval(0.95)
    assert found.pearson_interval == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_many_orderings_are_sampled():
    rng = np.random.default_rng(4)
    x = rng.normal(size=20)
    y = x + rng.normal(size=20)
    found = correlation(list(x), list(y))
    assert found.pearson_p == pytest.approx(stats.pearsonr(x, y).pvalue, abs=2e-3)
    assert correlation(list(x), list(x)).pearson_p == pytest.approx(1 / (MOST_ORDERINGS + 1))


def repeated(seeds: int, steps: int, slope: float):
    rng = np.random.default_rng(seeds)
    seed, step = np.repeat(np.arange(seeds), steps), np.tile(np.arange(steps), seeds)
    own = 0.8 * rng.normal(size=seeds)
    x = rng.normal(size=seeds * steps) + 0.5 * own[seed]
    y = slope * x + 0.3 * step + own[seed] + 0.4 * rng.normal(size=seeds * steps)
    return y, x, step, seed


def test_the_mixed_model_is_statsmodels_s():
    y, x, step, seed = repeated(12, 6, 0.7)
    found = mixed_model(y.tolist(), x.tolist(), step.tolist(), seed.tolist())
    assert found is not None
    frame = pandas.DataFrame({"y": y, "x": x, "step": step, "seed": seed})
    theirs = formula.mixedlm("y ~ x + C(step)", frame, groups="seed").fit(reml=True)
    assert found.slope == pytest.approx(theirs.params["x"], rel=1e-4)
    between = float(theirs.cov_re.iloc[0, 0])
    assert found.between_share == pytest.approx(between / (between + theirs.scale), rel=1e-3)
    # Its errors allow for the estimated variances too, which is a percent.
    assert found.interval == pytest.approx(tuple(theirs.conf_int().loc["x"]), abs=0.02)
    assert found.p < 1e-10


def test_a_slope_between_seeds_is_not_taken_for_one_within():
    """Seeds with a larger x have a larger y, but a seed's y falls when its x rises."""
    rng = np.random.default_rng(0)
    seed = np.repeat(np.arange(10), 6)
    inside = rng.normal(size=60)
    x, y = seed + inside, 2.0 * seed - inside + 0.1 * rng.normal(size=60)
    found = mixed_model(y.tolist(), x.tolist(), [0] * 60, seed.tolist())
    assert found is not None
    assert found.slope == pytest.approx(-1, abs=0.1)
    assert correlation(list(x), list(y)).pearson_r > 0.9


def test_what_no_model_can_be_fitted_to():
    assert mixed_model([1.0, 2.0], [1.0, 2.0], [0, 0], [0, 1]) is None
    assert mixed_model([1.0, 2.0] * 4, [1.0] * 8, [0] * 8, [0, 1] * 4) is None


@pytest.mark.parametrize("count", [8, 40])
def test_one_cloud_is_one_cluster_and_two_are_two(count):
    rng = np.random.default_rng(count)
    cloud = rng.normal(size=(count, 30)) * np.linspace(3, 0.1, 30)
    one = solutions(pdist(cloud, "cityblock"), count, nodes=64)
    assert one.clusters == 1
    assert one.one_cluster_p > 0.05
    assert one.clusters_at_default_cut > 1  # where a dendrogram would be coloured
    apart = cloud + 8.0 * (np.arange(count) % 2)[:, None]
    two = solutions(pdist(apart, "cityblock"), count, nodes=64)
    assert two.clusters == 2
    assert two.one_cluster_p <= 0.05


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
    x = rng.normal(size=40)
    r = smallest_detectable(40)
    noise = rng.normal(size=40)
    x = (x - x.mean()) / x.std()
    noise -= noise.mean()
    noise -= x * (x @ noise) / (x @ x)
    y = r * x + np.sqrt(1 - r**2) * noise / noise.std()
    assert correlation(list(x), list(y)).pearson_p == pytest.approx(0.05, abs=1e-6)


@pytest.fixture(scope="module")
def graphs():
    return make_data("some", sample("bfs", jax.random.key(5), batch_size=6, nodes=9).trim())


def test_clear_clusters_are_found():
    rng = np.random.default_rng(0)
    centres = np.repeat(10.0 * np.eye(3), 6, axis=0)
    points = centres + 0.1 * rng.normal(size=centres.shape)
    found = solutions(pdist(points, "cityblock"), 18, nodes=64)
    assert found.clusters == 3
    assert found.stability == pytest.approx(1)
    assert len({tuple(found.labels[6 * k : 6 * k + 6]) for k in range(3)}) == 3
    assert sorted(found.order) == list(range(18))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_solutions(count):
    found = solutions(np.ones(count * (count - 1) // 2), count, nodes=64)
    assert found.clusters == 1
    assert np.isnan(found.stability)
    assert found.distances.shape == (count, count)


def test_equal_solutions_are_one_cluster():
    assert solutions(np.zeros(10), 5, nodes=64).clusters == 1


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
