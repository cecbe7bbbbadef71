"""Pictures of loss landscapes: surfaces as contours and in 3-D, the line, flatness."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.console import Console
from rich.table import Table

from mechgap.measures.landscape import LINE_FROM, LINE_TO, Landscape
from mechgap.report.style import SERIES, STYLE, save_in_both

COLOURS = {"learned": SERIES[0], "compiled": SERIES[1], "initial": SERIES[2]}
FLOOR = 1e-6
"""Losses below are drawn here; a compiled network's is often 0 in float32."""
_SIZE = 2.5


def draw_landscape(landscape: Landscape, out: Path, name_of: str = "") -> list[Path]:
    """Write every picture as PDF and PNG, with a name at the end if given; where they are."""
    drawn: dict[str, Callable[[Landscape], Figure]] = {
        "contours": contours,
        "surfaces": surfaces,
        "flatness": flatness,
    }
    if "line/loss" in landscape.arrays:
        drawn["line"] = line
    written = []
    for name, draw in drawn.items():
        whole = f"landscape_{name}{name_of and '_' + name_of}"
        written += save_in_both(draw(landscape), out, whole)
    return written


def show_flatness(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print how much the loss rises at each radius."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    table = Table("rise of the loss at radius", *networks, box=None, padding=(0, 2, 0, 0))
    for radius in dict.fromkeys(row["radius"] for row in rows):
        here = {row["network"]: row for row in rows if row["radius"] == radius}
        table.add_row(f"{radius:g}", *(_rise_text(here[network]) for network in networks))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"mean ± std over {rows[0]['pairs']} pairs of random directions")


def _rise_text(row: Mapping[str, Any]) -> str:
    if row["rise"] is None:
        return "beyond float32"
    deviation = "" if row["std"] is None else f" ± {row['std']:.2g}"
    return f"{row['rise']:.3g}{deviation}"


def contours(landscape: Landscape) -> Figure:
    """Loss around every network, far and near, one colour scale for each row."""
    networks = landscape.networks
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2 * _SIZE + 0.9, _SIZE * len(networks)), layout="constrained")
        panels = figure.subplots(len(networks), 2, squeeze=False)
        for row, network in zip(panels, networks, strict=True):
            for axes, part in zip(row, ("general", "local"), strict=True):
                found = landscape.surface(network, part)
                levels = log_loss(found["loss"])
                image = axes.contourf(found["ticks"], found["ticks"], levels, 24, cmap="viridis")
                axes.plot(0, 0, "+", color="white", ms=7)
                axes.set_title(f"{network}, {part}")
                axes.set_xlabel("direction 1")
                axes.set_aspect("equal")
                ticks = MaxNLocator(6)
                figure.colorbar(image, ax=axes, label="log10 loss", shrink=0.85, ticks=ticks)
            row[0].set_ylabel("direction 2")
        figure.suptitle(landscape.settings.title, fontsize=9)
    return figure


def surfaces(landscape: Landscape) -> Figure:
    """The same in three dimensions, as the paper shows it."""
    networks = landscape.networks
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2 * _SIZE + 0.9, 1.05 * _SIZE * len(networks)))
        for i, network in enumerate(networks):
            for j, part in enumerate(("general", "local")):
                axes: Any = figure.add_subplot(len(networks), 2, 2 * i + j + 1, projection="3d")
                found = landscape.surface(network, part)
                x, y = np.meshgrid(found["ticks"], found["ticks"])
                z = log_loss(found["loss"])  # every point: a minimum can be one point wide
                axes.plot_surface(x, y, z, cmap="viridis", lw=0, rstride=1, cstride=1, aa=False)
                axes.set_title(f"{network}, {part}", pad=0)
                axes.set_xlabel("direction 1", labelpad=-4)
                axes.set_ylabel("direction 2", labelpad=-4)
                axes.set_zlabel("log10 loss", labelpad=1)
                axes.tick_params(pad=-2, labelsize=6)
                axes.tick_params(axis="z", pad=1)
        figure.suptitle(landscape.settings.title, fontsize=9)
        figure.subplots_adjust(left=0.02, right=0.94, top=0.93, bottom=0.04, wspace=0.15)
    return figure


def flatness(landscape: Landscape) -> Figure:
    """How much the loss rises with distance: the mean over directions, and every pair.

    Initial parameters are no minimum, so nothing is said about them.
    """
    radii = landscape.settings.radii
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4, 2.6), layout="constrained")
        axes = figure.subplots()
        for network in (name for name in landscape.networks if name != "initial"):
            rise = np.maximum(landscape.rise(network), FLOOR)
            colour = COLOURS[network]
            axes.plot(radii, rise.T, color=colour, lw=0.5, alpha=0.35)
            axes.plot(radii, rise.mean(0), "o-", color=colour, lw=1.8, ms=3, label=network)
        axes.set(xscale="log", yscale="log")
        axes.set_xlabel("radius (lengths of the parameters)")
        axes.set_ylabel("rise of the loss")
        axes.grid(lw=0.3)
        axes.legend(fontsize=7)
        axes.set_title(landscape.settings.title)
        axes.set_xlim(min(radii), max(radii))
    return figure


def line(landscape: Landscape) -> Figure:
    """Loss and accuracy on the straight line from learned to compiled parameters."""
    loss, accuracy = landscape.arrays["line/loss"], landscape.arrays["line/accuracy"]
    along = np.linspace(LINE_FROM, LINE_TO, len(loss))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4, 2.6), layout="constrained")
        axes = figure.subplots()
        axes.plot(along, np.maximum(loss, FLOOR), color=SERIES[0], label="loss")
        axes.set_yscale("log")
        axes.set_ylabel("loss", color=SERIES[0])
        other = axes.twinx()
        other.plot(along, 100 * accuracy, "--", color=SERIES[1], label="accuracy")
        other.set_ylabel("accuracy (%)", color=SERIES[1])
        other.set_ylim(0, 102)
        for at in (0, 1):
            axes.axvline(at, color="#6b7480", lw=0.6)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["learned", "¼", "½", "¾", "compiled"])
        axes.set_title(landscape.settings.title)
        axes.grid(lw=0.3)
    return figure


def log_loss(loss: np.ndarray) -> np.ndarray:
    """Losses for drawing: logarithms, with a floor, and a ceiling where they are not finite."""
    finite = loss[np.isfinite(loss)]
    ceiling = float(finite.max()) if finite.size else 1.0
    return np.log10(np.maximum(np.nan_to_num(loss, nan=ceiling, posinf=ceiling), FLOOR))
