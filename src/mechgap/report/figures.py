"""The paper's figures of a measured run, drawn from its saved results.

Nothing is trained or measured here. Every figure is written as PDF (vector) and PNG.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import dendrogram

from mechgap.compiler.compile import Compiled
from mechgap.decompiler.population import DecompiledRun
from mechgap.errors import InvalidInput
from mechgap.measures.at_sizes import AtSizes
from mechgap.measures.correlation import Correlation
from mechgap.measures.internal import stacked_parts
from mechgap.measures.results import NetworkMeasures, Results
from mechgap.report.answer import nearest
from mechgap.report.attends_by import attends_by_figure, panels
from mechgap.report.parameters import auxiliary_figure, main_figure
from mechgap.report.sizes import lines_of, over_sizes
from mechgap.report.style import SERIES, STYLE, save_in_both

COLUMN = 3.4
"""Inches: one column of a two-column page."""
_LEARNED, _COMPILED, _GREY = SERIES[0], SERIES[1], "#6b7480"
_BASELINES = ("uniform", "self", "untrained")
MOST_BARS = 40
"""Seeds that have a bar of their own."""
MOST_STEPS = 24
"""More would not be legible on one page."""
_MARKERS = {"uniform": "s", "self": "D", "untrained": "^", "compiled": "*"}


def available_figures(
    results: Results,
    compiled: Compiled | None,
    decompiled: DecompiledRun | None = None,
    sizes: AtSizes | None = None,
) -> dict[str, Callable[[], Figure]]:
    """Every figure that these results allow, by name, not drawn yet."""
    drawn: dict[str, Callable[[], Figure]] = {}
    if results.mechanisms or results.has_traces:
        drawn["faithfulness"] = lambda: faithfulness(results)
    if results.mechanisms:
        drawn["gap_parts"] = lambda: gap_parts(results)
        drawn["internal_over_time"] = lambda: internal_over_time(results)
        drawn["attention_comparison"] = lambda: attention_comparison(results)
        drawn["attention_full"] = lambda: attention_full(results)
    if results.has_traces:
        drawn["traces_over_time"] = lambda: traces_over_time(results)
    if len(results.seeds) > 2:
        drawn["solutions"] = lambda: between_solutions(results)
    if compiled is not None:
        drawn["parameters_main"] = lambda: main_figure(compiled)
        drawn["parameters_auxiliary"] = lambda: auxiliary_figure(compiled)
    if decompiled is not None and (words := panels(decompiled)):
        drawn["attends_by"] = lambda: attends_by_figure(words)
    if sizes is not None and sizes.graphs:
        drawn["sizes"] = lambda: over_sizes(lines_of(sizes))
    return drawn


def draw_figures(
    results: Results,
    compiled: Compiled | None,
    out: Path,
    decompiled: DecompiledRun | None = None,
    sizes: AtSizes | None = None,
) -> list[Path]:
    """Write every figure that these results allow; where they are."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder '{out}': {error}") from error
    written = []
    for name, draw in available_figures(results, compiled, decompiled, sizes).items():
        written += save_in_both(draw(), out, name)
    return written


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    with mpl.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def faithfulness(results: Results) -> Figure:
    """Accuracy against hint accuracy, and against the gap in all rows and on updated ones."""
    found = results.correlations
    panels: list[tuple[str, Callable[[NetworkMeasures], float], Correlation | None]] = []
    if results.has_traces:
        panels.append(("hint accuracy (%)", lambda row: row.external, found.external))
    if results.mechanisms:
        beside = results.reference or results.mechanisms[0]
        panels.append((f"misplaced attention, all rows (tv to {beside}, %)",
                       lambda row: row.gaps["test"][beside].tv, found.tv[beside]))  # fmt: skip
        panels.append((f"agreement on nodes that {beside} updates (%)",
                       lambda row: row.gaps["test"][beside].agreement,
                       found.agreement[beside]))  # fmt: skip
    with _figure(COLUMN * len(panels), 2.6) as figure:
        every = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (label, of, correlated) in zip(every, panels, strict=True):
            x = [100 * of(network) for network in results.networks]
            y = [100 * network.accuracy for network in results.networks]
            axes.scatter(x, y, s=14, color=_LEARNED, label="learned", zorder=3)
            for name, row in results.baselines.items():
                axes.scatter(
                    100 * of(row),
                    100 * row.accuracy,
                    s=34,
                    marker=_MARKERS[name],
                    color=_COMPILED if name == "compiled" else _GREY,
                    label=name,
                    zorder=2,
                )
            if correlated is not None and not np.isnan(correlated.pearson_r):
                axes.set_title(
                    f"r = {correlated.pearson_r:.2f} (p = {correlated.pearson_p:.2g}), "
                    f"ρ = {correlated.spearman_rho:.2f}, N = {correlated.n}"
                )
            axes.set_xlabel(label)
            axes.set_ylabel("test accuracy (%)")
            axes.grid(lw=0.3)
        every[0].legend(fontsize=7, loc="center")
    return figure


