"""The shipped sets are dm-clrs's own, to the bit."""

import numpy as np
import pytest

from dm_clrs_peer import DM_CLRS_TASKS
from mechgap.interop.dm_clrs import from_feedback, official_feedback
from mechgap.tasks.official import Split, arrays, official
from mechgap.tasks.sampling import make_batch
from mechgap.tasks.specs import TASKS


@pytest.mark.parametrize("split", Split, ids=lambda split: split.value)
@pytest.mark.parametrize("name", DM_CLRS_TASKS)
def test_official_sets_are_dm_clrs_to_the_bit(name, split):
    features, outputs = official_feedback(name, split)
    stored = dict(arrays(name, split))
    for stage, points in (
        ("input", features.inputs),
        ("hint", features.hints),
        ("output", outputs),
    ):
        for point in points:
            assert np.array_equal(stored.pop(f"{stage}/{point.name}"), point.data), point.name
    assert np.array_equal(stored.pop("lengths"), features.lengths)
    assert not stored


def test_official_batches_hold_the_same_numbers():
    batch = official("bellman_ford", "test")
    peer = from_feedback("bellman_ford", official_feedback("bellman_ford", Split.TEST))
    assert np.array_equal(batch.inputs["A"], peer.inputs["A"])
    assert np.array_equal(batch.hints["d"], peer.hints["d"])
    assert batch.size == 32
    assert batch.nodes == 64


@pytest.mark.parametrize("name", ["bfs_sequential", "dfs_simplified"])
def test_variants_have_the_same_graphs_and_outputs(name):
    variant, original = official(name, "validation"), official(name.split("_")[0], "validation")
    assert np.array_equal(variant.inputs["A"], original.inputs["A"])
    assert np.array_equal(variant.outputs["pi"], original.outputs["pi"])


def test_our_traces_of_the_official_graphs_are_the_official_traces():
    for name in ("bfs", "dijkstra", "mst_prim", "dfs", "topological_sort"):
        stored = official(name, "test")
        source = stored.inputs["s"].argmax(-1) if TASKS[name].has_source else stored.lengths * 0
        ours = make_batch(TASKS[name], stored.inputs["A"], source, stored.inputs["pos"]).trim()
        assert np.array_equal(ours.lengths, stored.lengths)
        assert all(np.allclose(ours.hints[h], stored.hints[h], atol=1e-6) for h in stored.hints)
        assert all(np.array_equal(ours.outputs[o], stored.outputs[o]) for o in stored.outputs)


def test_missing_sets_are_clear_errors():
    with pytest.raises(ValueError, match="unknown official set 'train'"):
        official("bfs", "train")
    with pytest.raises(ValueError, match="bfs_sequential has no official set"):
        arrays("bfs_sequential", "test")
