"""Train a population in a run folder, or resume it.

Seeds are cut into chunks. A chunk starts, or resumes where the folder says, and advances from
report to report until its last step; what was done is recorded on the way. An engine decides where
that happens: in this process (`local`) or on a cluster (`ray_engine`). Both leave the same bits.

At *snapshots* an observer looks at every network: at the steps that were asked for, and in the end
at the parameters of the best validation score. What it sees is recorded with the metrics.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import jax
import numpy as np

from mechgap.errors import InvalidInput
from mechgap.network.network import Network
from mechgap.training.population import Learner, Trainer
from mechgap.training.recipe import Recipe
from mechgap.training.rows import MetricRow, Notes, Observation
from mechgap.training.store import Store

Observer = Callable[[Network], tuple[str, bytes]]
"""Looks at a network: numbers as JSON, and a fingerprint."""


@dataclass(frozen=True)
class Snapshots:
    """When an observer looks at training. It is made from the recipe, wherever training happens."""

    steps: frozenset[int]
    """Multiples of `eval_every`; 0 is the start."""
    make_observer: Callable[[Recipe], Observer]


Chunk = tuple[int, ...]
"""Seeds that run as one vectorised program."""


@dataclass(frozen=True)
class Progress:
    """How a run stands."""

    seeds_done: int
    seeds: int
    step: int
    steps: int
    loss: float
    validation: float
    rate: float
    """Seed-steps per second."""
    reached: int
    """Seed-steps done, of this process and before."""
    seconds_left: float


class Watcher:
    """Is told how training goes, and says when to stop. This one is not interested."""

    def begin(self, what: str) -> None:
        """Called when there is something to do, with what programs are compiled for."""

    def progress(self, progress: Progress) -> None:
        """Called after every report."""

    def say(self, text: str) -> None:
        """Called with what a user should know."""

    def wants_to_stop(self) -> bool:
        """Asked after every report."""
        return False

    @property
    def is_late(self) -> bool:
        """Whether it wants to stop because its time is over."""
        return False

    def tell(self, what: str, done: int, of: int) -> None:
        """Called with what is measured after training, how much is done, and of how much."""


OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""


class CallbackWatcher(Watcher):
    """Tells a function how everything goes, training in seed-steps."""

    def __init__(self, on_progress: OnProgress):
        self._on_progress = on_progress

    def progress(self, progress: Progress) -> None:
        """Training, as one thing among others."""
        self._on_progress("training", progress.reached, progress.steps * progress.seeds)

    def tell(self, what: str, done: int, of: int) -> None:
        """Everything else."""
        self._on_progress(what, done, of)


def watching(progress: OnProgress | Watcher | None) -> Watcher:
    """Whoever is to be told: a watcher, a function, or nobody."""
    if isinstance(progress, Watcher):
        return progress
    return Watcher() if progress is None else CallbackWatcher(progress)


class Stopped(Exception):
    """Training was asked to stop. Everything done so far is recorded."""


@dataclass
class Work:
    """What is left to do, and how engines record what they did."""

    recipe: Recipe
    seeds: Sequence[int]
    width: int
    """Seeds per chunk."""
    store: Store
    watcher: Watcher
    checkpoint_seconds: float
    """How much work a crash may cost (or one interval between reports, if that is longer)."""
    snapshots: Snapshots | None = None
    began: float = field(default_factory=time.monotonic)
    trained: int = 0
    """Seed-steps of this process, after its first report."""
    _since: float | None = None
    _recorded: dict[Chunk, float] = field(default_factory=dict)
    _unrecorded: dict[Chunk, Notes] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Seed-steps per second since the first report."""
        if self._since is None:
            return 0.0
        return self.trained / max(1e-9, time.monotonic() - self._since)

    def unfinished(self) -> list[tuple[Chunk, int]]:
        """Chunks that are not finished and the step that each has reached, furthest first."""
        unfinished = []
        for i in range(0, len(self.seeds), self.width):
            chunk = tuple(self.seeds[i : i + self.width])
            if not self.store.is_finished(chunk):
                step, problem = self.store.step_reached(chunk)
                unfinished.append((chunk, step))
                if problem:
                    self.watcher.say(problem)
        if unfinished:
            sizes = ", ".join(map(str, dict.fromkeys(self.recipe.train_lengths)))
            self.watcher.begin(f"{self.recipe.task} for graphs of {sizes} nodes")
        return sorted(unfinished, key=lambda item: -item[1])

    def places(self, chunk: Chunk) -> list[int]:
        """The chunk's seeds at full width: a last one that is smaller repeats its last seed."""
        return [*chunk, *[chunk[-1]] * (self.width - len(chunk))]

    def next_stop(self, step: int, stride: int) -> int:
        """Where to stop next: after a stride, or at the end."""
        return min(self.recipe.train_steps, (step // stride + 1) * stride)

    def record(self, chunk: Chunk, learners: Learner, notes: Notes, *, stopping: bool) -> None:
        """Take note of how far a chunk is: in the folder when it is due, or at the end."""
        mine = jax.tree.map(lambda x: x[: len(chunk)], learners)
        pending = self._unrecorded.setdefault(chunk, Notes())
        pending.add(notes, chunk)
        step = int(mine.step[0])
        now = time.monotonic()
        if step >= self.recipe.train_steps:
            self.store.finish(chunk, mine, pending)
        elif (
            now - self._recorded.setdefault(chunk, self.began) >= self.checkpoint_seconds
            or stopping
        ):
            self.store.checkpoint(chunk, mine, pending)
            self._recorded[chunk] = now
        else:
            return
        del self._unrecorded[chunk]

    def tell(self, rows: Sequence[MetricRow], steps: int) -> None:
        """Tell the watcher; `steps` is how many seed-steps were done since the last time."""
        # Compiling is part of the first report; speed is counted from there.
        self.trained += 0 if self._since is None else steps
        self._since = self._since or time.monotonic()
        stored = {row.seed: row for row in self.store.seeds() if row.seed in set(self.seeds)}
        done = sum(row.state in {"finished", "diverged"} for row in stored.values())
        now = {row.seed: row.step for row in rows}
        total = self.recipe.train_steps * len(self.seeds)
        reached = sum(max(row.step, now.get(seed, 0)) for seed, row in stored.items())
        rate = self.rate
        self.watcher.progress(
            Progress(
                seeds_done=done,
                seeds=len(self.seeds),
                step=max(row.step for row in rows),
                steps=self.recipe.train_steps,
                loss=_mean(row.loss for row in rows),
                validation=_mean(row.validation for row in rows),
                rate=rate,
                reached=reached,
                seconds_left=(total - reached) / rate if rate else float("nan"),
            )
        )


def _mean(values: Iterable[float | None]) -> float:
    """The mean of those that are numbers."""
    return float(np.mean([v for v in values if v is not None and np.isfinite(v)] or [np.nan]))


Engine = Callable[[Work], None]


def train(
    recipe: Recipe,
    seeds: Sequence[int],
    folder: Path,
    engine: Engine,
    *,
    chunk: int | None = None,
    checkpoint_seconds: float = 20.0,
    snapshots: Snapshots | None = None,
    watcher: Watcher | None = None,
) -> None:
    """Train these seeds, or resume the folder."""
    width = default_chunk(recipe) if chunk is None else chunk
    if not seeds:
        raise InvalidInput("there must be at least one seed; got none")
    if width < 1:
        raise InvalidInput(f"chunk must be at least 1; got {width}")
    with Store.writing(folder, recipe, width) as store:
        store.expect(seeds)
        work = Work(
            *(recipe, seeds, width, store, watcher or Watcher(), checkpoint_seconds),
            snapshots=snapshots,
        )
        try:
            engine(work)
        finally:
            if work.trained:
                store.note_rate(work.rate)


def snapshots_at(
    recipe: Recipe, steps: Iterable[int], make_observer: Callable[[Recipe], Observer]
) -> Snapshots:
    """Look at training at these steps, as far as it goes, and at its last."""
    wanted = {step for step in steps if step < recipe.train_steps} | {recipe.train_steps}
    if odd := sorted(
        step for step in wanted - {recipe.train_steps} if step < 0 or step % recipe.eval_every
    ):
        raise InvalidInput(
            f"snapshots are taken where validation is, every {recipe.eval_every} steps; got {odd}"
        )
    return Snapshots(frozenset(wanted), make_observer)


def default_chunk(recipe: Recipe) -> int:
    """How many seeds run as one vectorised program.

    On a CPU wide networks gain nothing from it, while narrow ones are too small alone. An
    accelerator is filled by the seed axis.
    """
    if jax.default_backend() == "cpu":
        return 1 if recipe.hidden_size > 16 else 32
    return 64


def advance(
    trainer: Trainer, learners: Learner, step: int, until: int, snapshots: Snapshots | None = None
) -> Iterator[tuple[Learner, Notes]]:
    """Train from one step to another; yields after every report."""
    recipe = trainer.recipe
    at_start = observed(recipe, learners, snapshots, step) if step == 0 else []
    while step < until:
        to = min(recipe.train_steps, (step // recipe.eval_every + 1) * recipe.eval_every)
        learners, loss = trainer.advance(learners, to - step)
        step = to
        testing = step % recipe.test_every == 0 or step == recipe.train_steps
        learners, found = trainer.report(learners, loss, testing)
        seeds, columns = np.asarray(learners.seed), [np.asarray(x) for x in found]
        rows = {
            int(seed): MetricRow(int(seed), step, *(float(column[i]) for column in columns))
            for i, seed in enumerate(seeds)
        }
        seen = observed(recipe, learners, snapshots, step)
        yield learners, Notes(list(rows.values()), [*at_start, *seen])
        at_start = []


def observed(
    recipe: Recipe, learners: Learner, snapshots: Snapshots | None, step: int
) -> list[Observation]:
    """What is seen of the seeds of a chunk at a step, if it is looked at."""
    if snapshots is None or step not in snapshots.steps:
        return []
    look = _observer(snapshots.make_observer, recipe)
    kinds = ["step", "best"] if step == recipe.train_steps else ["step"]
    seen: dict[tuple[int, str], Observation] = {}
    for i, seed in enumerate(np.asarray(learners.seed).tolist()):
        for which in kinds:
            if (seed, which) not in seen:  # a last chunk that is smaller repeats a seed
                chosen = learners.network if which == "step" else learners.best
                at = step if which == "step" else int(learners.best_step[i])
                network = jax.tree.map(lambda x, i=i: x[i], chosen)
                seen[seed, which] = Observation(seed, at, which, *look(network))
    return list(seen.values())


@cache
def _observer(make: Callable[[Recipe], Observer], recipe: Recipe) -> Observer:
    """An observer, kept with its graphs and programs."""
    return make(recipe)
