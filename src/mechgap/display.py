"""How results show themselves in a notebook: small tables, and figures as PNG."""

import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table; everything is escaped.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    def line(cells: Iterable[object], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(str(c))}</{kind}>" for c in cells) + "</tr>"

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
