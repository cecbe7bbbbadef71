"""One look for every figure: quiet, legible at column width, safe for the colour-blind."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from mechgap.errors import InvalidInput

DIVERGING = "PuOr_r"
"""Negative violet, positive orange; distinct for every common colour blindness."""
REACHED, UNREACHED, ATTENTION = "#e08214", "#d8dde3", "#35508c"

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


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure; the ending decides the format."""
    endings = sorted(figure.canvas.get_supported_filetypes())
    if path.suffix[1:] not in endings:
        raise InvalidInput(
            f"a figure's name must end in one of {', '.join('.' + e for e in endings)}; got "
            f"'{path.name}'"
        )
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder '{path.parent}' to write {path.name} into")
    with mpl.rc_context(STYLE):
        figure.savefig(path, bbox_inches="tight")
