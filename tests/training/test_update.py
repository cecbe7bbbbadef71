"""A training step is dm-clrs's: loss, clipping and Adam, from the same parameters on one batch."""

import jax
import jax.numpy as jnp
import numpy as np

from mechgap.interop.dm_clrs import baseline_model, from_haiku, to_feedback, to_haiku
from mechgap.tasks.sampling import sample
from mechgap.training.lesson import Lesson, groups_by_length
from mechgap.training.loss import loss_and_gradient
from mechgap.training.population import Learner, initial, optimizer, update
from mechgap.training.presets import make_recipe


def test_three_updates_are_dm_clrs():
    """In float64: Adam divides by the gradient's size, so float32's noise would be all there is."""
    recipe = make_recipe("bfs", overrides={"hidden_size": 8, "hint_mode": "decoded_only"})
    batch = sample("bfs", jax.random.key(3), batch_size=8, nodes=7)
    with jax.enable_x64(True):
        feedback = to_feedback(batch.trim())
        model = baseline_model(
            recipe.task,
            recipe.network_config,
            feedback,
            learning_rate=recipe.learning_rate,
            grad_clip_max_norm=recipe.grad_clip_max_norm,
        )
        model.params = jax.tree.map(lambda x: np.asarray(x, np.float64), model.params)
        model.opt_state = model.opt.init(model.params)
        network = from_haiku(recipe.task, recipe.network_config, model.params)
        learner = initial(recipe, jnp.int32(0))
        state = optimizer(recipe).init((network, None))  # pyright: ignore[reportArgumentType]
        learner = Learner(**{**vars(learner), "network": network, "optimizer": state})
        groups, needed = groups_by_length(Lesson(batch), 2)
        before = to_haiku(network)
        for _ in range(3):
            model.feedback(jax.random.PRNGKey(0), feedback)
            value, gradient = jax.jit(loss_and_gradient)(learner.network, groups, needed)
            learner = update(recipe, learner, value, (gradient, None))
        after = to_haiku(learner.network)
    for module, named in model.params.items():
        for name, theirs in named.items():
            ours = np.asarray(after[module][name])
            assert np.abs(ours - np.asarray(theirs)).max() < 1e-9, (module, name)
    moved = [np.abs(np.asarray(after[m][n]) - before[m][n]).max() for m in after for n in after[m]]
    assert max(moved) > 2.5 * recipe.learning_rate  # three steps of Adam
