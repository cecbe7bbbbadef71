"""Training's loss is the loss: grouping samples changes neither its value nor its gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import TASKS
from mechgap.training.lesson import Lesson, groups_by_length
from mechgap.training.loss import loss, loss_and_gradient

CASES = [
    ("bfs", {}),
    pytest.param("bellman_ford", {"nb_heads": 2, "use_edge_info": True}, marks=pytest.mark.slow),
    pytest.param("dfs", {"hint_mode": "decoded_only"}, marks=pytest.mark.slow),
    pytest.param("topological_sort", {"processor_type": "gatv2_full"}, marks=pytest.mark.slow),
]


def largest_error(ours, theirs) -> float:
    """Relative to each parameter's largest gradient, at least 1e-3 of the largest of all."""
    pairs = list(zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True))
    floor = 1e-3 * max(float(jnp.abs(b).max()) for _, b in pairs)
    return max(float(jnp.abs(a - b).max()) / max(float(jnp.abs(b).max()), floor) for a, b in pairs)


@pytest.mark.parametrize(("task", "options"), CASES)
def test_groups_have_the_batchs_loss_and_gradient(task, options):
    """In float64, where only a real difference would show."""
    with jax.enable_x64(True):
        nodes = 4 if TASKS[task].hints_per_node > 1 else 11
        batch = sample(task, jax.random.key(1), batch_size=8, nodes=nodes)
        config = NetworkConfig(hidden_size=8, **options)
        network = Network.initial(task, jax.random.key(2), config)
        network = jax.tree.map(lambda x: x.astype(jnp.float64), network)
        value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss))(network, batch)
        cut, needed = groups_by_length(Lesson(batch), 4)
        grouped = eqx.filter_jit(loss_and_gradient)(network, cut, needed)
        assert abs(grouped[0] - value) <= 1e-12 * abs(value)
        assert largest_error(grouped[1], gradient) <= 1e-9


def test_groups_are_sorted_and_whole():
    batch = sample("bfs", jax.random.key(0), batch_size=16, nodes=9)
    lesson, needed = groups_by_length(Lesson(batch), 4)
    groups = lesson.batch
    lengths = np.asarray(groups.lengths)
    assert sorted(lengths.ravel()) == sorted(np.asarray(batch.lengths))
    assert (np.diff(lengths.ravel()) >= 0).all()
    assert needed.tolist() == [max(1, x - 1) for x in lengths.max(1)]
    # Each sample keeps its own trace.
    for g in range(4):
        for s in range(4):
            (at,) = [i for i in range(16)
                     if (batch.inputs["A"][i] == groups.inputs["A"][g, s]).all()
                     and (batch.inputs["pos"][i] == groups.inputs["pos"][g, s]).all()]  # fmt: skip
            assert (batch.hints["pi_h"][:, at] == groups.hints["pi_h"][g, :, s]).all()
            assert (batch.outputs["pi"][at] == groups.outputs["pi"][g, s]).all()
