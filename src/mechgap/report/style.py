"""One look for every figure: quiet, legible at column width, safe for the colour-blind."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from mechgap.errors import InvalidInput

DIVERGING = "PuOr_r"
"""Negative violet, positive orange; distinct for every common colour blindness."""
REACHED, UNREACHED, ATTENTION = "#e08214", "#d8dde3", "#35508c"

SERIES = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4fa0", "#8a7500")
"""Lines and points; the first is what was learned, the second what was compiled (Okabe and Ito's
colours, which the colour-blind can tell apart)."""

STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


def check_figure_path(path: Path) -> None:
    """Refuse names of no known format, and folders that are not there."""
    endings = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:] not in endings:
        raise InvalidInput(
            f"a figure's name must end in one of {', '.join('.' + e for e in endings)}; got "
            f"'{path.name}'"
        )
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder '{path.parent}' to write {path.name} into")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the ending decides the format."""
    check_figure_path(path)
    with mpl.rc_context(STYLE):
        figure.savefig(path, bbox_inches="tight")


def save_in_both(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PDF and PNG; where it is."""
    written = [folder / f"{name}.{ending}" for ending in ("pdf", "png")]
    for path in written:
        save_figure(figure, path)
    return written
