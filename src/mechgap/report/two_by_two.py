"""Attends like it, computes like it: every network as a point, as a figure."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from mechgap.report.style import SERIES, STYLE

Point = tuple[float, float]
"""Agreement on updated nodes, and the share of interchanges that follow."""
MARKS = {"learned": ("o", SERIES[0]), "compiled": ("s", SERIES[1]), "untrained": ("x", "#5b6672")}
ACROSS = 3
"""Panels in a row."""


def two_by_two(panels: Mapping[str, Mapping[str, Sequence[Point]]]) -> Figure:
    """A panel for each population and mechanism; lines half way from the untrained network to all.

    Args:
        panels: By title, and by who it is: learned, compiled or untrained.
    """
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.6 + 2.1 * across, 0.5 + 2.1 * down), layout="constrained")
        every = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        for axes in every.flat[len(panels) :]:
            axes.set_visible(False)
        for axes in every.flat[max(0, len(panels) - across) : len(panels)]:
            axes.tick_params(labelbottom=True)  # nothing stands below
        for axes, (title, networks) in zip(every.flat, panels.items(), strict=False):
            for who, (marker, colour) in MARKS.items():
                x, y = ([100 * point[k] for point in networks.get(who, ())] for k in (0, 1))
                axes.plot(x, y, marker, color=colour, ms=4, alpha=0.8, label=who)
            for attends, computes in networks.get("untrained", ()):
                axes.axvline(50 + 50 * attends, color="#8a94a0", lw=0.6, ls=":")
                axes.axhline(50 + 50 * computes, color="#8a94a0", lw=0.6, ls=":")
            axes.set_title(title, fontsize=7)
            axes.set_xlim(-2, 104)
            axes.set_ylim(-2, 104)
        figure.supxlabel("attends like it: top-1 agreement on updated nodes (%)", fontsize=8)
        figure.supylabel("computes like it: follows (%)", fontsize=8)
        lines, labels = every.flat[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=3, fontsize=7)
    return figure
