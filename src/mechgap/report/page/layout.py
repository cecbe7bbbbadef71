"""What all of the page's charts look like."""

import plotly.graph_objects as go

GREY = "#8a94a0"
"""What is neither learned nor compiled."""


def laid_out(figure: go.Figure, x: str | None = None, y: str | None = None) -> go.Figure:
    """A figure with the page's margins and legend, and titles of its axes."""
    figure.update_layout(
        margin={"l": 60, "r": 44, "t": 40, "b": 60},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)"},  # in the margin, over no title
        legend={"orientation": "h", "y": -0.22, "yanchor": "top"},
        hovermode="closest",
        template=None,
    )
    if x is not None:
        figure.update_xaxes(title_text=x)
    if y is not None:
        figure.update_yaxes(title_text=y)
    return figure
