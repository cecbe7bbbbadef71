"""Other graphs to measure a run on: of another kind or size, or the user's own.

They take the place of the test set.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechgap.errors import InvalidInput
from mechgap.tasks.batch import Batch
from mechgap.tasks.graph_files import batch_from_files
from mechgap.tasks.kinds import kinds_of
from mechgap.tasks.memory import check_memory, trace_bytes
from mechgap.tasks.official import NODES, SAMPLES, Split
from mechgap.tasks.sampling import check_nodes
from mechgap.training.population import graphs_to_test
from mechgap.training.recipe import Recipe

_COPIES = 12
"""How many arrays as large as the attention of a run are there while it is measured, about."""
_BLOCK_BYTES = 2**29
"""Of attention that is looked at at once."""


@dataclass(frozen=True)
class Elsewhere:
    """Graphs in place of a run's test set."""

    name: str
    """Also that of the folder that holds what is found on them."""
    batch: Batch


def other_graphs(
    recipe: Recipe, graphs: str, nodes: int = NODES[Split.TEST], count: int = SAMPLES
) -> Elsewhere:
    """New graphs of some kind and size, for the networks of a recipe."""
    kinds_of(graphs)
    check_nodes(nodes)
    if count < 1:
        raise InvalidInput(f"count must be at least 1; got {count}")
    check_size(recipe, nodes)
    _check_fits(recipe, count, nodes, steps=1)
    batch = graphs_to_test(recipe.posed, graphs, nodes, count)
    return _checked(recipe, name_of(graphs, nodes, count), batch)


def name_of(graphs: str, nodes: int, count: int = SAMPLES) -> str:
    """What such graphs are called."""
    return f"{graphs}-{nodes}" + ("" if count == SAMPLES else f"-{count}-graphs")


def own_graphs(
    recipe: Recipe,
    files: Sequence[Path],
    *,
    count: int | None = None,
    sources: Sequence[int] | None = None,
) -> Elsewhere:
    """The graphs of some files; see `batch_from_files`."""
    batch = batch_from_files(recipe.posed, files, count=count, sources=sources)
    check_size(recipe, batch.nodes)
    stems = "+".join(file.stem for file in files)
    name = re.sub(r"[^\w.+-]+", "_", stems)[:100].strip(".") or "graphs"
    return _checked(recipe, name, batch)


def _checked(recipe: Recipe, name: str, batch: Batch) -> Elsewhere:
    _check_fits(recipe, batch.size, batch.nodes, batch.steps)
    return Elsewhere(name, batch)


def check_size(recipe: Recipe, nodes: int) -> None:
    """Refuse graphs of a size that a recipe's networks cannot run on."""
    tied = recipe.network_config.pre_att_bias_nodes
    if tied is not None and nodes != tied:
        raise InvalidInput(
            f"a pre-attention bias ties the networks of this run to graphs of {tied} nodes; got "
            f"{nodes}. Take graphs of that size"
        )


def in_blocks(recipe: Recipe, batch: Batch) -> Iterator[Batch]:
    """Graphs of a batch, a power of two at once whose attention has room in any machine."""
    fitting = max(1, _BLOCK_BYTES // _attention_bytes(recipe, batch.nodes, batch.steps))
    size = 1 << (fitting.bit_length() - 1)
    for k in range(0, batch.size, size):
        yield batch[k : k + size]


def _attention_bytes(recipe: Recipe, nodes: int, steps: int) -> int:
    """Of one graph, over all message-passing steps of a run."""
    return 4 * steps * recipe.nb_msg_passing_steps * recipe.nb_heads * nodes**2


def _check_fits(recipe: Recipe, graphs: int, nodes: int, steps: int) -> None:
    """Refuse what would not fit: attention of every step, and all that it is compared with."""
    task = recipe.posed
    steps = max(steps, task.max_hints(nodes) if task.fixed_length else 1)
    attention = graphs * _attention_bytes(recipe, nodes, steps)
    check_memory(
        _COPIES * attention + 2 * trace_bytes(task, graphs, nodes),
        f"to measure {graphs} graphs of {nodes:,} nodes",
        "Take fewer (--count) or smaller ones",
    )
