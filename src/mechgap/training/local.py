"""The local engine: as many chunks at once as there are lanes (accelerators, or cores)."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import jax
import numpy as np

from mechgap.training.engines import lanes
from mechgap.training.population import Learner, Trainer
from mechgap.training.recipe import Recipe
from mechgap.training.train import Chunk, Engine, Stopped, Work, advance


def on_this_machine(devices: int | None = None) -> Engine:
    """Train in this process, in all of its lanes or in so many."""

    def engine(work: Work) -> None:
        waiting = work.unfinished()
        places = lanes()[:devices]
        trainer = compiled_trainer(work.recipe)
        with ThreadPoolExecutor(len(places)) as threads:
            for i in range(0, len(waiting), len(places)):
                _together(work, trainer, waiting[i : i + len(places)], places, threads)

    return engine


@cache
def compiled_trainer(recipe: Recipe) -> Trainer:
    """A trainer, kept with its compiled programs for whoever needs the same again."""
    return Trainer(recipe)


def forget_programs() -> None:
    """Let go of compiled programs: a process can hold only so many (each maps memory)."""
    compiled_trainer.cache_clear()
    jax.clear_caches()


def resumed(work: Work, trainer: Trainer, chunk: Chunk, step: int, device=None) -> Learner:
    """A chunk's learners at the step where it stands, put on a device."""
    learners = trainer.start(work.places(chunk), device)
    if step:
        stored = work.store.resume(chunk, learners)
        whole = jax.tree.map(lambda x: _fill(np.asarray(x), work.width), stored)
        learners = jax.device_put(whole, device)
    return learners


def _together(
    work: Work,
    trainer: Trainer,
    waiting: list[tuple[Chunk, int]],
    places: list[Any],
    threads: ThreadPoolExecutor,
) -> None:
    """Train some chunks to their end, each in a lane of its own."""
    end = work.recipe.train_steps
    running = {
        chunk: advance(
            trainer, resumed(work, trainer, chunk, step, device), step, end, work.snapshots
        )
        for (chunk, step), device in zip(waiting, places, strict=False)
    }
    reached = dict(waiting)
    while running:
        reports = list(threads.map(lambda lane: next(lane), running.values()))
        stopping = work.watcher.wants_to_stop()  # asked once, so that stopping means recorded
        done = 0
        for chunk, (learners, notes) in zip(list(running), reports, strict=True):
            work.record(chunk, learners, notes, stopping=stopping)
            step = notes.metrics[0].step
            done += len(chunk) * (step - reached[chunk])
            reached[chunk] = step
            if reached[chunk] == end:
                del running[chunk]
        work.tell([row for _, notes in reports for row in notes.metrics], done)
        if stopping and running:
            raise Stopped


def _fill(x: np.ndarray, width: int) -> np.ndarray:
    """A chunk's seeds at full width, the last one repeated."""
    return np.concatenate([x, np.repeat(x[-1:], width - len(x), axis=0)])
