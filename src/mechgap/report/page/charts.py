"""The page's charts, from saved results: Plotly figures as data."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.colors import sample_colorscale
from plotly.subplots import make_subplots
from scipy.cluster.hierarchy import dendrogram

from mechgap.decompiler.population import DecompiledRun
from mechgap.measures.at_sizes import AtSizes
from mechgap.measures.internal import stacked_parts
from mechgap.measures.landscape import Landscape
from mechgap.measures.results import NetworkMeasures, Results
from mechgap.measures.snapshot import Snapshot
from mechgap.report.answer import nearest
from mechgap.report.attends_by import Panel, colours, panels, receivers_named, title
from mechgap.report.interchange import scores
from mechgap.report.landscape import log_loss
from mechgap.report.measures import known
from mechgap.report.page import directions
from mechgap.report.page.layout import GREY, laid_out
from mechgap.report.page.over_sizes import over_sizes
from mechgap.report.style import SERIES
from mechgap.training.rows import MetricRow

_BASELINES = ("uniform", "self", "untrained")
MOST_BARS = 40
"""Seeds that have a bar of their own."""
_LEARNED, _COMPILED, _GREY = SERIES[0], SERIES[1], GREY


def charts(
    results: Results,
    metrics: Sequence[MetricRow],
    snapshots: Sequence[Snapshot] = (),
    landscape: Landscape | None = None,
    decompiled: DecompiledRun | None = None,
    sizes: AtSizes | None = None,
) -> dict[str, Any]:
    """Every chart that these results allow, by the name of its place on the page."""
    found = {"training": training_curves(metrics)} if metrics else {}
    if results.has_traces:
        found["trace"] = trace_over_time(results)
        found["external"] = scatter(results, "external")
    if results.mechanisms:
        found["internal"] = scatter(results, "misplaced")
        found["parts"] = parts_by_seed(results)
        found["gap"] = parts_over_time(results)
        if any(row.interchange for row in results.networks):
            found["computes"] = attends_and_computes(results)
            if (drawn := directions.curves(results)) is not None:
                found["directions"] = drawn
        if any(s.which == "step" and s.deep for s in snapshots):
            found["along"] = along_training(results, snapshots)
    if len(results.seeds) > 2:
        found["solutions"] = between_solutions(results)
    if landscape is not None:
        found["landscape"] = surfaces(landscape)
    if decompiled is not None and (drawn := panels(decompiled)):
        found["attends"] = attends_by(drawn)
    if sizes is not None and sizes.graphs:
        found["sizes"] = over_sizes(sizes)
    return {name: figure.to_plotly_json() for name, figure in found.items()}


def attends_and_computes(results: Results) -> go.Figure:
    """Every network by how far it attends as a mechanism does, and computes what it computes."""
    figure = go.Figure()
    for number, mechanism in enumerate(results.mechanisms):
        found = scores(results, mechanism)
        for kind, colour, symbol in (
            ("seed", _LEARNED, ("circle", "diamond")[number % 2]),
            ("compiled", _COMPILED, "square"),
            ("untrained", _GREY, "x"),
        ):
            some = [each for each in found if each[0].startswith(kind)]
            if not some:
                continue
            names, x, y = zip(*some, strict=True)
            figure.add_scatter(
                x=100 * np.array(x),
                y=100 * np.array(y),
                mode="markers",
                marker={"color": colour, "symbol": symbol, "size": 10, "opacity": 0.8},
                name=f"{'learned' if kind == 'seed' else kind}, {mechanism}",
                text=names,
                hovertemplate="%{text}: attends %{x:.1f} %, computes %{y:.1f} %<extra></extra>",
            )
    for edge in (
        {"x0": 50, "x1": 50, "y0": 0, "y1": 100},
        {"x0": 0, "x1": 100, "y0": 50, "y1": 50},
    ):
        figure.add_shape(type="line", line={"color": _GREY, "width": 1, "dash": "dot"}, **edge)
    figure.update_xaxes(
        title="attends like it: top-1 agreement on updated nodes (%)", range=[-4, 104]
    )
    figure.update_yaxes(title="computes like it: interchanges that follow (%)", range=[-4, 104])
    figure.update_layout(height=420, margin={"t": 20})
    return figure


def surfaces(landscape: Landscape) -> go.Figure:
    """The loss around every network, one beside the other, to be turned."""
    names = landscape.networks
    figure = make_subplots(
        1, len(names), specs=[[{"type": "surface"}] * len(names)], subplot_titles=names
    )
    levels = {name: log_loss(landscape.surface(name, "general")["loss"]) for name in names}
    low, high = min(v.min() for v in levels.values()), max(v.max() for v in levels.values())
    for column, name in enumerate(names, start=1):
        ticks = np.round(landscape.surface(name, "general")["ticks"], 4)
        figure.add_surface(
            x=ticks,
            y=ticks,
            z=np.round(levels[name], 4),
            colorscale="Viridis",
            cmin=low,
            cmax=high,
            showscale=column == len(names),
            colorbar={"title": {"text": "log10 loss"}},
            hovertemplate="%{x:.2f}, %{y:.2f}: 10^%{z:.2f}<extra>" + name + "</extra>",
            row=1,
            col=column,
        )
    axes = {
        "xaxis": {"title": "direction 1"},
        "yaxis": {"title": "direction 2"},
        "zaxis": {"title": "log10 loss", "range": [low, high]},
        "camera": {"eye": {"x": 1.75, "y": 1.75, "z": 1.3}},  # far enough for the labels
    }
    figure.update_scenes(axes)
    figure.update_layout(height=420, margin={"l": 0, "r": 0, "t": 30, "b": 0})
    return figure


def attends_by(drawn: Sequence[Panel]) -> go.Figure:
    """The words of soft forms and their weights: the mean of seeds, and every seed's."""
    lines = [max(map(len, panel.labels)) for panel in drawn]
    heights = [
        (14 + 16 * high) * len(panel.words) for panel, high in zip(drawn, lines, strict=True)
    ]
    whole, between, below = sum(heights), 40, 110
    height = whole + between * len(drawn) + below
    figure = make_subplots(
        rows=len(drawn),
        cols=1,
        shared_xaxes=True,
        row_heights=heights,
        vertical_spacing=between / height,
        subplot_titles=[title(panel, drawn) for panel in drawn],
    )
    shades, told = colours(drawn), set[str]()
    for row, panel in enumerate(drawn, start=1):
        for weights, y, high in panel.placed():
            kind, word = receivers_named(weights.receivers), escape(weights.word, quote=False)
            about = f"<extra>{word}<br>{escape(kind, quote=False)}</extra>"
            place = {"legendgroup": kind, "row": row, "col": 1}
            figure.add_bar(
                x=[round(weights.mean, 4)],
                y=[y],
                width=0.9 * high,
                orientation="h",
                name=escape(kind, quote=False),
                showlegend=kind not in told,
                marker={"color": shades[weights.receivers], "opacity": 0.55},
                hovertemplate="mean %{x:+.2f}" + about,
                **place,
            )
            told.add(kind)
            figure.add_scatter(
                x=[round(weight, 4) for weight in weights.by_seed.values()],
                y=[y] * len(weights.by_seed),
                mode="markers",
                text=[f"seed {seed}" for seed in weights.by_seed],
                showlegend=False,
                marker={"color": shades[weights.receivers], "size": 7},
                hovertemplate="%{text}: %{x:+.2f}" + about,
                **place,
            )
        figure.update_yaxes(
            tickvals=list(range(len(panel.words))),
            ticktext=[escape("\n".join(each), quote=False).replace("\n", "<br>")
                      for each in panel.labels],
            range=[len(panel.words) - 0.4, -0.6],
            automargin=True,
            zeroline=False,
            showgrid=False,
            row=row,
            col=1,
        )  # fmt: skip
    figure.update_xaxes(title_text="weight", row=len(drawn), col=1)
    figure = laid_out(figure)
    figure.update_layout(barmode="overlay", height=height, legend={"y": -62 / (height - 100)})
    return figure


