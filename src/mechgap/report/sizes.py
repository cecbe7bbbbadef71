"""What the size of graphs does to networks: a table, and a figure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import cycle, product

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Column, Table

from mechgap.measures.at_sizes import AtSizes
from mechgap.measures.snapshot import SeenRun
from mechgap.report.measures import WIDE
from mechgap.report.style import SERIES, STYLE
from mechgap.tasks.kinds import MATRICES_UP_TO

BySize = Mapping[int, Sequence[float]]
"""For every number of nodes, a share for each network."""
Lines = Mapping[str, Mapping[str, BySize]]
"""By kind of graphs, then by the name of what is shown there."""
LEARNED = "learned"
BESIDE = {"compiled": "compiled", "untrained": "untrained", "uniform": "uniform attention"}
"""The baselines, as they are called."""
MEASURES = {
    "accuracy": "outputs right (%)",
    "graph_accuracy": "graph accuracy (%)",
    "agreement": "top-1 agreement (%)",
}


def lines_of(found: AtSizes) -> dict[str, Lines]:
    """What is drawn of each measure: the run's networks, and what they are compared with.

    Agreement is with the mechanism that the networks are nearest to; of the compiled network, with
    its own. Where a kind and size was looked at twice, the larger number of graphs counts, and
    matrices where they have room.
    """
    largest = {
        (on.kind, on.nodes): on
        for on in sorted(found.graphs, key=lambda on: on.count)
        if not on.lists
    }.values()
    mechanism = _nearest(found)
    told: dict[str, dict[str, dict[str, dict[int, Sequence[float]]]]] = {}
    for on in sorted(largest, key=lambda on: on.nodes):
        named = {LEARNED: list(on.seeds.values())}
        named |= {n: [on.baselines[name]] for name, n in BESIDE.items() if name in on.baselines}
        for (name, seen), (measure, label) in product(named.items(), MEASURES.items()):
            values = [_share(each, measure, mechanism) for each in seen]
            if shares := [value for value in values if value is not None]:
                of_kind = told.setdefault(label, {}).setdefault(on.kind, {})
                of_kind.setdefault(name, {})[on.nodes] = shares
    return dict(told)


def _share(seen: SeenRun, measure: str, mechanism: str | None) -> float | None:
    if measure != "agreement":
        return getattr(seen, measure)
    own = mechanism if mechanism in seen.mechanisms else next(iter(seen.mechanisms), None)
    return None if own is None else seen.mechanisms[own].agreement


def _nearest(found: AtSizes) -> str | None:
    """The mechanism that the networks agree with most, over all graphs."""
    agreed = defaultdict[str, list[float]](list)
    for seen in (seen for on in found.graphs for seen in on.seeds.values()):
        for name, beside in seen.mechanisms.items():
            if beside.agreement is not None:
                agreed[name].append(beside.agreement)
    return max(agreed, key=lambda name: float(np.mean(agreed[name])), default=None)


def over_sizes(told: Mapping[str, Lines]) -> Figure:
    """A row for each measure, a panel for each kind of graphs, a line for each that is compared, a
    point for each network.

    Args:
        told: By what the shares are of.
    """
    kinds = list(dict.fromkeys(kind for lines in told.values() for kind in lines))
    names = list(dict.fromkeys(n for lines in told.values() for by in lines.values() for n in by))
    colours = dict(zip(names, cycle(SERIES), strict=False))
    with mpl.rc_context(STYLE):
        size = (max(4.0, 2.9 * len(kinds)), 0.4 + 2.4 * len(told))
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(told), len(kinds), squeeze=False, sharey=True, sharex="col")
        for row, (measure, lines) in zip(panels, told.items(), strict=True):
            for axes, kind in zip(row, kinds, strict=True):
                for name, by_size in lines.get(kind, {}).items():
                    sizes = sorted(by_size)
                    means = [100 * float(np.mean(by_size[size])) for size in sizes]
                    axes.plot(sizes, means, "-", color=colours[name], lw=1.6, label=name)
                    for size in sizes:
                        shares = [100 * share for share in by_size[size]]
                        at = [size] * len(shares)
                        axes.plot(at, shares, "o", color=colours[name], ms=3, alpha=0.7)
                axes.set_ylim(-3, 103)
                axes.grid(lw=0.3)
            row[0].set_ylabel(measure)
        for column, kind in enumerate(kinds):
            ticks = {s for of in told.values() for by in of.get(kind, {}).values() for s in by}
            top, bottom = panels[0][column], panels[-1][column]
            top.set_title(kind)
            bottom.set_xscale("log", base=2)
            bottom.set_xticks(sorted(ticks), [f"{size:,}" for size in sorted(ticks)])
            bottom.set_xlabel("nodes")
        shown = {
            label: line
            for axes in panels.flat
            for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(shown.values(), shown, loc="outside upper center", ncols=2, fontsize=7)
    return figure


def show_sizes(found: AtSizes) -> None:
    """Print a row for every kind and size: means over seeds, beside the baselines."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    table = Table(
        Column("graphs", no_wrap=True),
        *("nodes", "count", "network", "output accuracy (%)", "graph accuracy (%)"),
        *("mechanism", "top-1 agreement (%)", "misplaced (%)", "tv (%)"),
        box=None,
        padding=(0, 2, 0, 0),
    )
    for on in found.graphs:
        many = len(on.seeds)
        named = {f"learned ({many} seed{'s' * (many != 1)})": [*on.seeds.values()]}
        named |= {name: [seen] for name, seen in on.baselines.items()}
        for name, seen in named.items():
            right = [_mean([getattr(s, share) for s in seen]) for share in _RIGHT]
            nodes = f"{on.nodes:,}{' (lists)' if on.lists else ''}"
            begin = (on.kind, nodes, str(on.count), name, *right)
            for mechanism in seen[0].mechanisms or ("-",):
                beside = [s.mechanisms[mechanism] for s in seen if mechanism in s.mechanisms]
                numbers = [[getattr(b, name) for b in beside] for name in _TOLD]
                table.add_row(*begin, mechanism, *map(_mean, numbers))
    console.print(table)
    if any(on.on_lists for on in found.graphs):
        console.print(
            f"\nGraphs of more than {MATRICES_UP_TO} nodes run as lists of edges, smaller ones if "
            "asked: there predicted pointers are decisions before they are fed back."
        )
    for on in found.graphs:
        if on.refused is not None:
            console.print(f"no compiled network for {on.kind}, {on.nodes:,} nodes: {on.refused}")


_RIGHT = ("accuracy", "graph_accuracy")
_TOLD = ("agreement", "misplaced", "tv")


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None and not np.isnan(value)]
    return f"{100 * float(np.mean(known)):.2f}" if known else "-"
