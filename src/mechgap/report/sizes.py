"""What the size of graphs does to networks: a figure."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from mechgap.report.style import SERIES, STYLE

BySize = Mapping[int, Sequence[float]]
"""For every number of nodes, a share for each seed."""


def over_sizes(populations: Mapping[str, Mapping[str, BySize]], measure: str) -> Figure:
    """A panel for each kind of graphs, a line for each population, a point for each seed.

    Args:
        populations: By name and kind of graphs.
        measure: What the shares are of.
    """
    kinds = list(dict.fromkeys(kind for found in populations.values() for kind in found))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.9 * len(kinds), 2.8), layout="constrained")
        panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axes, kind in zip(panels, kinds, strict=True):
            for (name, found), color in zip(populations.items(), cycle(SERIES), strict=False):
                sizes = sorted(found.get(kind, {}))
                means = [100 * float(np.mean(found[kind][size])) for size in sizes]
                seeds = max((len(found[kind][size]) for size in sizes), default=0)
                axes.plot(sizes, means, "-", color=color, lw=1.6, label=f"{name} ({seeds} seeds)")
                for size in sizes:
                    shares = [100 * share for share in found[kind][size]]
                    axes.plot([size] * len(shares), shares, "o", color=color, ms=3, alpha=0.7)
            ticks = sorted({size for found in populations.values() for size in found.get(kind, {})})
            axes.set_xscale("log", base=2)
            axes.set_xticks(ticks, [str(size) for size in ticks])
            axes.set_title(kind)
            axes.set_xlabel("nodes")
            axes.set_ylim(-3, 103)
            axes.grid(lw=0.3)
        panels[0].set_ylabel(measure)
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=2, fontsize=7)
    return figure