def scatter(results: Results, measure: str) -> go.Figure:
    """Accuracy against one measure, a point a seed, with 95 % intervals over graphs."""
    mechanism = nearest(results) if measure != "external" else ""

    def of(row: NetworkMeasures) -> float:
        return getattr(row if measure == "external" else row.gaps["test"][mechanism], measure)

    y_half = [100 * _half(network.accuracy_by_sample) for network in results.networks]
    figure = go.Figure()
    figure.add_scatter(
        x=[100 * of(network) for network in results.networks],
        y=[100 * network.accuracy for network in results.networks],
        mode="markers",
        text=[f"seed {seed}" for seed in results.seeds],
        name="learned",
        error_y={"array": y_half, "thickness": 1, "width": 0, "color": "rgba(213,94,0,.35)"},
        marker={"color": _LEARNED, "size": 9},
        hovertemplate="%{text}: %{y:.2f} % accurate, %{x:.2f} %<extra></extra>",
    )
    rightmost = max(results.networks, key=of)
    figure.add_annotation(
        x=100 * of(rightmost),
        y=100 * rightmost.accuracy,
        text=f"learned, {len(results.seeds)} seed{'s' if len(results.seeds) > 1 else ''}",
        showarrow=False,
        xanchor="left",
        xshift=8,
        font={"color": _LEARNED},
    )
    symbols = {
        "compiled": "star",
        "uniform": "square",
        "self": "diamond",
        "untrained": "triangle-up",
    }
    for name, row in results.baselines.items():
        if not known([of(row), row.accuracy]):
            continue
        figure.add_scatter(
            x=[100 * of(row)],
            y=[100 * row.accuracy],
            mode="markers+text",
            text=[name],
            textposition="bottom center" if name == "compiled" else "top center",
            cliponaxis=False,
            name=name,
            marker={
                "color": _COMPILED if name == "compiled" else _GREY,
                "size": 11,
                "symbol": symbols.get(name, "circle"),
            },
            hovertemplate=f"{name}: %{{y:.2f}} % accurate, %{{x:.2f}} %<extra></extra>",
        )
    label = "hint accuracy (%)"
    if measure == "misplaced":
        label = f"misplaced attention on nodes that {mechanism} updates (%)"
    figure.update_layout(showlegend=False)
    return laid_out(figure, label, "output accuracy (%)")


