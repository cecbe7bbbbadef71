"""Measures as tables: the population beside its yardsticks, and what follows from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.table import Table

from mechgap.measures.internal import KINDS, ROWS, stacked_parts
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
                  f"parameters, on {_graphs(numbers)}\n")  # fmt: skip
    console.print(_summary(numbers))
    if numbers["diverged"]:
        console.print(f"left out, because they diverged: seeds {numbers['diverged']}")
    console.print()
    if results.mechanisms:
        _show_mechanisms(console, results)
        _show_parts(console, results)
        _show_causal(console, numbers)
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


def _graphs(numbers: Mapping[str, Any]) -> str:
    """What was measured on, and whether the compiled network is made for it."""
    about = numbers.get("graphs", {"name": "test"})  # measures of an earlier version have none
    if about["name"] == "test":
        return "the test graphs"
    outside = about["outside_certificate"]
    note = f" ({outside} outside the compiled network's certificate)" if outside else ""
    return f"{about['name']}: {about['count']} graphs of {about['nodes']} nodes{note}"


PERCENTAGES = {
    "accuracy": "accuracy",
    "graph_accuracy": "graphs right",
    "external": "hint accuracy",
}


def _summary(numbers: Mapping[str, Any]) -> Table:
    table = _table("", *PERCENTAGES.values(), "accuracy, deep graphs", "graphs right, deep")
    named = [("learned, mean ± std", numbers["seeds"])]
    named += [(YARDSTICKS.get(n, n), [row]) for n, row in numbers["yardsticks"].items()]
    for name, rows in named:
        deep = [row["deep"] or {} for row in rows]
        table.add_row(
            name,
            *(percent([row[c] for row in rows]) for c in PERCENTAGES),
            *(percent([d.get(c) for d in deep]) for c in ("accuracy", "graph_accuracy")),
        )
    return table


GAP_COLUMNS = {
    "agreement": "agreement on updated rows",
    "agreement_strict": "without ties",
    "misplaced": "misplaced there",
    "tv": "tv, all rows",
    "sharpness": "sharpness",
    "off_graph": "off graph",
}


def _show_mechanisms(console: Console, results: Results) -> None:
    table = _table("beside", "on", "", *GAP_COLUMNS.values())
    seeds, yardsticks = results.numbers["seeds"], results.numbers["yardsticks"]
    for mechanism in results.mechanisms:
        for data in seeds[0]["gaps"]:
            people = {"learned": seeds}
            if data == "test":
                people |= {YARDSTICKS.get(n, n): [row] for n, row in yardsticks.items()}
            for name, rows in people.items():
                gaps = [row["gaps"][data][mechanism] for row in rows]
                shown = [percent([gap[c] for gap in gaps]) for c in GAP_COLUMNS]
                table.add_row(mechanism, data, name, *shown)
    console.print(table)
    console.print()


def _show_parts(console: Console, results: Results) -> None:
    """What tv is made of, in percent of all attention."""
    drawn = [name for name, _, _ in stacked_parts(np.zeros((len(ROWS), len(KINDS))))]
    table = _table("tv, all rows, is made of", "", *drawn)
    named = [("learned, mean", results.numbers["seeds"])]
    named += [(YARDSTICKS.get(n, n), [row]) for n, row in results.numbers["yardsticks"].items()]
    for mechanism in results.mechanisms:
        for name, rows in named:
            parts = np.mean([part_array(row["gaps"]["test"][mechanism]) for row in rows], axis=0)
            table.add_row(
                mechanism, name, *(f"{100 * value:.2f} %" for _, _, value in stacked_parts(parts))
            )
    console.print(table)
    console.print()


def part_array(gap: Mapping[str, Any]) -> Float[np.ndarray, "classes kinds"]:
    """The parts of a gap as numbers."""
    return np.array([[gap["parts"][rows][kind] for kind in KINDS] for rows in ROWS])


UNDER = {
    "own": "own",
    "hardened": "own, hardened",
    "sharper": "sharper (T = 1/2)",
    "softer": "softer (T = 2)",
    "uniform": "uniform",
    "self": "self",
    "floor": "any (floor)",
}


def flat(causal: Mapping[str, Any]) -> dict[str, Any]:
    """Accuracies under attention that has nothing to do with a mechanism, by name."""
    return {**causal, **causal["tempered"], **causal["fixed"]}


def _show_causal(console: Console, numbers: Mapping[str, Any]) -> None:
    people = {"learned": [row["causal"] for row in numbers["seeds"]]}
    if "compiled" in numbers["yardsticks"]:
        people["compiled"] = [numbers["yardsticks"]["compiled"]["causal"]]
    table = _table("accuracy when attention is", *UNDER.values())
    for name, found in people.items():
        table.add_row(name, *(percent([flat(each)[under] for each in found]) for under in UNDER))
    console.print(table)
    forced = _table("made to attend as", "", "everywhere", *(f"only {rows} rows" for rows in ROWS))
    foils = _table("foil", "", "cases", *FOIL_COLUMNS.values(), "this part is")
    for name, found in people.items():
        for mechanism in found[0]["mechanisms"]:
            each = [one["mechanisms"][mechanism] for one in found]
            forced.add_row(
                mechanism,
                name,
                percent([one["exact"] for one in each]),
                *(percent([one["rows"][rows] for one in each]) for rows in ROWS),
            )
            for wrong in zip(*(one["foils"] for one in each), strict=True):
                foils.add_row(
                    f"{mechanism}, wrong {foil_name(wrong[0], each[0]['foils'])}",
                    name,
                    f"{wrong[0]['cases']:,}",
                    *(percent([one[key] for one in wrong]) for key in FOIL_COLUMNS),
                    verdicts(wrong),
                )
    if forced.row_count:
        console.print(forced)
        console.print(foils)
    given = [s["compiled_with_its_attention"] for s in numbers["seeds"]]
    console.print(f"compiled network given a learned network's attention: {percent(given)}\n")


FOIL_COLUMNS = {
    "right": "right",
    "right_under_exact": "under exact",
    "right_under_any": "under any",
    "follows": "follows",
    "accuracy": "accuracy",
    "named": "names the foil",
}


def foil_name(foil: Mapping[str, Any], all_foils: Sequence[Mapping[str, Any]]) -> str:
    """The part that is wrong, and its phase if there are several.

    >>> foil_name({"part": "key", "phase": 1}, [{"phase": 0}, {"phase": 1}])
    'key in phase 2'
    """
    several = any(other["phase"] for other in all_foils)
    return f"{foil['part']} in phase {foil['phase'] + 1}" if several else foil["part"]


def verdicts(foils: Sequence[Mapping[str, Any]]) -> str:
    """How many networks use a part of a mechanism.

    >>> verdicts([{"verdict": "used"}, {"verdict": "idle"}, {"verdict": "used"}])
    'used 2, idle 1'
    """
    said = [foil["verdict"] for foil in foils]
    if len(said) == 1:
        return said[0]
    return ", ".join(f"{verdict} {said.count(verdict)}" for verdict in dict.fromkeys(said))


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
            *(percent([e[n] for e in each]) for n in ("accuracy", "accuracy_fine")),
            *(percent([e["hints"][h] for e in each]) for h in hints),
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
            percent([e["accuracy"] for e in each]),
            _mean([e["r2"] for e in each]),
            percent([e["decoded"] for e in each]),
            percent([untrained[name]["accuracy"]]),
        )
    console.print(table)
    console.print()


def _show_correlations(console: Console, correlations: Mapping[str, Any]) -> None:
    table = _table("accuracy against", "Pearson r", "p", "Spearman ρ", "p", "N")
    listed = list_correlations(correlations)
    for label, found in listed:
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
    for warning in dict.fromkeys(c["warning"] for _, c in listed if c["warning"]):
        console.print(f"note: {warning}")
    console.print()


def list_correlations(found: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Every correlation with accuracy that was computed, with what it is of."""
    listed = [("hint accuracy", found["external"])]
    listed += [(f"agreement with {name}", each) for name, each in found["agreement"].items()]
    listed += [(f"tv to {name}", each) for name, each in found["tv"].items()]
    return [(label, each) for label, each in listed if each is not None]


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
    console.print(clusters_sentence(found))


