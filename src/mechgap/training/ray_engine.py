"""The Ray engine: chunks of seeds as tasks on a cluster.

A task takes a chunk's learners some reports further and sends them back; this process records
them. So a worker needs no shared disk, and one that dies costs one task, which Ray starts again.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mechgap.errors import InvalidInput
from mechgap.training.cluster import RETRIES, connected, need_ray
from mechgap.training.local import compiled_trainer, resumed
from mechgap.training.recipe import Recipe
from mechgap.training.rows import Notes
from mechgap.training.train import Chunk, Engine, Snapshots, Stopped, Work, advance

REPORTS_PER_TASK = 10
"""How far a task goes before it sends back what it has."""


def on_ray(address: str | None, xla_flags: str) -> Engine:
    """Train on a Ray cluster, or on a local one that is started for it.

    Workers compile with the given XLA flags, as the local engine does: other flags, other bits.
    """
    need_ray()

    def engine(work: Work) -> None:
        with connected(address) as ray:
            _run(ray, work, xla_flags)

    return engine


def _run(ray: Any, work: Work, xla_flags: str) -> None:
    environment = {"env_vars": {"XLA_FLAGS": xla_flags}}
    task = ray.remote(num_cpus=1, max_retries=RETRIES, runtime_env=environment)(_advance)
    recipe = work.recipe
    stride = REPORTS_PER_TASK * recipe.eval_every
    trainer = compiled_trainer(recipe)
    structure = jax.tree.structure(jax.eval_shape(lambda: trainer.start([0] * work.width)))
    running: dict[Any, tuple[Chunk, int]] = {}

    def send(chunk: Chunk, leaves: list[np.ndarray] | None, step: int) -> None:
        until = work.next_stop(step, stride)
        handle = task.remote(recipe, work.places(chunk), leaves, step, until, work.snapshots)
        running[handle] = (chunk, step)

    for chunk, step in work.unfinished():
        learners = resumed(work, trainer, chunk, step) if step else None
        send(chunk, [np.asarray(x) for x in jax.tree.leaves(learners)] or None, step)
    while running:
        (handle,), _ = ray.wait(list(running), num_returns=1)
        chunk, step = running.pop(handle)
        try:
            leaves, notes = ray.get(handle)
        except ray.exceptions.RayError as error:
            raise InvalidInput(
                f"a Ray worker failed on seeds {chunk[0]} to {chunk[-1]} at step {step} "
                f"{RETRIES + 1} times: {error}. The same command resumes from there"
            ) from error
        learners = jax.tree.unflatten(structure, leaves)
        stopping = work.watcher.wants_to_stop()
        work.record(chunk, learners, notes, stopping=stopping)
        reached = notes.metrics[-1].step
        latest = [row for row in notes.metrics if row.step == reached]
        work.tell(latest, len(chunk) * (reached - step))
        if reached < recipe.train_steps:
            if stopping:
                raise Stopped
            send(chunk, leaves, reached)


def _advance(
    recipe: Recipe,
    seeds: list[int],
    leaves: list[np.ndarray] | None,
    step: int,
    until: int,
    snapshots: Snapshots | None,
) -> tuple[list[np.ndarray], Notes]:
    """On a worker: take a chunk from one step to another."""
    trainer = compiled_trainer(recipe)
    learners = trainer.start(seeds)
    if leaves is not None:
        structure = jax.tree.structure(learners)
        learners = jax.tree.unflatten(structure, [jnp.asarray(x) for x in leaves])
    notes = Notes()
    for after, more in advance(trainer, learners, step, until, snapshots):
        learners = after
        notes.add(more, seeds)
    return [np.asarray(x) for x in jax.tree.leaves(learners)], notes