def parts_by_seed(results: Results) -> go.Figure:
    """What the gap in all rows is made of: a bar a seed, and attention that knows nothing."""
    people = {f"seed {s}": row for s, row in list(results.seeds.items())[:MOST_BARS]}
    people |= {name: results.baselines[name] for name in _BASELINES}
    count = len(results.mechanisms)
    figure = make_subplots(
        rows=count,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.12,
        subplot_titles=[f"beside {name}" for name in results.mechanisms],
    )
    for row, mechanism in enumerate(results.mechanisms, start=1):
        parts = np.array([row.gaps["test"][mechanism].part_array for row in people.values()])
        for name, colour, values in stacked_parts(parts):
            figure.add_bar(
                x=list(people),
                y=100 * values,
                name=name,
                legendgroup=name,
                showlegend=row == 1,
                marker={"color": colour},
                hovertemplate="%{x}: %{y:.2f} %<extra>" + name + "</extra>",
                row=row,
                col=1,
            )
        figure.update_yaxes(title_text="of all attention (%)", range=[0, 102], row=row, col=1)
    figure.update_layout(barmode="stack", height=80 + 280 * count)
    figure = laid_out(figure)
    figure.update_layout(legend={"y": -0.2 / count})
    return figure


def parts_over_time(results: Results) -> go.Figure:
    """What the gap is made of at every step of the algorithm, the mean of seeds."""
    sets = list(results.networks[0].gaps)
    mechanism = nearest(results)
    titles = [f"{name} graphs, beside {mechanism}" for name in sets]
    figure = make_subplots(rows=1, cols=len(sets), subplot_titles=titles, shared_yaxes=True)
    for column, data in enumerate(sets, start=1):
        each = [network.gaps[data][mechanism].parts_by_step for network in results.networks]
        parts = np.nanmean(each, axis=0)
        steps = np.arange(1, len(parts) + 1)
        for part, colour, values in stacked_parts(parts):
            figure.add_bar(
                x=steps,
                y=100 * values,
                name=part,
                legendgroup=part,
                showlegend=column == 1,
                marker={"color": colour},
                hovertemplate="step %{x}: %{y:.2f} %<extra>" + part + "</extra>",
                row=1,
                col=column,
            )
        dashes = zip(_BASELINES, ("square", "diamond", "triangle-up"), strict=True)
        for baseline, symbol in dashes:
            whole = results.baselines[baseline].gaps[data][mechanism].tv_by_step
            figure.add_scatter(
                x=steps,
                y=100 * whole,
                mode="markers",
                name=f"{baseline}, all parts",
                legendgroup=baseline,
                showlegend=column == 1,
                marker={"color": _GREY, "size": 7, "symbol": symbol},
                row=1,
                col=column,
            )
        figure.update_xaxes(title_text="step of the algorithm", row=1, col=column)
        if len(steps) <= 24:
            figure.update_xaxes(dtick=1, row=1, col=column)
    figure.update_yaxes(title_text="of the step's attention (%)", range=[0, 102], row=1, col=1)
    figure.update_layout(barmode="stack")
    return laid_out(figure)


def along_training(results: Results, snapshots: Sequence[Snapshot]) -> go.Figure:
    """Every seed at every snapshot: accuracy on deep graphs against each measure there."""
    mechanism = nearest(results)
    rows = [s for s in snapshots if s.which == "step" and s.step and s.deep is not None]
    steps = sorted({s.step for s in rows})
    measures = {
        "agreement": "top-1 agreement on updated nodes (%)",
        "misplaced": "misplaced attention there (%)",
        "tv": "tv, all nodes (%)",
    }
    figure = make_subplots(rows=1, cols=len(measures), shared_yaxes=True)
    shades = sample_colorscale("Viridis", np.linspace(0.05, 0.9, max(2, len(steps))).tolist())
    for shade, step in zip(shades, steps, strict=False):
        here = [s.deep for s in rows if s.step == step and s.deep is not None]
        names = [f"seed {s.seed}" for s in rows if s.step == step]
        for column, measure in enumerate(measures, start=1):
            values = [getattr(d.mechanisms[mechanism], measure) for d in here]
            figure.add_scatter(
                x=[None if v is None else 100 * v for v in values],
                y=[None if d.accuracy is None else 100 * d.accuracy for d in here],
                mode="markers",
                text=names,
                name=f"step {step:,}",
                legendgroup=str(step),
                showlegend=column == 1,
                marker={"color": shade, "size": 8},
                hovertemplate="%{text}: %{y:.2f} %, %{x:.2f} %<extra>" + f"step {step:,}</extra>",
                row=1,
                col=column,
            )
    for column, label in enumerate(measures.values(), start=1):
        figure.update_xaxes(title_text=label, row=1, col=column)
    figure.update_yaxes(title_text="accuracy on deep graphs (%)", row=1, col=1)
    return laid_out(figure)


