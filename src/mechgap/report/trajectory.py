"""How accuracy and both gaps move in training: a table and a figure."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from mechgap.measures.trajectory import Standpoint
from mechgap.report.style import SERIES, STYLE, save_figure

_MEASURES: dict[str, Callable[[Standpoint], float | None]] = {
    "test accuracy (%)": lambda row: row.accuracy,
    "attention elsewhere (tv, %)": lambda row: row.internal_tv,
    "trace predicted (%)": lambda row: row.external,
}


def show_trajectory(rows: Sequence[Standpoint]) -> None:
    """Print mean and range over seeds at every step."""
    table = Table("step", *_MEASURES, "nearest", box=None, padding=(0, 2, 0, 0))
    for step in sorted({row.step for row in rows}):
        here = [row for row in rows if row.step == step]
        cells = []
        for measure in _MEASURES.values():
            values = [100 * v for row in here if (v := measure(row)) is not None]
            spread = f"{np.mean(values):.2f} ({min(values):.2f} … {max(values):.2f})"
            cells.append(spread if values else "-")
        names = {row.mechanism for row in here if row.mechanism}
        table.add_row(f"{step:,}", *cells, ", ".join(sorted(names)) or "-")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"mean (lowest … highest) over {len({row.seed for row in rows})} seeds")


def draw_trajectory(rows: Sequence[Standpoint], title: str, out: Path) -> list[Path]:
    """Write the figure as PDF and PNG; where it is."""
    figure = trajectory(rows, title)
    written = [out / f"trajectory.{ending}" for ending in ("pdf", "png")]
    for path in written:
        save_figure(figure, path)
    return written


def trajectory(rows: Sequence[Standpoint], title: str) -> Figure:
    """Every seed's path, a panel a measure."""
    known = {
        name: measure
        for name, measure in _MEASURES.items()
        if any(measure(row) is not None for row in rows)
    }
    seeds = sorted({row.seed for row in rows})
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.7 * len(known), 2.5), layout="constrained")
        panels = figure.subplots(1, len(known), squeeze=False)[0]
        for axes, (name, measure) in zip(panels, known.items(), strict=True):
            lines = []
            for seed in seeds:
                mine = sorted((row for row in rows if row.seed == seed), key=lambda row: row.step)
                steps = [row.step for row in mine]
                values = [100 * (measure(row) or 0.0) for row in mine]
                axes.plot(steps, values, color=SERIES[0], lw=0.8, alpha=0.5)
                lines.append((steps, values))
            if len({tuple(steps) for steps, _ in lines}) == 1:
                mean = np.mean([values for _, values in lines], axis=0)
                axes.plot(lines[0][0], mean, "o-", color=SERIES[1], lw=1.6, ms=3, label="mean")
                axes.legend(fontsize=7)
            axes.set_xscale("symlog", linthresh=10)
            axes.set_xlim(left=0)
            axes.set_ylim(-2, 102)
            axes.set_xlabel("training step")
            axes.set_ylabel(name)
            axes.grid(lw=0.3)
        figure.suptitle(f"{title}: {len(seeds)} seeds from compiled parameters", fontsize=9)
    return figure