def clusters_sentence(found: Mapping[str, Any]) -> str:
    """How many clusters there are, and how that was decided."""
    count, chance = found["clusters"], found["one_cluster_p"]
    told = f"{count} cluster{'s' if count > 1 else ''}"
    if chance is None:
        return f"{told}: too few seeds to look for more. The paper: {CLUSTERS}."
    stability = "" if found["stability"] is None else f", stability {found['stability']:.2f}"
    return (
        f"{told}: a single Gaussian cloud has as large a silhouette ({found['silhouette']:.2f}"
        f"{stability}) with p = {chance:.2f}. A dendrogram's default cut gives "
        f"{found['clusters_at_default_cut']}. The paper: {CLUSTERS}."
    )


def p_value(value: float | None) -> str:
    """A p-value as readers expect it.

    >>> p_value(0.0001), p_value(0.25)
    ('< 0.001', '0.250')
    """
    if value is None:
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def percent(values: Sequence[float | None]) -> str:
    """Mean ± standard deviation, in percent, of those that are numbers.

    >>> percent([0.5, 0.7]), percent([0.5]), percent([None])
    ('60.00 ± 14.14 %', '50.00 %', '-')
    """
    known = [100 * v for v in values if v is not None]
    if not known:
        return "-"
    if len(known) == 1:
        return f"{known[0]:.2f} %"
    return f"{np.mean(known):.2f} ± {np.std(known, ddof=1):.2f} %"


def _mean(values: Sequence[float | None]) -> str:
    known = [v for v in values if v is not None]
    return _value(float(np.mean(known))) if known else "-"


def _value(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.3g}"


def _with_interval(value: float | None, interval: Sequence[float | None]) -> str:
    if value is None or interval[0] is None or interval[1] is None:
        return _value(value)
    return f"{value:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, padding=(0, 2, 0, 0))
