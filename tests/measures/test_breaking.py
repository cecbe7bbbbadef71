"""Where runs first go wrong, against traces that were spoilt on purpose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.measures.breaking import Breaking, runs
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import Type


def told_rightly(batch):
    """Raw predictions that say what the trace says."""

    def raw(feature):
        truth = batch.hints[feature.name][1:]
        if feature.type is Type.POINTER:
            return 9.0 * jax.nn.one_hot(truth, batch.nodes)
        return truth if feature.type is Type.SCALAR else 18.0 * truth - 9.0

    return {f.name: raw(f) for f in batch.task.hints}


def breaking(batch, told):
    found = runs(batch, told)
    return None if found is None else Breaking.of([found])


@pytest.mark.parametrize("task", ["dfs", "bfs", "dijkstra"])
def test_the_truth_never_breaks(task):
    batch = sample(task, jax.random.key(0), batch_size=8, nodes=7)
    found = breaking(batch, told_rightly(batch))
    assert found is not None
    assert found.unbroken == 1
    assert np.isnan(found.step)
    assert set(found.along) == {1}
    assert found.steps == int(batch.lengths.max()) - 1


def test_the_first_wrong_step_and_the_hints_that_are_wrong_in_it():
    batch = sample("dfs", jax.random.key(0), batch_size=4, nodes=5)
    told = told_rightly(batch)
    told["d"] = told["d"] + 100.0  # a number: not looked at
    told["color"] = told["color"].at[5, 1, 2].multiply(-1)
    told["u"] = told["u"].at[9, 1].multiply(-1)  # later in the same run
    told["u"] = told["u"].at[3, 2].multiply(-1)
    told["pi_h"] = told["pi_h"].at[3, 2, 0].multiply(-1)
    found = breaking(batch, told)
    assert found is not None
    assert found.unbroken == 0.5
    assert found.step == 4
    assert found.hints == {
        name: {"color": 0.5, "u": 0.5, "pi_h": 0.5}.get(name, 0.0) for name in found.hints
    }
    assert "d" not in found.hints
    assert found.along == (1, 1, 0.75, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)


def test_what_comes_after_the_end_does_not_count():
    batch = sample("bfs", jax.random.key(0), batch_size=8, nodes=7)
    told = told_rightly(batch)
    after = jnp.arange(1, batch.max_hints)[:, None] >= batch.lengths
    spoilt = {
        name: jnp.where(after.reshape(*after.shape, *[1] * (x.ndim - 2)), -x - 1, x)
        for name, x in told.items()
    }
    found = breaking(batch, spoilt)
    assert found is not None
    assert found.unbroken == 1


def test_hints_that_nobody_claims_are_left_out():
    batch = sample("dfs", jax.random.key(0), batch_size=4, nodes=5)
    told = told_rightly(batch)
    told["v"] = -told["v"]
    broken, whole = runs(batch, told), runs(batch, told, ["v"])
    assert broken is not None
    assert whole is not None
    assert (broken.first < broken.lengths).all()
    assert (whole.first == whole.lengths).all()
    assert runs(batch, told, [f.name for f in batch.task.hints]) is None


def test_where_nothing_is_predicted_nothing_breaks():
    batch = sample("bfs", jax.random.key(0), batch_size=4, nodes=5, p=[0.0]).trim()
    assert batch.max_hints == 1
    assert runs(batch, {f.name: jnp.zeros(0) for f in batch.task.hints}) is None
