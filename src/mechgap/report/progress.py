"""Progress of training: a live line in a terminal, plain lines elsewhere."""

import math
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from mechgap.training.recipe import Recipe
from mechgap.training.train import Progress, Watcher

PLAIN_SECONDS = 15.0
"""Between plain lines."""


class TrainingProgress(Watcher):
    """Shows seeds, step, loss, validation score, speed and time left, on stderr."""

    def __init__(self, recipe: Recipe, seeds: int, deadline: float = math.inf):
        self._console = Console(file=sys.stderr, highlight=False)
        self._steps = recipe.train_steps * seeds
        sizes = ", ".join(map(str, dict.fromkeys(recipe.train_lengths)))
        self._compiling = f"compiling {recipe.task} for graphs of {sizes} nodes"
        self._compiled = False
        self._stopping = False
        self._deadline = deadline
        self._last = 0.0
        self._bar: Bar | None = None
        if self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
            self._bar = Bar(*columns, TimeElapsedColumn(), console=self._console)
            self._task = self._bar.add_task(self._compiling, total=self._steps)

    def __enter__(self) -> "TrainingProgress":
        if self._bar:
            self._bar.start()
        return self

    def begin(self) -> None:
        """Say that programs are compiled now, which takes a while the first time."""
        if self._bar is None:
            print(self._compiling, file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop drawing."""
        if self._bar:
            self._bar.stop()

    def progress(self, standing: Progress) -> None:
        """Show how it stands."""
        self._compiled = True
        text = (
            f"seeds {standing.seeds_done}/{standing.seeds}  step {standing.step:,}/"
            f"{standing.steps:,}  loss {standing.loss:.4f}  validation {standing.validation:.3f}  "
            f"{standing.rate:.0f} seed-steps/s  {_duration(standing.seconds_left)} left"
        )
        if self._bar:
            self._bar.update(self._task, description=text, completed=standing.reached)
        elif time.monotonic() - self._last > PLAIN_SECONDS or standing.seconds_left == 0:
            self._last = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Show what a user should know."""
        self._console.print(f"mechgap: {text}", soft_wrap=True)

    def stop(self) -> bool:
        """Ask training to stop after the report it is working for; whether that is worth it.

        It is not before the first report, when programs are compiled and nothing can be lost, nor
        if it was asked for already.
        """
        if self._stopping or not self._compiled:
            return False
        self._stopping = True
        self.say("stopping after this interval; once more to stop at once")
        return True

    def wants_to_stop(self) -> bool:
        """Whether `stop` was called, or the deadline (of `time.monotonic`) has passed."""
        return self._stopping or self.is_late

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() > self._deadline


def _duration(seconds: float) -> str:
    if math.isnan(seconds):
        return "unknown time"
    hours, rest = divmod(round(seconds), 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


class Steps:
    """Progress of work that goes through named steps: one live line, or one line a step."""

    def __init__(self, doing: str = "measuring"):
        self._doing = doing
        self._console = Console(file=sys.stderr, highlight=False)
        self._bar: Bar | None = None
        self._shown = ""
        if self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> "Steps":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def tell(self, step: str, done: int, of: int) -> None:
        """Show which step it is, and how much of it is done."""
        if self._bar:
            self._bar.update(
                self._task, description=f"{self._doing}: {step}", completed=done, total=of
            )
        elif step != self._shown:
            self._shown = step
            print(f"{self._doing}: {step}", file=sys.stderr, flush=True)
