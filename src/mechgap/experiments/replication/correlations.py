"""Accuracy against faithfulness, seed by seed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.comparison import correlations_agree
from mechgap.experiments.replication.kinds import Table, measures_of
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.report.measures import p_value
from mechgap.report.paper import CORRELATED_SEEDS

COEFFICIENTS = {"Pearson r": ("pearson_r", "pearson"), "Spearman ρ": ("spearman_rho", "spearman")}


@dataclass(frozen=True)
class CorrelationTable:
    """Both coefficients of some populations; beside the paper's, by kind, where it prints them."""

    caption: str
    populations: tuple[Population, ...]
    remarks: tuple[str, ...]
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def shortened(self, steps: int) -> Table:
        """The same with so many training steps."""
        return replace(self, populations=tuple(p.shortened(steps) for p in self.populations))

    def rendered(self, name: str, results: Path) -> Rendered:
        """Both coefficients with p-values and intervals."""
        data = []
        for population in self.populations:
            measures = measures_of(results, population)
            for kind in ("external", "internal"):
                found = measures and measures["correlation"][kind]
                label = kind if self.printed else f"{population.name}, {kind}"
                data += _rows(label, self.printed.get(kind), found)
        head = ("", "paper", "p", "ours", "p", "95 % interval", "seeds", "agree")
        rows = [_cells(row) for row in data]
        if not self.printed:
            head, rows = (head[0], *head[3:-1]), [(row[0], *row[3:-1]) for row in rows]
        warnings = sorted({row["ours"]["warning"] for row in data if row["ours"]} - {None})
        remarks = [*self.remarks, *(f"{warning[0].upper()}{warning[1:]}." for warning in warnings)]
        return Rendered(name, self.caption, head, rows, remarks, data)


def _rows(
    label: str, printed: Mapping[str, float] | None, found: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """One row for each coefficient."""
    rows = []
    for title, (key, test) in COEFFICIENTS.items():
        paper = printed and {"value": printed[key], "p": printed[f"{test}_p"]}
        ours = found and {
            "value": found[key],
            "p": found[f"{test}_p"],
            "interval": found[f"{test}_interval"],
            "seeds": found["n"],
            "warning": found["warning"],
        }
        verdict = None
        if paper and ours:
            verdict = correlations_agree(
                (ours["value"], ours["seeds"]), (paper["value"], CORRELATED_SEEDS)
            )
        row = {"row": f"{label}, {title}", "paper": paper, "ours": ours, "agree": verdict}
        rows.append(row)
    return rows


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row in words."""
    paper, ours = row["paper"], row["ours"]
    theirs = (f"{paper['value']:.3f}", p_value(paper["p"])) if paper else ("-", "-")
    if not ours:
        return (row["row"], *theirs, "not measured", "-", "-", "0", "-")
    low, high = ours["interval"]
    measured = (
        "-" if ours["value"] is None else f"{ours['value']:.3f}",
        p_value(ours["p"]),
        "-" if low is None else f"{low:.2f} … {high:.2f}",
        str(ours["seeds"]),
        {True: "yes", False: "no", None: "-"}[row["agree"]],
    )
    return (row["row"], *theirs, *measured)