def internal_over_time(results: Results) -> Figure:
    """What the gap is made of at every step of the algorithm, the mean of all seeds."""
    mechanism = nearest(results)
    sets = list(results.networks[0].gaps)
    with _figure(COLUMN * len(sets), 2.8) as figure:
        panels = figure.subplots(1, len(sets), squeeze=False, sharey=True)[0]
        for axes, data in zip(panels, sets, strict=True):
            each = [network.gaps[data][mechanism] for network in results.networks]
            lines = np.stack([gap.parts_by_step for gap in each])
            steps = np.arange(1, lines.shape[1] + 1)
            below = np.zeros(len(steps))
            for part, colour, values in stacked_parts(np.nanmean(lines, 0)):
                axes.bar(steps, 100 * values, bottom=below, color=colour, label=part)
                below = below + 100 * values
            for baseline in _BASELINES:
                values = 100 * results.baselines[baseline].gaps[data][mechanism].tv_by_step
                axes.plot(steps, values, _MARKERS[baseline], color=_GREY, ms=4,
                          label=f"{baseline}, all parts")  # fmt: skip
            axes.set_title(f"{data} graphs, beside {mechanism}")
            axes.set_xlabel("step of the algorithm")
            axes.set_xticks(steps[:: max(1, len(steps) // 8)])
            axes.set_ylim(0, 102)
            axes.grid(lw=0.3, axis="y")
        panels[0].set_ylabel("misplaced attention (tv, %)")
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=3, fontsize=6.5)
    return figure


def gap_parts(results: Results) -> Figure:
    """What the gap in all rows is made of, a bar a seed, beside attention that knows nothing."""
    people = {str(seed): row for seed, row in list(results.seeds.items())[:MOST_BARS]}
    people |= {name: results.baselines[name] for name in _BASELINES}
    width = max(COLUMN, 0.22 * len(people) + 1)
    with _figure(width, 2.1 * len(results.mechanisms) + 0.7) as figure:
        panels = figure.subplots(len(results.mechanisms), 1, squeeze=False, sharex=True)[:, 0]
        for axes, mechanism in zip(panels, results.mechanisms, strict=True):
            parts = np.array([row.gaps["test"][mechanism].part_array for row in people.values()])
            below = np.zeros(len(people))
            for name, colour, values in stacked_parts(parts):
                axes.bar(list(people), 100 * values, bottom=below, color=colour, label=name)
                below = below + 100 * values
            axes.set_ylabel("tv, all nodes (%)")
            axes.set_ylim(0, 102)
            axes.set_title(f"beside {mechanism}")
            axes.grid(lw=0.3, axis="y")
        panels[-1].tick_params(axis="x", labelrotation=90)
        panels[-1].set_xlabel("seed")
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=2, fontsize=6.5)
    return figure


def attention_comparison(results: Results) -> Figure:
    """The closest seed's attention and the compiled one's on one graph, over its first steps."""
    seed, mechanism = _shown(results)
    learned, exact = _example(results, seed, mechanism)
    steps = min(len(learned), 5)
    rows = {"learned": learned, "compiled": exact, "difference": learned - exact}
    with _figure(1.35 * steps + 0.5, 4.2) as figure:
        panels = figure.subplots(3, steps, squeeze=False)
        for line, (name, values) in zip(panels, rows.items(), strict=True):
            images = [_matrix(axes, values[k], name == "difference") for k, axes in enumerate(line)]
            line[0].set_ylabel(f"{name}\nreceiver")
            label = "Δα" if name == "difference" else "α"
            figure.colorbar(images[-1], ax=list(line), shrink=0.85, label=label)
        for step, axes in enumerate(panels[0]):
            axes.set_title(f"step {step + 1}")
        for axes in panels[-1]:
            axes.set_xlabel("sender")
        figure.suptitle(f"seed {seed}, the closest to {mechanism}", fontsize=9)
    return figure


def attention_full(results: Results) -> Figure:
    """The compiled attention and the closest seed's over every step of one graph."""
    seed, mechanism = _shown(results)
    learned, exact = _example(results, seed, mechanism)
    steps = min(len(learned), MOST_STEPS)
    told = "every step" if steps == len(learned) else f"{steps} of {len(learned)} steps"
    with _figure(1.1 * steps + 0.6, 2.9) as figure:
        panels = figure.subplots(2, steps, squeeze=False)
        images: list[Any] = []
        for line, (name, values) in zip(
            panels, {"compiled": exact, "learned": learned}.items(), strict=True
        ):
            images = [_matrix(axes, values[k], False) for k, axes in enumerate(line)]
            line[0].set_ylabel(f"{name}\nreceiver")
        for step, axes in enumerate(panels[0]):
            axes.set_title(f"step {step + 1}")
        for axes in panels[-1]:
            axes.set_xlabel("sender")
        figure.colorbar(
            images[-1], ax=[axes for line in panels for axes in line], shrink=0.7, label="α"
        )
        figure.suptitle(f"{mechanism} and seed {seed}, {told} of one graph", fontsize=9)
    return figure


def _shown(results: Results) -> tuple[int, str]:
    """The seed that comes closest to a mechanism, and that: the compiled one where there is one."""
    mechanism = results.reference or results.mechanisms[0]
    gaps = {seed: network.gaps["test"][mechanism].tv for seed, network in results.seeds.items()}
    return min(gaps, key=lambda seed: gaps[seed]), mechanism


def _example(results: Results, seed: int, mechanism: str) -> tuple[np.ndarray, np.ndarray]:
    """The first example's attention ``[steps, receivers, senders]``: learned, and exact.

    A mechanism that selects several times in a hint step has so many steps for each.
    """
    lengths = np.maximum(1, results.examples["lengths"] - 1)
    senders = results.examples[f"senders/{mechanism}"]
    steps = len(senders) // int(lengths.max()) * int(lengths[0])
    learned = results.seeds[seed].examples["attention"][:steps, 0].astype(np.float32)
    return learned, np.eye(learned.shape[-1])[senders[:steps, 0]]


def _matrix(axes: Axes, values: np.ndarray, signed: bool) -> Any:
    axes.set_xticks([])
    axes.set_yticks([])
    limits = {"vmin": -1, "vmax": 1, "cmap": "PuOr_r"} if signed else {"vmin": 0, "vmax": 1}
    return axes.imshow(values, **{"cmap": "viridis", **limits})


def traces_over_time(results: Results) -> Figure:
    """Trace accuracy of every hint over each graph's own time; bands span all seeds."""
    traces = [network.traces["test"] for network in results.networks]
    with _figure(COLUMN, 2.5) as figure:
        axes = figure.subplots()
        for colour, hint in zip(SERIES, traces[0].hints, strict=False):
            lines = 100 * np.stack([each.over_time[hint] for each in traces])
            time = np.linspace(0, 1, lines.shape[1])
            axes.fill_between(time, lines.min(0), lines.max(0), color=colour, alpha=0.15, lw=0)
            axes.plot(time, lines.mean(0), color=colour, lw=1.8, label=hint)
        axes.set_xlabel("share of each graph's own time")
        axes.set_ylabel("nodes predicted rightly (%)")
        axes.grid(lw=0.3)
        axes.legend(fontsize=7)
    return figure


def between_solutions(results: Results) -> Figure:
    """Distances between all seeds in the order of Ward's dendrogram, which stands above."""
    seeds, found = list(results.seeds), results.solutions
    distances = found.distances[np.ix_(found.order, found.order)] / 2
    with _figure(COLUMN, 4.1) as figure:
        top, below = figure.subplots(2, 1, height_ratios=[1, 3.6])
        tree: Any = dendrogram(found.linkage, no_plot=True)
        for x, y in zip(tree["icoord"], tree["dcoord"], strict=True):
            top.plot([(v - 5) / 10 for v in x], y, color=_GREY, lw=0.8)
        top.set_xlim(-0.5, len(seeds) - 0.5)
        top.set_ylabel("Ward")
        top.set_xticks([])
        image = below.imshow(distances, cmap="viridis", aspect="auto")
        every = max(1, len(seeds) // 16)
        ticks = np.arange(0, len(seeds), every)
        names = [str(seeds[i]) for i in found.order]
        below.set_xticks(ticks, [names[t] for t in ticks])
        below.set_yticks(ticks, [names[t] for t in ticks])
        below.set_xlabel("seed")
        below.set_ylabel("seed")
        figure.colorbar(image, ax=below, label="distance (tv)")
        count = found.clusters
        top.set_title("one cluster" if count == 1 else f"{count} clusters")
    return figure
