"""The graphs that a network is decompiled on: some to find, some to check, larger ones to test."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from mechgap.errors import InvalidInput
from mechgap.tasks.batch import Batch
from mechgap.tasks.official import NODES, Split
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import Task

FIT, HELD_OUT, TEST = "fit", "held out", "test"
SMALL, LARGE = 16, NODES[Split.TEST]
"""Nodes of graphs that a program is found and checked on, and of those it is tested on."""
MOST, FEWEST = 48, 8
"""Graphs of a set, by how long traces are."""
_ENTRIES = 4_000_000
"""About so many pairs of nodes, over all steps, are looked at in one set."""


@dataclass(frozen=True)
class Graphs:
    """Three sets: rules and soft forms are found on the first and judged on the others."""

    fit: Batch
    held_out: Batch
    test: Batch

    def __post_init__(self):
        if self.fit.size < FEWEST:
            raise InvalidInput(
                f"a program is found on at least {FEWEST} graphs; got {self.fit.size}. Give more"
            )


def graphs_for(task: Task, nodes: int = SMALL, test_nodes: int = LARGE) -> Graphs:
    """New graphs of a task, with regular positions: fewer where traces are long.

    Args:
        task: With an algorithm that traces it.
        nodes: Of the graphs on which the program is found, and of those it is checked on.
        test_nodes: Of the test graphs.
    """
    return Graphs(
        _drawn(task, 0xDEC0, nodes), _drawn(task, 0xDEC1, nodes), _drawn(task, 0xDEC2, test_nodes)
    )


def _drawn(task: Task, key: int, nodes: int) -> Batch:
    batch = sample(task, jax.random.key(key), batch_size=MOST, nodes=nodes, random_pos=False).trim()
    most = _ENTRIES // (batch.steps * nodes**2)
    return batch[jnp.arange(max(FEWEST, min(MOST, most)))].trim()
