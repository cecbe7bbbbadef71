"""A table as text, Markdown, LaTeX or data."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table as TextTable

from mechgap.report.measures import WIDE
from mechgap.typed import plain


@dataclass(frozen=True)
class Rendered:
    """A table in words."""

    name: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str]
    data: Sequence[Mapping[str, Any]]
    """The rows' numbers."""


def text(table: Rendered) -> str:
    """For a terminal."""
    grid = TextTable(*table.head, box=None, padding=(0, 2, 0, 0))
    for row in table.rows:
        grid.add_row(*row)
    written = StringIO()
    here = Console()
    width = max(here.width, 100) if here.is_terminal else WIDE
    console = Console(file=written, highlight=False, width=width)
    console.print(table.caption, style="bold")
    console.print(grid)
    for remark in table.remarks:
        console.print(remark)
    return written.getvalue()


def markdown(table: Rendered) -> str:
    """For a page."""
    lines = [f"### {table.caption}\n", markdown_rows(table.head, table.rows)]
    if table.remarks:
        lines += [*(f"- {remark}" for remark in table.remarks), ""]
    return "\n".join(lines)


def markdown_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Head and rows alone."""
    return "\n".join([_bars(head), "|" + "---|" * len(head), *map(_bars, rows)]) + "\n"


def _bars(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def latex(table: Rendered) -> str:
    """For a paper; needs the package booktabs."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escaped(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}",
        r"\toprule",
        _ampersands(table.head),
        r"\midrule",
        *map(_ampersands, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\footnotesize {_escaped(remark)}" for remark in table.remarks),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


_LATEX = MappingProxyType(
    {
        **{c: rf"\{c}" for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "…": r"\dots{}",
        "α": r"$\alpha$",
        "ρ": r"$\rho$",
        "≈": r"$\approx$",
        "−": "$-$",
        "×": r"$\times$",
        "²": "$^2$",
    }
)


def _escaped(words: str) -> str:
    return "".join(_LATEX.get(c, c) for c in words)


def as_json(table: Rendered) -> str:
    """For machines."""
    return json.dumps(
        {"table": table.name, "caption": table.caption, "rows": plain(table.data),
         "remarks": list(table.remarks)}, allow_nan=False
    )  # fmt: skip


FORMATS: Mapping[str, Callable[[Rendered], str]] = MappingProxyType(
    {"text": text, "markdown": markdown, "latex": latex, "json": as_json}
)
