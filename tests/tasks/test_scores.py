"""Scores are those of dm-clrs's `evaluate` and `evaluate_hints`."""

from typing import Any

import clrs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from clrs._src import decoders

from dm_clrs_peer import DM_CLRS_TASKS
from mechgap.interop.dm_clrs import to_feedback
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.tasks.sampling import sample
from mechgap.tasks.scores import hint_scores, hint_scores_along_time, output_scores


def peer_postprocess(task, predictions) -> Any:
    spec = {f.name: (f.stage.value, f.location.value, f.type.value) for f in task.features}
    numbers: Any = {name: np.asarray(value) for name, value in predictions.items()}
    return decoders.postprocess(
        spec, numbers, sinkhorn_temperature=0.1, sinkhorn_steps=1, hard=True
    )


@pytest.mark.parametrize("task", DM_CLRS_TASKS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_scores_equal_dm_clrs(task, seed):
    batch = sample(task, jax.random.key(seed), batch_size=7, nodes=6).trim()
    trace = run(Network.initial(task, jax.random.key(seed + 50)), batch)
    feedback = to_feedback(batch)

    theirs = clrs.evaluate(feedback.outputs, peer_postprocess(batch.task, trace.outputs))
    ours = output_scores(batch, trace.outputs)
    assert {name: float(value) for name, value in ours.items()} == pytest.approx(
        {name: float(np.asarray(value)) for name, value in theirs.items()}, abs=1e-6
    )

    steps = [
        peer_postprocess(batch.task, {name: hint[i] for name, hint in trace.hints.items()})
        for i in range(trace.steps)
    ]
    theirs = clrs.evaluate_hints(feedback.features.hints, feedback.features.lengths, steps)
    overall, along = hint_scores(batch, trace.hints), hint_scores_along_time(batch, trace.hints)
    assert len(overall) == len(batch.task.hints)
    for name, value in overall.items():
        assert float(value) == pytest.approx(float(theirs[name]), rel=1e-5, abs=1e-6)
        assert np.allclose(along[name], theirs[f"{name}_along_time"], rtol=1e-5, atol=1e-6)


def test_truth_scores_one():
    batch = sample("bfs", jax.random.key(0), batch_size=5, nodes=6).trim()
    right = {"pi": jax.nn.one_hot(batch.outputs["pi"], 6)}
    assert float(output_scores(batch, right)["score"]) == 1.0
    wrong = {"pi": jax.nn.one_hot((batch.outputs["pi"] + 1) % 6, 6)}
    assert float(output_scores(batch, wrong)["score"]) == 0.0


def test_a_number_counts_by_the_share_of_nodes_where_it_is_right():
    """A squared error is better the lower it is; what training selects by is better the higher."""
    label = LIBRARY["smallest_label"]
    batch = sample(posed(label), jax.random.key(0), batch_size=5, nodes=6)
    truth = batch.outputs["label"]
    off = jnp.zeros_like(truth).at[:, :2].set(0.5)
    found = output_scores(batch, {"label": truth + off})
    assert float(found["label"]) == pytest.approx(0.25 / 3)
    assert float(found["score"]) == pytest.approx(2 / 3)
    assert float(output_scores(batch, {"label": truth})["score"]) == 1.0
