"""Depth-first search, learned: the network in `examples/` does what the page on teaching says."""

from pathlib import Path

import jax.numpy as jnp
import pytest

from dm_clrs_peer import peer_scores
from mechgap.network.files import load_network
from mechgap.tasks.official import official
from mechgap.training.population import score

LEARNED = Path(__file__).parents[2] / "examples" / "dfs_learned.safetensors"


def test_it_answers_the_official_test_graphs():
    network, about = load_network(LEARNED)
    assert max(about["recipe"]["train_lengths"]) == 32
    batch = official("dfs", "test")[jnp.arange(8)]
    assert batch.nodes == 64
    assert float(score(network, batch)) == 1.0


@pytest.mark.slow
def test_so_it_does_in_dm_clrs():
    """dm-clrs's network, data (the seed is that of the official test set) and scores."""
    network, _ = load_network(LEARNED)
    output, hints = peer_scores(network, graphs=32, nodes=64, seed=3)
    assert output == 1.0
    assert all(hints[name] > 0.999 for name in ("pi_h", "color", "s_prev", "s", "u", "s_last"))
