"""What a network is trained on at once: graphs with their traces, or a window of each.

Samples of similar length run together, so that few steps are spent on samples that have finished.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from mechgap.network.network import Carry
from mechgap.tasks.batch import Batch
from mechgap.training.supervision import Taught


class Lesson(eqx.Module):
    """Graphs with their traces, and what a mechanism does on them, if it teaches."""

    batch: Batch
    """Of a window: the hints in it; its lengths count from its first hint, and may lie beyond."""
    taught: Taught | None = None
    begin: Carry | None = None
    """Where the network has come to before a window; None if traces are whole."""

    @property
    def counted(self) -> Bool[Array, "steps batch"]:
        """The steps whose prediction is compared with a hint."""
        return jnp.arange(self.batch.steps)[:, None] < self.batch.lengths - 1

    def cut(self, hints: int) -> "Lesson":
        """The same with its first hints only; no sample may be longer."""
        first = jax.tree.map(lambda x: x[: max(1, hints - 1)], self.taught)
        return Lesson(self.batch.cut(hints), first, self.begin)

    @property
    def ending(self) -> Bool[Array, "batch"]:
        """The samples whose output is read."""
        return self.batch.lengths <= self.batch.max_hints


def by_length(batch: Batch) -> Batch:
    """The same samples, shortest first."""
    return batch[jnp.argsort(batch.lengths)]


def groups_by_length(lesson: Lesson, groups: int) -> tuple[Lesson, Int[Array, "groups"]]:
    """Whole traces cut into equal groups, shortest first, and the steps that each group needs."""
    order = jnp.argsort(lesson.batch.lengths)
    batch = lesson.batch[order]
    taught = None if lesson.taught is None else lesson.taught[order]
    size = batch.size // groups

    def cut(axis: int) -> Callable[[Array], Array]:
        def along(x: Array) -> Array:
            split = x.reshape(*x.shape[:axis], groups, size, *x.shape[axis + 1 :])
            return jnp.moveaxis(split, axis, 0)

        return along

    cut_batch = Batch(
        batch.task,
        jax.tree.map(cut(0), batch.inputs),
        jax.tree.map(cut(1), batch.hints),
        jax.tree.map(cut(0), batch.outputs),
        cut(0)(batch.lengths),
    )
    needed = jnp.maximum(1, jnp.max(cut_batch.lengths, axis=1) - 1)
    return Lesson(cut_batch, jax.tree.map(cut(2), taught)), needed
