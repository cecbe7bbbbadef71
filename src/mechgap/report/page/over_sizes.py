"""The page's chart of what size does to networks."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mechgap.measures.at_sizes import AtSizes
from mechgap.report.page.layout import GREY, laid_out
from mechgap.report.sizes import BESIDE, LEARNED, lines_of
from mechgap.report.style import SERIES


def over_sizes(found: AtSizes) -> go.Figure:
    """What size does to the run's networks, on every kind of graphs that was asked for."""
    told = lines_of(found)
    kinds = list(dict.fromkeys(kind for lines in told.values() for kind in lines))
    figure = make_subplots(
        rows=len(told),
        cols=len(kinds),
        shared_xaxes=True,
        shared_yaxes=True,
        vertical_spacing=0.06,
        horizontal_spacing=0.03,
        subplot_titles=kinds,
    )
    shades = dict(zip((LEARNED, *BESIDE.values()), (*SERIES[:2], GREY, SERIES[4]), strict=True))
    shown = set[str]()
    for row, (measure, lines) in enumerate(told.items(), start=1):
        for column, kind in enumerate(kinds, start=1):
            for name, by_size in lines.get(kind, {}).items():
                place = {"legendgroup": name, "row": row, "col": column}
                figure.add_scatter(
                    x=list(by_size),
                    y=[100 * float(np.mean(shares)) for shares in by_size.values()],
                    mode="lines+markers",
                    name=name,
                    showlegend=name not in shown,
                    line={"color": shades[name]},
                    hovertemplate="%{x:,} nodes: %{y:.1f} %<extra>" + name + "</extra>",
                    **place,
                )
                shown.add(name)
                if name != LEARNED:
                    continue
                points = [(size, 100 * s) for size, shares in by_size.items() for s in shares]
                figure.add_scatter(
                    x=[size for size, _ in points],
                    y=[share for _, share in points],
                    mode="markers",
                    showlegend=False,
                    marker={"color": shades[name], "size": 5, "opacity": 0.5},
                    hoverinfo="skip",
                    **place,
                )
            ticks = sorted({size for by_size in lines.get(kind, {}).values() for size in by_size})
            figure.update_xaxes(type="log", tickvals=ticks, row=row, col=column)
            figure.update_xaxes(ticktext=[f"{size:,}" for size in ticks], row=row, col=column)
        figure.update_yaxes(title_text=measure, range=[-4, 104], row=row, col=1)
    figure.update_xaxes(title_text="nodes", row=len(told))
    figure = laid_out(figure)
    height = 110 + 210 * len(told)
    figure.update_layout(height=height, legend={"y": -60 / (height - 100)})
    return figure
