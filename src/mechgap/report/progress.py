"""How long work goes: a live line in a terminal, plain lines elsewhere. All of it on stderr."""

import math
import sys
import time
from enum import Enum

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from mechgap.training.train import Progress, Watcher

PLAIN_SECONDS = 15.0
"""Between plain lines."""


class Loudness(Enum):
    """How much is said of work while it goes on."""

    QUIET = "quiet"
    """Nothing."""
    NORMAL = "normal"
    VERBOSE = "verbose"
    """Every report, as a plain line with the time."""


class Shown(Watcher):
    """Shows what is compiled, how training goes (seeds, step, loss, validation score, speed and
    time left), and what is measured."""

    def __init__(
        self,
        doing: str = "measuring",
        deadline: float = math.inf,
        loudness: Loudness = Loudness.NORMAL,
    ):
        self._doing, self._deadline, self._loudness = doing, deadline, loudness
        self._console = Console(file=sys.stderr, highlight=False)
        self._training = self._stopping = False
        self._last, self._said = 0.0, ""
        self._bar: Bar | None = None
        if self._console.is_terminal and loudness is Loudness.NORMAL:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
            self._bar = Bar(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._task = self._bar.add_task("", total=None, visible=False)

    def __enter__(self) -> "Shown":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop drawing."""
        if self._bar:
            self._bar.stop()

    def begin(self, what: str) -> None:
        """Say that programs are compiled now, which takes a while the first time."""
        self._show(f"compiling {what}", 0, None)

    def progress(self, progress: Progress) -> None:
        """Show how training stands."""
        total = progress.steps * progress.seeds
        self._training = progress.reached < total
        text = (
            f"seeds {progress.seeds_done}/{progress.seeds}  step {progress.step:,}/"
            f"{progress.steps:,}  loss {progress.loss:.4f}  validation {progress.validation:.3f}  "
            f"{progress.rate:.0f} seed-steps/s  {_duration(progress.seconds_left)} left"
        )
        every = self._bar or self._loudness is Loudness.VERBOSE
        if every or time.monotonic() - self._last > PLAIN_SECONDS or not self._training:
            self._last = time.monotonic()
            self._show(text, progress.reached, total)

    def tell(self, what: str, done: int, of: int) -> None:
        """Show what is measured, and how much of it is done."""
        self._show(f"{self._doing}: {what}", done, of)

    def _show(self, text: str, done: int, total: int | None) -> None:
        if self._bar:
            if text.split("  ")[0] != self._said:  # another kind of work has a clock of its own
                self._said = text.split("  ")[0]
                self._bar.reset(self._task)
            self._bar.update(
                self._task, description=text, completed=done, total=total, visible=True
            )
        elif text != self._said and self._loudness is not Loudness.QUIET:
            self._said = text
            when = time.strftime("%H:%M:%S  ") if self._loudness is Loudness.VERBOSE else ""
            print(when + text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Show what a user should know."""
        if self._loudness is Loudness.QUIET:
            return
        self._console.print(f"mechgap: {text}", soft_wrap=True)

    def stop(self) -> bool:
        """Ask training to stop after the report it is working for; whether that is worth it.

        It is not before the first report, when programs are compiled and nothing can be lost, nor
        while anything is measured, nor when it was asked for before.
        """
        if self._stopping or not self._training:
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
