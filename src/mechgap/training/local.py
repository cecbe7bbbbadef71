"""The local engine: as many chunks at once as there are devices (on a CPU: cores)."""

from itertools import groupby

import jax
import jax.numpy as jnp
import numpy as np

from mechgap.training.population import Trainer
from mechgap.training.train import Chunk, Engine, Stopped, Work, advance


def on_this_machine(devices: int | None = None) -> Engine:
    """Train in this process, on all of its devices or on so many."""

    def engine(work: Work) -> None:
        trainers: dict[int, Trainer] = {}
        # Chunks that run at once take every step at once, so they must stand at the same one.
        for step, group in groupby(work.unfinished(), key=lambda item: item[1]):
            chunks = [chunk for chunk, _ in group]
            lanes = min(devices or len(jax.devices()), len(chunks))
            if lanes not in trainers:
                trainers[lanes] = Trainer(work.recipe, work.width, lanes)
            for i in range(0, len(chunks), lanes):
                _together(work, trainers[lanes], chunks[i : i + lanes], step)

    return engine


def _together(work: Work, trainer: Trainer, chunks: list[Chunk], step: int) -> None:
    """Train some chunks at once, to their end."""
    # Devices without a chunk of their own repeat the last one.
    lanes = chunks + [chunks[-1]] * (trainer.devices - len(chunks))
    learners = trainer.start(jnp.asarray([s for c in lanes for s in work.places(c)], jnp.int32))
    if step:
        blank = jax.tree.map(lambda x: x[: trainer.chunk], learners)
        resumed = [work.store.resume(chunk, blank) for chunk in lanes]
        whole = [jax.tree.map(lambda x: _fill(x, trainer.chunk), part) for part in resumed]
        learners = trainer.place(jax.tree.map(lambda *x: jnp.concatenate(x), *whole))
    seeds = sum(map(len, chunks))
    for after, rows in advance(trainer, learners, step, work.recipe.train_steps):
        for lane, chunk in enumerate(chunks):
            first = lane * trainer.chunk
            part = jax.tree.map(lambda x, f=first: x[f : f + trainer.chunk], after)
            work.record(chunk, part, rows)
        work.tell(rows, seeds * (rows[0].step - step))
        step = rows[0].step
        if work.watcher.wants_to_stop() and step < work.recipe.train_steps:
            raise Stopped


def _fill(x: jax.Array, width: int) -> np.ndarray:
    """A chunk's seeds at full width, the last one repeated."""
    return np.concatenate([x, np.repeat(x[-1:], width - len(x), axis=0)])
