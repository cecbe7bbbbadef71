"""The statistics of the replication, beside SciPy's and statsmodels' own."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from mechgap.experiments.replication.comparison import (
    Spread,
    compare,
    compare_correlations,
    contrast,
    holm,
    permutation_p,
    rank_p,
)
from mechgap.experiments.replication.power import (
    seeds_to_agree,
    seeds_to_agree_on_effect,
    seeds_to_see,
)

stats: Any = scipy_stats
OURS, THEIRS = [90.1, 91.0, 92.2, 89.9], [92.0, 93.1, 92.4, 91.8, 92.9]


def test_a_difference_is_statsmodels_s():
    found = compare(Spread.of(OURS), Spread.of(THEIRS))
    assert found is not None
    pair = CompareMeans(DescrStatsW(OURS), DescrStatsW(THEIRS))
    assert found.p == pytest.approx(pair.ttest_ind()[1])
    assert found.interval == pytest.approx(pair.tconfint_diff())
    margin = float(np.std(THEIRS, ddof=1))
    assert found.margin == pytest.approx(margin)
    assert found.equivalence_p == pytest.approx(pair.ttost_ind(-margin, margin)[0])


def test_interval_and_verdict_are_of_one_model():
    """What the interval does not contain is what an uncorrected test rejects."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        ours, theirs = rng.normal(0, 1, 3), rng.normal(rng.normal(), 1, 9)
        found = compare(Spread.of(ours.tolist()), Spread.of(theirs.tolist()))
        assert found is not None
        low, high = found.interval
        assert (low <= 0 <= high) == (found.p >= 0.05)


def test_what_so_many_seeds_could_have_seen():
    """The detectable difference has about the power that is said, as statsmodels computes it."""
    found = compare(Spread(50.0, 1.0, None, 8), Spread(50.0, 1.0, None, 128))
    assert found is not None
    power = TTestIndPower().power(found.detectable, nobs1=8, alpha=0.05, ratio=16)
    assert power == pytest.approx(0.8, abs=0.01)
    assert "sees ±" in found.verdict(1.0) or found.verdict(1.0) == "equivalent"


def test_two_seeds_agree_with_nothing_but_can_differ():
    """Not to differ is not to agree: two seeds within one deviation cannot tell."""
    near = compare(Spread(98.0, 1.0, None, 2), Spread(97.5, 1.0, None, 128))
    assert near is not None
    assert near.verdict(near.p).startswith("cannot tell")
    far = compare(Spread(75.7, 2.7, None, 2), Spread(97.3, 0.9, None, 128))
    assert far is not None
    assert far.verdict(far.p) == "differs"
    one = compare(Spread(75.7, None, None, 1), Spread(97.3, 0.9, None, 128))
    assert one is not None
    assert one.verdict(one.p) == "differs"
    many = compare(Spread(50.3, 1.0, None, 128), Spread(50.0, 1.0, None, 128))
    assert many is not None
    assert many.verdict(many.p) == "differs, by less than 1 std"
    assert compare(Spread(1.0, 1.0, None, 3), Spread(1.0, None, None, 1)) is None


def test_a_contrast_is_welch_s():
    """With one of the effects known exactly it is a two-sample test."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 5), rng.normal(1, 3, 7)
    still = Spread(0.0, 1e-12, None, 1000)
    found = contrast((Spread.of(a.tolist()), Spread.of(b.tolist())), (still, still))
    assert found is not None
    comparison, (effect, error), _ = found
    theirs = stats.ttest_ind(b, a, equal_var=False)
    assert comparison.p == pytest.approx(theirs.pvalue, rel=1e-6)
    assert effect / error == pytest.approx(theirs.statistic, rel=1e-6)
    assert contrast((Spread.of([1.0]), still), (still, still)) is None


def test_the_paper_s_edge_information():
    """+3.49 here and +4.08 in the paper are consistent, though both rows lie above the paper's."""
    ours = (Spread(93.08, 0.43, None, 4), Spread(96.57, 1.18, None, 4))
    theirs = (Spread(86.59, 5.97, None, 128), Spread(90.67, 1.40, None, 128))
    found = contrast(ours, theirs)
    assert found is not None
    assert found[1] == pytest.approx((3.49, 0.63), abs=0.01)
    assert found[2] == pytest.approx((4.08, 0.54), abs=0.01)
    assert found[0].p > 0.3