def trace_over_time(results: Results) -> go.Figure:
    """Trace accuracy of every hint over each graph's own time, mean and spread of seeds."""
    figure = go.Figure()
    traces = [network.traces["test"] for network in results.networks]
    for colour, hint in zip(SERIES, traces[0].hints, strict=False):
        lines = 100 * np.stack([each.over_time[hint] for each in traces])
        time = np.linspace(0, 1, lines.shape[1])
        low, high = lines.min(0), lines.max(0)
        figure.add_scatter(
            x=[*time, *time[::-1]],
            y=[*high, *low[::-1]],
            fill="toself",
            fillcolor=colour,
            opacity=0.18,
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=time, y=lines.mean(0), mode="lines", name=hint, line={"color": colour, "width": 2.5}
        )
    return laid_out(figure, "share of each graph's own time", "nodes predicted rightly (%)")


def between_solutions(results: Results) -> go.Figure:
    """Distances between all seeds, in the order of the dendrogram above them."""
    seeds, found = list(map(str, results.seeds)), results.solutions
    distances = found.distances[np.ix_(found.order, found.order)] / 2
    tree: Any = dendrogram(found.linkage, no_plot=True)
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.22, 0.78], vertical_spacing=0.02
    )
    for x, y in zip(tree["icoord"], tree["dcoord"], strict=True):
        figure.add_scatter(
            x=[(v - 5) / 10 for v in x],
            y=y,
            mode="lines",
            line={"color": _GREY, "width": 1.2},
            hoverinfo="skip",
            showlegend=False,
            row=1,
            col=1,
        )
    names = [seeds[i] for i in found.order]
    figure.add_heatmap(
        z=distances,
        x=list(range(len(names))),
        y=list(range(len(names))),
        customdata=[[f"{a} and {b}" for b in names] for a in names],
        colorscale="Viridis",
        colorbar={"title": {"text": "tv"}, "len": 0.78, "y": 0.39},
        hovertemplate="seeds %{customdata}: %{z:.4f}<extra></extra>",
        row=2,
        col=1,
    )
    every = max(1, len(names) // 32)
    ticks = {"tickvals": list(range(0, len(names), every)), "ticktext": names[::every]}
    figure.update_xaxes(**ticks, title_text="seed", row=2, col=1)
    figure.update_yaxes(**ticks, title_text="seed", autorange="reversed", row=2, col=1)
    figure.update_yaxes(visible=False, row=1, col=1)
    figure.update_xaxes(visible=False, row=1, col=1)
    figure.update_layout(height=620)
    return laid_out(figure)


def training_curves(metrics: Sequence[MetricRow]) -> go.Figure:
    """Loss and scores of every seed over training."""
    figure = make_subplots(
        rows=1, cols=3, subplot_titles=["loss", "validation (%)", "test (%), never selected by"]
    )
    by_seed: dict[int, list[MetricRow]] = {}
    for row in metrics:
        by_seed.setdefault(row.seed, []).append(row)
    for index, (seed, rows) in enumerate(sorted(by_seed.items())):
        columns: Mapping[str, float] = {"loss": 1, "validation": 100, "test": 100}
        for column, (name, scale) in enumerate(columns.items(), start=1):
            points = [
                (r.step, scale * getattr(r, name)) for r in rows if getattr(r, name) is not None
            ]
            figure.add_scatter(
                x=[p[0] for p in points],
                y=[p[1] for p in points],
                mode="lines",
                name=f"seed {seed}",
                legendgroup=str(seed),
                showlegend=column == 1 and len(by_seed) <= 16,
                line={"color": SERIES[index % len(SERIES)], "width": 1.2},
                row=1,
                col=column,
            )
    figure.update_yaxes(type="log", row=1, col=1)
    figure.update_xaxes(title_text="step")
    return laid_out(figure)


def _half(values: Float[np.ndarray, "graphs"]) -> float:
    """Half of the 95 % interval of a mean over graphs."""
    values = values[np.isfinite(values)]
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
