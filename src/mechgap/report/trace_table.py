"""One graph and its trace as tables that a person can read."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Location, Type


def trace_data(batch: Batch, sample: int = 0) -> dict[str, Any]:
    """One sample as plain data, ready for JSON. Hints stop at its true length."""
    A = np.asarray(batch.inputs["A"][sample])
    length = int(batch.lengths[sample])
    data: dict[str, Any] = {
        "task": batch.task.name,
        "nodes": batch.nodes,
        "edges": [[int(i), int(j), float(A[i, j])] for i, j in np.argwhere(A != 0)],
        "pos": np.asarray(batch.inputs["pos"][sample]).tolist(),
        "length": length,
        "hints": {
            f.name: np.asarray(batch.hints[f.name][:length, sample]).tolist()
            for f in batch.task.hints
        },
        "outputs": {
            f.name: np.asarray(batch.outputs[f.name][sample]).tolist() for f in batch.task.outputs
        },
    }
    if batch.task.has_source:
        data["source"] = int(np.argmax(batch.inputs["s"][sample]))
    return data


def trace_view(batch: Batch, width: int, sample: int = 0) -> Group:
    """One sample for the terminal: its edges, then every hint of every step, then the output."""
    return Group(
        _headline(batch, sample), _edge_table(batch, sample), *_hint_tables(batch, width, sample)
    )


def _headline(batch: Batch, sample: int) -> Text:
    A = np.asarray(batch.inputs["A"][sample])
    links = A if batch.task.directed else np.triu(A)
    parts = [f"{batch.nodes} nodes", f"{int((links != 0).sum())} edges"]
    if batch.task.has_source:
        parts.append(f"source {int(np.argmax(batch.inputs['s'][sample]))}")
    parts.append(f"{int(batch.lengths[sample])} hints")
    return Text.assemble((batch.task.name, "bold"), ": ", ", ".join(parts), "\n")


def _edge_table(batch: Batch, sample: int) -> Table:
    A = np.asarray(batch.inputs["A"][sample])
    table = Table("node", "pos", "to (weight)" if batch.task.weighted else "to", box=None)
    for i, row in enumerate(A):
        ends = np.flatnonzero(row)
        shown = [f"{j} ({row[j]:.2f})" if batch.task.weighted else str(j) for j in ends]
        position = float(batch.inputs["pos"][sample, i])
        table.add_row(str(i), f"{position:.3f}", " ".join(shown) or "-")
    return table


def _hint_tables(batch: Batch, width: int, sample: int) -> list[Table]:
    """The hints in as few tables as the terminal has room for, then the outputs."""
    length = int(batch.lengths[sample])
    groups: list[list[tuple[str, list[str]]]] = []
    left = 0
    for f in batch.task.hints:
        title, cells = _column(f, np.asarray(batch.hints[f.name][:length, sample]), batch.nodes)
        needed = 3 + max(map(len, [*title.split("\n"), *cells]))
        if needed > left:
            groups.append([])
            left = width - len("step  ")
        groups[-1].append((title, cells))
        left -= needed
    outputs = [
        _column(f, np.asarray(batch.outputs[f.name][sample])[None], batch.nodes)
        for f in batch.task.outputs
    ]
    steps = [str(step) for step in range(length)]
    return [*(_table("step", steps, group) for group in groups), _table("", ["output"], outputs)]


def _table(corner: str, rows: list[str], columns: list[tuple[str, list[str]]]) -> Table:
    table = Table(corner, box=None, padding=(0, 2, 0, 0), title=" ")
    for title, _ in columns:
        table.add_column(title, no_wrap=True)
    for row in zip(rows, *(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    return table


def _column(feature: Feature, values: np.ndarray, nodes: int) -> tuple[str, list[str]]:
    """A feature's title and its cells over time. A dot is no, or a pointer to oneself."""
    if feature.location is Location.GRAPH:
        return f"{feature.name}\n ", [f"{value:.2f}" for value in values]
    if feature.type is Type.MASK_ONE:
        return f"{feature.name}\n ", [str(row.argmax()) for row in values]
    if feature.type is Type.CATEGORICAL:
        values = values.argmax(-1)
    cell = 4 if feature.type is Type.SCALAR else len(str(nodes - 1))

    def show(node: int, value: Any) -> str:
        if feature.type is Type.SCALAR:
            return f"{value:.2f}"
        if feature.type is Type.MASK:
            return "1" if value else "·"
        if feature.type is Type.POINTER:
            return "·" if value == node else str(value)
        return str(value)

    def line(shown: Iterable[str]) -> str:
        return " ".join(text.rjust(cell) for text in shown)

    header = line(map(str, range(nodes)))
    cells = [line(show(i, value) for i, value in enumerate(row)) for row in values]
    return f"{feature.name}\n{header}", cells


def print_trace(batch: Batch, sample: int = 0) -> None:
    """Print one sample of a batch."""
    console = Console(highlight=False)
    console.print(trace_view(batch, console.width, sample))
