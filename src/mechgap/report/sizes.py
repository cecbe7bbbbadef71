"""What the size of graphs does to networks: a table, and a figure."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Column, Table

from mechgap.measures.at_sizes import AtSizes
from mechgap.report.measures import WIDE
from mechgap.report.style import SERIES, STYLE
from mechgap.tasks.kinds import MATRICES_UP_TO

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


def show_sizes(found: AtSizes) -> None:
    """Print a row for every kind and size: means over seeds, beside the yardsticks."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    table = Table(
        Column("graphs", no_wrap=True),
        *("nodes", "count", "network", "outputs (%)", "whole graphs (%)"),
        *("mechanism", "agreement (%)", "misplaced (%)", "tv (%)"),
        box=None,
        padding=(0, 2, 0, 0),
    )
    for on in found.graphs:
        many = len(on.seeds)
        named = {f"learned ({many} seed{'s' * (many != 1)})": [*on.seeds.values()]}
        named |= {name: [seen] for name, seen in on.yardsticks.items()}
        for name, seen in named.items():
            right = [_mean([getattr(s, share) for s in seen]) for share in _RIGHT]
            begin = (on.kind, f"{on.nodes:,}", str(on.count), name, *right)
            for mechanism in seen[0].mechanisms or ("-",):
                beside = [s.mechanisms[mechanism] for s in seen if mechanism in s.mechanisms]
                numbers = [[getattr(b, name) for b in beside] for name in _TOLD]
                table.add_row(*begin, mechanism, *map(_mean, numbers))
    console.print(table)
    if any(on.on_lists for on in found.graphs):
        console.print(
            f"\nGraphs of more than {MATRICES_UP_TO} nodes run as lists of edges: there predicted "
            "pointers are decisions before they are fed back."
        )
    for on in found.graphs:
        if on.refused is not None:
            console.print(f"no compiled network for {on.kind}, {on.nodes:,} nodes: {on.refused}")


_RIGHT = ("accuracy", "graph_accuracy")
_TOLD = ("agreement", "misplaced", "tv")


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None and not np.isnan(value)]
    return f"{100 * float(np.mean(known)):.2f}" if known else "-"
