"""How far networks follow when a variable is put in, by how many directions carry it."""

from itertools import cycle

import plotly.graph_objects as go

from mechgap.measures.results import Results
from mechgap.report.interchange import LEARNED, by_directions
from mechgap.report.page.layout import laid_out
from mechgap.report.style import SERIES


def curves(results: Results) -> go.Figure | None:
    """A line for each variable, of learned networks and (dotted) of untrained ones; None where
    nothing was sought."""
    found = list(by_directions(results))
    if not found:
        return None
    shades = dict(zip(dict.fromkeys(variable for variable, _, _ in found), cycle(SERIES)))
    figure = go.Figure()
    for variable, name, shares in found:
        dash = "solid" if name == LEARNED else "dot"
        figure.add_scatter(
            x=[str(k) for k in shares],
            y=[100 * share for share in shares.values()],
            mode="lines+markers",
            name=f"{variable}, {name}",
            line={"color": shades[variable], "dash": dash},
            hovertemplate="%{x} directions: %{y:.1f} %<extra>" + f"{variable}, {name}</extra>",
        )
    figure.update_xaxes(type="category")
    figure.update_yaxes(range=[-4, 104])
    return laid_out(figure, "directions that are put in", "cases that follow (%)")