def test_correlations_of_one_law_differ_one_time_in_twenty():
    rng = np.random.default_rng(0)

    def coefficient(count):
        x, noise = rng.standard_normal((2, count))
        return float(np.corrcoef(x, 0.6 * x + 0.8 * noise)[0, 1]), count

    found = [compare_correlations(coefficient(8), coefficient(108)) for _ in range(4000)]
    assert np.mean([f is not None and f.p < 0.05 for f in found]) == pytest.approx(0.05, abs=0.015)
    perfect = compare_correlations((1.0, 8), (0.2, 108))
    assert perfect is not None
    assert perfect.verdict(perfect.p) == "differs"
    assert compare_correlations((float("nan"), 9), (0.2, 108)) is None
    assert compare_correlations((0.9, 3), (0.2, 108)) is None


def test_the_rank_test_by_simulation():
    rng = np.random.default_rng(2)
    draws = rng.random((20_000, 4 + 16))
    both = np.mean(np.sum(draws[:, :4] > draws[:, 4:].max(1, keepdims=True), 1) >= 2)
    assert rank_p([3.0, 2.0, 0.0, 0.0], 1.0, 16) == pytest.approx(both, abs=0.005)


@pytest.mark.parametrize("sizes", [(2, 10), (4, 4), (12, 14)])
def test_permutations_of_means_are_scipy_s(sizes):
    rng = np.random.default_rng(sum(sizes))
    a, b = rng.normal(0, 1, sizes[0]), rng.normal(0.7, 1, sizes[1])
    theirs = stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(x.mean(axis) - y.mean(axis)),
        vectorized=True,
        alternative="greater",
        n_resamples=50_000,
        rng=np.random.default_rng(0),
    )
    assert permutation_p(a.tolist(), b.tolist()) == pytest.approx(theirs.pvalue, abs=0.01)


def test_holm_is_statsmodels_s():
    p_values = np.random.default_rng(3).random(31) ** 3
    found = holm({str(k): float(p) for k, p in enumerate(p_values)})
    theirs = np.asarray(multipletests(p_values, method="holm")[1])
    assert [found[str(k)] for k in range(31)] == pytest.approx(theirs.tolist())


CASES = 4000


def test_so_many_seeds_of_the_papers_population_are_called_equivalent_in_four_of_five_cases():
    paper = Spread(98.3, 0.97, None, 128)
    seeds = seeds_to_agree(paper)
    assert seeds is not None
    drawn = np.random.default_rng(0)

    def share(n: int) -> float:
        """Both the paper's seeds and ours are drawn, as they were."""
        told = []
        for _ in range(CASES):
            theirs, ours = drawn.normal(0, 1, paper.seeds), drawn.normal(0, 1, n)
            compared = compare(Spread.of(ours.tolist()), Spread.of(theirs.tolist()))
            assert compared is not None
            told.append(abs(compared.difference) < 1 and compared.equivalence_p < 0.05)
        return float(np.mean(told))

    assert share(seeds) > 0.77
    assert share(seeds - 3) < 0.77


def test_so_many_seeds_see_an_effect_in_four_of_five_cases():
    without, changed = Spread(98.3, 0.97, None, 128), Spread(98.74, 0.6, None, 128)
    seeds = seeds_to_see(without, changed)
    assert seeds is not None
    drawn = np.random.default_rng(1)
    a = drawn.normal(98.3, 0.97, (CASES, seeds))
    b = drawn.normal(98.74, 0.6, (CASES, seeds))
    p = stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.03)


def test_equal_deviations_need_what_statsmodels_says():
    without, changed = Spread(50.0, 2.0, None, 128), Spread(51.3, 2.0, None, 128)
    asked = TTestIndPower().solve_power(effect_size=1.3 / 2.0, power=0.8, alpha=0.05)
    assert seeds_to_see(without, changed) == math.ceil(asked)


def test_an_effect_that_is_hardly_known_cannot_be_agreed_with():
    without, changed = Spread(98.3, 0.97, None, 128), Spread(98.74, 0.98, None, 128)
    assert seeds_to_agree_on_effect(without, changed) is None
    assert seeds_to_see(without, replace(changed, mean=98.3)) is None
    clear = seeds_to_agree_on_effect(Spread(90.0, 1.0, None, 128), Spread(95.0, 1.0, None, 128))
    assert clear is not None
    assert clear < 10
