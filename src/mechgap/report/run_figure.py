"""A compiled network at work: a small graph, step by step."""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mechgap.compiler.compile import Compiled
from mechgap.network.trace import Trace, run
from mechgap.programs.components import Component, Kind
from mechgap.report.style import ATTENTION, REACHED, STYLE, UNREACHED
from mechgap.tasks.batch import Batch


def run_figure(compiled: Compiled, batch: Batch, sample: int = 0) -> Figure:
    """What one graph's nodes attend to and know, in every step of a run."""
    batch = batch[sample : sample + 1].trim()
    trace = run(compiled.network, batch)
    steps = int(np.asarray(trace.valid).sum())
    across = min(4, steps)
    down = -(-steps // across)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.1 * across, 3.3 * down + 0.6), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for step, axes in enumerate(panels):
            if step < steps:
                _panel(axes, compiled, batch, trace, step)
            else:
                axes.set_axis_off()
        figure.suptitle(
            f"{compiled.program.name}, target {compiled.target.name}: arrows are attention, from "
            "the node attended to (blue ring: itself); variables after the step, as decoded\n"
            "orange: first flag is set; black ring: source"
        )
    return figure


def longest(batch: Batch) -> int:
    """The sample with the longest trace: the one with most to see."""
    return int(np.argmax(batch.lengths))


def _panel(axes: Axes, compiled: Compiled, batch: Batch, trace: Trace, step: int) -> None:
    nodes = batch.nodes
    angle = np.pi / 2 - 2 * np.pi * np.arange(nodes) / nodes
    x, y = np.cos(angle), np.sin(angle)
    A = np.asarray(batch.inputs["A"][0])
    for i, j in np.argwhere(np.triu(A, 1)):
        axes.plot([x[i], x[j]], [y[i], y[j]], color="#c4c9d0", lw=0.8, zorder=1)
    attention = np.asarray(trace.attention[step, 0]).mean(0)
    for i, j in np.argwhere(attention > 0.01):
        if i != j:
            axes.annotate(
                "",
                xy=(x[i], y[i]),
                xytext=(x[j], y[j]),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": ATTENTION,
                    "lw": 1.8 * attention[i, j],
                    "shrinkA": 9,
                    "shrinkB": 9,
                },
                zorder=2,
            )
    values = {c: _decoded(compiled, trace, c, step) for c in compiled.program.hints.values()}
    flag = next((v for c, v in values.items() if c.kind is Kind.BOOL), np.zeros(nodes))
    keeps = attention.diagonal() > 0.5
    for i in range(nodes):
        axes.scatter(
            x[i],
            y[i],
            s=190,
            zorder=3,
            color=REACHED if flag[i] else UNREACHED,
            edgecolor=ATTENTION if keeps[i] else "#8a929c",
            linewidth=1.8 if keeps[i] else 0.6,
        )
        axes.text(x[i], y[i], str(i), ha="center", va="center", zorder=4)
        texts = [_text(c, float(v[i])) for c, v in values.items() if c.kind is not Kind.BOOL]
        shown = "\n".join(filter(None, texts))
        axes.text(1.55 * x[i], 1.38 * y[i], shown, ha="center", va="center", fontsize=6.5)
    if batch.task.has_source:
        source = int(np.argmax(batch.inputs["s"][0]))
        axes.scatter(x[source], y[source], s=330, facecolors="none", edgecolors="k", zorder=2)
    axes.set_title(f"step {step + 1}")
    axes.set_xlim(-1.95, 1.95)
    axes.set_ylim(-1.6, 1.6)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _decoded(compiled: Compiled, trace: Trace, component: Component, step: int) -> np.ndarray:
    """A component after a hint step, as the network predicts it."""
    name = next(name for name, c in compiled.program.hints.items() if c == component)
    hint = step // compiled.network.config.nb_msg_passing_steps
    raw = np.asarray(trace.hints[name][hint, 0])
    match component.kind:
        case Kind.POINTER | Kind.CLASS:
            return raw.argmax(-1)
        case Kind.CHOICE:
            return np.arange(len(raw)) == raw.argmax()
        case Kind.TOTAL:
            return np.full(trace.hidden.shape[2], raw)
        case Kind.BOOL:
            return raw > 0
    return raw


def _text(component: Component, value: float) -> str:
    if component.kind is Kind.POINTER:
        return f"{component.name} = {int(value)}"
    if component.kind is Kind.CLASS:
        return component.classes[int(value)]
    if component.kind is Kind.CHOICE:
        return component.name if value else ""
    return f"{component.name} = {value:.2f}"
