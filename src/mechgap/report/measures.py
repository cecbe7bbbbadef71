"""Measures as tables: the population beside its yardsticks, and what follows from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from mechgap.measures.results import FORMS, Results
from mechgap.report.paper import CLUSTERS

WIDE = 140
"""Columns where nobody says how wide the place is."""
YARDSTICKS = {
    "uniform": "uniform attention",
    "self": "self attention",
    "untrained": "untrained networks",
    "compiled": "compiled network",
}


def show_measures(results: Results, folder: Path | None = None) -> None:
    """Print the summary of a measured population."""
    numbers = results.numbers
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    seeds = numbers["seeds"]
    console.print(f"{numbers['task']}: {len(seeds)} learned networks, {numbers['parameters']} "
                  "parameters, on the test graphs\n")  # fmt: skip
    console.print(_summary(numbers))
    if numbers["diverged"]:
        console.print(f"left out, because they diverged: seeds {numbers['diverged']}")
    console.print()
    mechanisms = list(seeds[0]["gaps"]["test"])
    if mechanisms:
        _show_mechanisms(console, seeds, mechanisms)
        _show_forced(console, numbers)
    else:
        console.print(
            f"{numbers['task']} has no compiled program to compare with: external measures only\n"
        )
    _show_traces(console, seeds)
    _show_probes(console, numbers)
    _show_correlations(console, numbers["correlation"])
    _show_solutions(console, numbers["solutions"])
    if folder is not None:
        console.print(f"\nwritten: {folder}/measures.json, {folder}/measures.safetensors")


def _summary(numbers: Mapping[str, Any]) -> Table:
    table = _table("", "accuracy", "gap: paper", "l1", "tv", "active rows right", "trace")
    columns = ("accuracy", *(f"internal_{form}" for form in FORMS), "top1_active", "external")
    seeds = numbers["seeds"]
    table.add_row("learned, mean ± std", *(spread([s[c] for s in seeds], c) for c in columns))
    for name, row in numbers["yardsticks"].items():
        table.add_row(YARDSTICKS.get(name, name), *(_value(row[c], c) for c in columns))
    return table


def _show_mechanisms(console: Console, seeds: Sequence[Any], mechanisms: Sequence[str]) -> None:
    table = _table(
        *("gap (tv) to", "on", "all rows", "active rows", "and ties", "right, with ties"),
        *("sharpness", "off graph", "nearest"),
    )
    for mechanism in mechanisms:
        for data in seeds[0]["gaps"]:
            gaps = [seed["gaps"][data][mechanism] for seed in seeds]
            names = ("tv", "tv_active", "tv_tied_active", "top1_tied_active", "sharpness")
            nearest = sum(_nearest(seed["gaps"][data]) == mechanism for seed in seeds)
            table.add_row(
                mechanism,
                data,
                *(spread([gap[name] for gap in gaps]) for name in names),
                spread([gap["off_graph"] for gap in gaps]),
                f"{nearest} of {len(seeds)}",
            )
    console.print(table)
    console.print()


def _nearest(gaps: Mapping[str, Mapping[str, float]]) -> str:
    return min(gaps, key=lambda name: gaps[name]["tv"])


def _show_forced(console: Console, numbers: Mapping[str, Any]) -> None:
    names = list(numbers["seeds"][0]["forced"])
    labels = [name if name in {"own", "uniform", "self"} else f"{name}'s" for name in names]
    table = _table("accuracy when attention is", *labels)
    table.add_row(
        "learned", *(spread([s["forced"][n] for s in numbers["seeds"]], "accuracy") for n in names)
    )
    if "compiled" in numbers["yardsticks"]:
        row = numbers["yardsticks"]["compiled"]["forced"]
        table.add_row("compiled", *(_value(row[n], "accuracy") for n in names))
    console.print(table)
    given = [s["compiled_with_its_attention"] for s in numbers["seeds"]]
    console.print(f"compiled network given a learned network's attention: "
                  f"{spread(given, 'accuracy')}\n")  # fmt: skip


def _show_traces(console: Console, seeds: Sequence[Any]) -> None:
    if not seeds[0]["traces"]:
        console.print("trained without traces: no external measure\n")
        return
    hints = list(seeds[0]["traces"]["test"]["hints"])
    table = _table("traces predicted on", "all hints", "scalars within 0.01", *hints)
    for data in seeds[0]["traces"]:
        each = [seed["traces"][data] for seed in seeds]
        table.add_row(
            data,
            *(spread([e[n] for e in each], "accuracy") for n in ("accuracy", "accuracy_fine")),
            *(spread([e["hints"][h] for e in each], "accuracy") for h in hints),
        )
    console.print(table)
    console.print()


def _show_probes(console: Console, numbers: Mapping[str, Any]) -> None:
    seeds = numbers["seeds"]
    if not seeds[0]["probes"]:
        return
    untrained = numbers["yardsticks"]["untrained"]["probes"]
    table = _table("read from hidden states (long)", "probe", "R²", "decoded", "probe, untrained")
    for name in seeds[0]["probes"]:
        each = [seed["probes"][name] for seed in seeds]
        table.add_row(
            name,
            spread([e["accuracy"] for e in each], "accuracy"),
            spread([e["r2"] for e in each]),
            spread([e["decoded"] for e in each], "accuracy"),
            _value(untrained[name]["accuracy"], "accuracy"),
        )
    console.print(table)
    console.print()


def _show_correlations(console: Console, correlations: Mapping[str, Any]) -> None:
    table = _table("accuracy against", "Pearson r", "p", "Spearman ρ", "p", "N")
    for name, found in correlations.items():
        if found is None:
            continue
        label = "gap (tv)" if name == "internal" else "trace accuracy"
        table.add_row(
            label,
            _with_interval(found["pearson_r"], found["pearson_interval"]),
            p_value(found["pearson_p"]),
            _with_interval(found["spearman_rho"], found["spearman_interval"]),
            p_value(found["spearman_p"]),
            str(found["n"]),
        )
    if not table.row_count:
        return
    console.print(table)
    for warning in {c["warning"] for c in correlations.values() if c and c["warning"]}:
        console.print(f"note: {warning}")
    console.print()


def _show_solutions(console: Console, found: Mapping[str, Any]) -> None:
    table = _table("distances", "paper", "l1", "tv", "the paper prints", "nearest form")
    for name, label in (
        ("mean_between", "between learned solutions"),
        ("closest_to_compiled", f"compiled to the closest (seed {found['closest_seed']})"),
    ):
        ours, printed = found[name], found["paper"][name]
        if ours is None or ours["l1"] is None:
            continue
        near = "-"
        if printed["nearest_form"]:
            near = f"{printed['nearest_form']} (ours {printed['ours_over_printed']:.2g} x)"
        table.add_row(label, *(_value(ours[f]) for f in FORMS), f"{printed['printed']}", near)
    if table.row_count:
        console.print(table)
    stability = _value(found["stability"])
    console.print(
        f"clusters: {found['clusters']} ({found['criterion']}; stability {stability}); "
        f"{found['clusters_at_default_cut']} at a dendrogram's default cut. The paper: {CLUSTERS}"
    )


def p_value(value: float | None) -> str:
    """A p-value as readers expect it.

    >>> p_value(0.0001), p_value(0.25)
    ('< 0.001', '0.250')
    """
    if value is None:
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def spread(values: Sequence[float | None], kind: str = "") -> str:
    """Mean ± standard deviation of those that are numbers."""
    known = [v for v in values if v is not None]
    if not known:
        return "-"
    if len(known) == 1:
        return _value(known[0], kind)
    mean, deviation = float(np.mean(known)), float(np.std(known, ddof=1))
    if kind in {"accuracy", "top1_active", "external"}:
        return f"{100 * mean:.2f} ± {100 * deviation:.2f} %"
    return f"{mean:.4f} ± {deviation:.4f}"


def _value(value: float | None, kind: str = "") -> str:
    if value is None:
        return "-"
    if kind in {"accuracy", "top1_active", "external"}:
        return f"{100 * value:.2f} %"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.3g}"


def _with_interval(value: float | None, interval: Sequence[float | None]) -> str:
    if value is None or interval[0] is None or interval[1] is None:
        return _value(value)
    return f"{value:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, padding=(0, 2, 0, 0))
