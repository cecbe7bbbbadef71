"""How results show themselves in a notebook: small tables, and figures as PNG."""

import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    caption: str = "",
    meanings: Sequence[str | None] = (),
) -> str:
    """A table; everything is escaped. Cells of a column show its meaning when they are hovered.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    hovered = [f' title="{escape(m)}"' if m else "" for m in meanings]

    def line(cells: Iterable[object], kind: str) -> str:
        pairs = zip(cells, hovered, strict=True) if hovered else ((c, "") for c in cells)
        kinds = ((c, t, kind if c or kind == "td" else "td") for c, t in pairs)
        return "<tr>" + "".join(f"<{k}{t}>{escape(str(c))}</{k}>" for c, t, k in kinds) + "</tr>"

    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<table>{title}<thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"


def picture(width: float, height: float) -> Any:
    """A new matplotlib figure that a notebook shows without being told how."""
    from matplotlib.figure import Figure

    return showable(Figure(figsize=(width, height), layout="constrained"))


def showable(figure: Any) -> Any:
    """The same figure, which now shows itself in a notebook."""
    figure._repr_png_ = lambda: png(figure)
    return figure


def png(figure: Any) -> bytes:
    """A matplotlib figure as PNG."""
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=110, bbox_inches="tight")
    return sink.getvalue()
