"""Accuracy against faithfulness: seed by seed, and along training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any, ClassVar

from mechgap.experiments.replication.comparison import Comparison, compare_correlations
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Study, Table, TableOfRows, measures_of, not_run
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.replication.snapshots import kept_snapshots
from mechgap.measures.along import Along, along_training
from mechgap.measures.correlation import Correlation
from mechgap.report.measures import p_value
from mechgap.report.paper import CORRELATED_SEEDS

COEFFICIENTS = {"Pearson r": ("pearson_r", "pearson"), "Spearman ρ": ("spearman_rho", "spearman")}


@dataclass(frozen=True)
class CorrelationTable:
    """Both coefficients of some populations; beside the paper's, by kind, where it prints them."""

    study: ClassVar[Study | None] = None

    caption: str
    populations: tuple[Population, ...]
    remarks: tuple[str, ...]
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def shortened(self, steps: int) -> Table:
        """The same with so many training steps."""
        return replace(self, populations=tuple(p.shortened(steps) for p in self.populations))

    def tests(self, results: Path) -> Mapping[str, float]:
        """Ours against the paper's, coefficient by coefficient."""
        return {
            row["test"]: row["comparison"].p
            for row in self._rows(results)
            if row["comparison"] is not None
        }

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:
        """Both coefficients with p-values and intervals."""
        rows = self._rows(results)
        head = ("", "paper", "p", "ours", "p", "95 % interval", "seeds", "verdict")
        cells = [_cells(row, judge) for row in rows]
        if not self.printed:
            head, cells = (head[0], *head[3:-1]), [(row[0], *row[3:-1]) for row in cells]
        warnings = sorted({row["ours"]["warning"] for row in rows if row["ours"]} - {None})
        remarks = [*self.remarks, *(f"{warning[0].upper()}{warning[1:]}." for warning in warnings)]
        data = [
            {
                **{k: v for k, v in row.items() if k not in {"test", "comparison"}},
                "verdict": judge.verdict(row["test"], row["comparison"]),
            }
            for row in rows
        ]
        return Rendered(name, self.caption, head, cells, remarks, data)

    def _rows(self, results: Path) -> list[dict[str, Any]]:
        rows = []
        for population in self.populations:
            measures = measures_of(results, population)
            if self.printed:  # the paper's: the trace, and the gap to what was compiled
                found = measures and measures.correlation
                internal = found and measures and found.tv.get(measures.reference or "")
                for kind, ours in (("external", found and found.external),
                                   ("internal", internal)):  # fmt: skip
                    rows += _both(population, kind, kind, self.printed[kind], ours)
            elif measures is None:
                rows += _both(population, population.name, "", None, None)[:1]
            else:
                for label, ours in measures.correlation.listed():
                    rows += _both(population, f"{population.name}, {label}", label, None, ours)
        return rows


def _both(
    population: Population,
    label: str,
    kind: str,
    printed: Mapping[str, float] | None,
    found: Correlation | None,
) -> list[dict[str, Any]]:
    """One row for each coefficient."""
    rows = []
    for title, (key, test) in COEFFICIENTS.items():
        paper = printed and {"value": printed[key], "p": printed[f"{test}_p"]}
        ours = found and {
            "value": getattr(found, key),
            "p": getattr(found, f"{test}_p"),
            "interval": getattr(found, f"{test}_interval"),
            "seeds": found.n,
            "warning": found.warning,
        }
        comparison: Comparison | None = None
        if paper and ours:
            comparison = compare_correlations(
                (ours["value"], ours["seeds"]), (paper["value"], CORRELATED_SEEDS)
            )
        rows.append(
            {
                "row": f"{label}, {title}",
                "test": f"{population.name} {kind} {title}",
                "paper": paper,
                "ours": ours,
                "comparison": comparison,
            }
        )
    return rows


def _cells(row: Mapping[str, Any], judge: Judge) -> tuple[str, ...]:
    """A row in words."""
    paper, ours = row["paper"], row["ours"]
    theirs = (f"{paper['value']:.3f}", p_value(paper["p"])) if paper else ("-", "-")
    if not ours:
        return (row["row"], *theirs, "not measured", "-", "-", "0", "-")
    measured = (
        "-" if isnan(ours["value"]) else f"{ours['value']:.3f}",
        p_value(ours["p"]),
        interval_text(ours["interval"]),
        str(ours["seeds"]),
        judge.verdict(row["test"], row["comparison"]) or "-",
    )
    return (row["row"], *theirs, *measured)


def interval_text(interval: Sequence[float]) -> str:
    """An interval, if there is one."""
    low, high = interval
    return "-" if isnan(low) or isnan(high) else f"{low:.2f} … {high:.2f}"


_ALONG = {
    "accuracy": "accuracy",
    "graph_accuracy": "graph accuracy",
    "hints": "hint accuracy",
    "agreement": "agreement",
    "misplaced": "misplaced",
    "tv": "tv, all nodes",
}


@dataclass(frozen=True)
class AlongTable(TableOfRows):
    """Accuracy and faithfulness at fixed steps of training, on the deep graphs."""

    graphs: str = "deep"

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Means at every step, and how accuracy goes with each measure between seeds there."""
        correlated = ("hints", "agreement", "misplaced", "tv")
        head = ("", "step", "seeds", *(f"{label} (%)" for label in _ALONG.values()),
                *(f"r with {_ALONG[m]}" for m in correlated))  # fmt: skip
        rows, data, remarks = [], [], list[str]()
        for row in self.rows:
            found = self._along(row.population, results)
            if found is None:
                rows.append(
                    (row.label, "-", "0", not_run(row.population), *["-"] * (len(head) - 4))
                )
                continue
            data.append({"row": row.label, "population": row.population.name, **found.data()})
            for at in found.steps:
                means = [_percent(at.mean.get(m)) for m in _ALONG]
                rs = [_r(at.correlation[m]) if m in at.correlation else "-" for m in correlated]
                rows.append((row.label, f"{at.step:,}", str(at.seeds), *means, *rs))
            remarks += _models(row.label, found)
        return Rendered(name, self.caption, head, rows, [*self.remarks, *remarks], data)

    def _along(self, population: Population, results: Path) -> Along | None:
        snapshots = kept_snapshots(results, population.name)
        seen = next((s.test for s in snapshots), None)
        mechanism = next(iter(seen.mechanisms), None) if seen else None
        return along_training(snapshots, self.graphs, mechanism)


def _models(label: str, found: Along) -> list[str]:
    told = [
        f"{_ALONG[m]} {model.slope:+.2f} ({model.interval[0]:+.2f} … {model.interval[1]:+.2f})"
        for m, model in found.models.items()
        if model is not None
    ]
    stopping = found.stopping
    lines = []
    if told:
        lines.append(
            f"{label}: per point of accuracy at equal steps, with seeds as random intercepts: "
            f"{'; '.join(told)}."
        )
    if stopping.pearson_r == stopping.pearson_r:  # not NaN
        lines.append(
            f"{label}: the step of the best validation score and accuracy there: "
            f"r = {stopping.pearson_r:.2f} (p: {p_value(stopping.pearson_p)}, "
            f"{stopping.n} seeds)."
        )
    return lines


def _percent(value: float | None) -> str:
    return "-" if value is None or value != value else f"{100 * value:.2f}"


def _r(found: Any) -> str:
    if found.pearson_r != found.pearson_r:
        return "-"
    return f"{found.pearson_r:.2f} ({interval_text(found.pearson_interval)})"
