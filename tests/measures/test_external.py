"""Trace accuracy: by hand, and beside dm-clrs's own scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap import InvalidInput, from_graphs, sample
from mechgap.measures.external import TIMES, Margins, external

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def perfect(batch) -> dict:
    """Predictions that are the truth."""
    raw = {}
    for f in batch.task.hints:
        truth = batch.hints[f.name][1:]
        if f.name == "pi_h":
            raw[f.name] = 100.0 * jax.nn.one_hot(truth, batch.nodes)
        else:
            raw[f.name] = truth if f.name == "d" else 100 * (2 * truth - 1)
    return raw


@pytest.mark.parametrize("task", ["bfs", "bellman_ford"])
def test_the_truth_scores_one(task):
    batch = sample(task, jax.random.key(0), batch_size=5, nodes=8).trim()
    found = external(batch, perfect(batch))
    assert found.accuracy == found.accuracy_fine == 1
    assert all(value == 1 for value in found.hints.values())
    for name, along in found.over_time.items():
        np.testing.assert_allclose(along, 1, rtol=1e-6, err_msg=name)
    assert found.dm_clrs["pi_h"] == 1


def test_margins_by_hand():
    batch = from_graphs("bellman_ford", PATH * 0.4, 0)
    raw = perfect(batch)
    steps = batch.max_hints - 1
    raw["d"] = raw["d"].at[0, 0, 1].add(0.2)
    found = external(batch, raw)
    assert found.hints["d"] == 1
    assert found.accuracy_fine == pytest.approx(1 - 1 / (3 * 3 * steps))
    found = external(batch, raw, Margins(scalar=0.1))
    assert found.hints["d"] == pytest.approx(1 - 1 / (3 * steps))
    assert found.accuracy == pytest.approx(1 - 1 / (3 * 3 * steps))
    # A probability of 0.85 where 1 is true: right for an F1 score, not within 0.1.
    raw = perfect(batch)
    raw["msk"] = raw["msk"].at[0, 0, 0].set(jnp.log(0.85 / 0.15))
    found = external(batch, raw)
    assert found.hints["msk"] == pytest.approx(1 - 1 / (3 * steps))
    assert found.dm_clrs["msk"] == 1
    assert external(batch, raw, Margins(binary=0.2)).hints["msk"] == 1


def test_padding_does_not_count_and_time_is_each_samples_own():
    graphs = [PATH, np.ones((3, 3)) - np.eye(3)]  # two steps, and one
    batch = from_graphs("bfs", np.stack(graphs), [0, 0])
    assert batch.lengths.tolist() == [3, 2]
    raw = perfect(batch)
    raw["reach_h"] = raw["reach_h"].at[1:, 1].set(-100)  # after the second sample has ended
    assert external(batch, raw).accuracy == 1
    raw["reach_h"] = raw["reach_h"].at[1, 0].set(-100)  # the first sample's last step: all wrong
    found = external(batch, raw)
    assert found.hints["reach_h"] == pytest.approx((1 / 2 + 1) / 2)  # by graph, then graphs
    along = found.over_time["reach_h"]
    assert len(along) == TIMES
    assert along[0] == pytest.approx(1)
    assert along[-1] == pytest.approx(1 / 2)
    assert along[TIMES // 2] == pytest.approx(3 / 4)


def test_a_network_without_traces_has_none():
    batch = from_graphs("bfs", PATH, 0)
    with pytest.raises(InvalidInput, match="trained without traces"):
        external(batch, {})


@pytest.mark.parametrize("margin", [0.0, -1.0, float("nan")])
def test_margins_are_positive(margin):
    with pytest.raises(InvalidInput, match="margin must be above 0"):
        Margins(scalar=margin)


def test_nothing_to_predict():
    batch = from_graphs("bfs", np.zeros((1, 1)), 0)
    assert batch.max_hints == 1
    found = external(batch, {"reach_h": jnp.zeros((1, 1, 1)), "pi_h": jnp.zeros((1, 1, 1, 1))})
    assert np.isnan(found.accuracy)
