"""Whether something fits into memory, asked before it is made."""

import os
from pathlib import Path

from mechgap.errors import InvalidInput
from mechgap.tasks.specs import Task

_MATRICES = 8
"""How many matrices there are of a graph while it is drawn and traced, about."""


def available_memory() -> int | None:
    """Bytes that can be had now; None where the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def trace_bytes(task: Task, graphs: int, nodes: int) -> int:
    """What the hints of some graphs take, as far as it is known before they are traced."""
    if task.tracer is not None:  # a program's length is found by running it
        return 0
    return 4 * len(task.hints) * task.max_hints(nodes) * graphs * nodes


def check_drawing(task: Task, graphs: int, nodes: int, remedy: str) -> None:
    """Refuse graphs that do not fit while they are drawn and traced, which is done on matrices.

    Raises:
        InvalidInput: they do not.
    """
    needed = 4 * _MATRICES * graphs * nodes**2 + 2 * trace_bytes(task, graphs, nodes)
    check_memory(needed, f"to draw {graphs} graphs of {nodes:,} nodes", remedy)


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what does not fit."""
    there = available_memory()
    if there is not None and needed > there:
        raise InvalidInput(
            f"{what} needs about {needed / 1e9:,.1f} GB of memory; {there / 1e9:,.1f} GB are "
            f"available. {remedy}"
        )
