"""How accuracy and both gaps move in training: a table and a figure."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from mechgap.measures.snapshot import Snapshot
from mechgap.report.style import SERIES, STYLE, save_in_both


def _gap(row: Snapshot) -> float | None:
    """To the mechanism for which it is smallest."""
    return min((m.tv for m in row.test.mechanisms.values() if m.tv is not None), default=None)


_MEASURES: dict[str, Callable[[Snapshot], float | None]] = {
    "test accuracy (%)": lambda row: row.test.accuracy,
    "misplaced attention (tv, %)": _gap,
    "hint accuracy (%)": lambda row: row.test.hints,
}


def show_trajectory(rows: Sequence[Snapshot]) -> None:
    """Print mean and range over seeds at every step."""
    table = Table("step", *_MEASURES, "nearest", box=None, padding=(0, 2, 0, 0))
    for step in sorted({row.step for row in rows}):
        here = [row for row in rows if row.step == step]
        cells = []
        for measure in _MEASURES.values():
            values = [100 * v for row in here if (v := measure(row)) is not None]
            spread = f"{np.mean(values):.2f} ({min(values):.2f} … {max(values):.2f})"
            cells.append(spread if values else "-")
        names = {row.test.nearest for row in here if row.test.nearest}
        table.add_row(f"{step:,}", *cells, ", ".join(sorted(names)) or "-")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"mean (lowest … highest) over {len({row.seed for row in rows})} seeds")


def draw_trajectory(rows: Sequence[Snapshot], title: str, out: Path) -> list[Path]:
    """Write the figure as PDF and PNG; where it is."""
    return save_in_both(trajectories({title: rows}), out, "trajectory")


def trajectories(paths: Mapping[str, Sequence[Snapshot]]) -> Figure:
    """Every seed's path and the mean of the seeds, a panel a measure, a colour a population."""
    known = {
        name: measure
        for name, measure in _MEASURES.items()
        if any(measure(row) is not None for rows in paths.values() for row in rows)
    }
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.7 * len(known), 2.9), layout="constrained")
        panels = figure.subplots(1, len(known), squeeze=False)[0]
        for axes, (name, measure) in zip(panels, known.items(), strict=True):
            for (title, rows), color in zip(paths.items(), cycle(SERIES), strict=False):
                _draw_seeds(axes, rows, measure, title, color)
            axes.set_xscale("symlog", linthresh=10)
            axes.set_xlim(left=0)
            axes.set_ylim(-2, 102)
            axes.set_xlabel("training step")
            axes.set_ylabel(name)
            axes.grid(lw=0.3)
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=3, fontsize=7)
    return figure


def _draw_seeds(
    axes: Axes,
    rows: Sequence[Snapshot],
    measure: Callable[[Snapshot], float | None],
    title: str,
    color: str,
) -> None:
    """Thin lines for seeds, a thick one for their mean at the steps that all of them have."""
    values = {(row.seed, row.step): 100 * v for row in rows if (v := measure(row)) is not None}
    seeds = sorted({seed for seed, _ in values})
    for seed in seeds:
        steps = sorted(step for other, step in values if other == seed)
        axes.plot(steps, [values[seed, step] for step in steps], color=color, lw=0.6, alpha=0.5)
    shared = sorted(s for s in {s for _, s in values} if all((n, s) in values for n in seeds))
    means = [np.mean([values[seed, step] for seed in seeds]) for step in shared]
    label = f"{title} ({len(seeds)} seeds)"
    axes.plot(shared, means, "o-", color=color, lw=1.6, ms=2.5, label=label)
