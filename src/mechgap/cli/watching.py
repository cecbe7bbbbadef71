"""Long work on the command line: what is shown of it, and how it is stopped."""

import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from mechgap.report.progress import Shown

LOUDNESS = ContextVar("LOUDNESS", default="normal")
"""What `mechgap --quiet` and `mechgap --verbose` have chosen."""


@contextmanager
def watched(out: Path, doing: str = "measuring", deadline: float = math.inf) -> Iterator["Shown"]:
    """Show how work goes. Ctrl-C and SIGTERM stop it after what is being done, and all is kept.

    While programs are compiled or anything is measured, or the second time, they stop it at once:
    a run folder survives that at any moment.
    """
    from mechgap.report.progress import Loudness, Shown
    from mechgap.training.train import Stopped

    stopped = f"mechgap: stopped; the same command resumes from here ({out})"

    def heed(number: int) -> None:
        if not watcher.stop():
            watcher.close()
            print(stopped, file=sys.stderr, flush=True)
            os._exit(128 + number)  # threads that compile cannot be asked

    with Shown(doing, deadline, Loudness(LOUDNESS.get())) as watcher, _signals(heed):
        try:
            yield watcher
        except Stopped:
            watcher.close()
            print(stopped, file=sys.stderr)
            raise typer.Exit(130) from None


@contextmanager
def _signals(heed: Callable[[int], None]) -> Iterator[None]:
    """Call this with the number of every SIGINT and SIGTERM, from a thread of its own.

    Python's own handlers run in the main thread, which may be compiling for a minute.
    """
    listening, telling = socket.socketpair()
    telling.setblocking(False)
    previous = {
        which: signal.signal(which, lambda *_: None) for which in (signal.SIGINT, signal.SIGTERM)
    }
    told_before = signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)

    def listen() -> None:
        while number := listening.recv(1):
            if number[0] in previous:
                heed(number[0])

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(told_before)
        for which, handler in previous.items():
            signal.signal(which, handler)
        telling.close()  # which ends the thread
        thread.join()
        listening.close()
