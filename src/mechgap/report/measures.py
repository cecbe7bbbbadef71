"""Measures as tables: the population beside its baselines, and what follows from them."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from mechgap.measures.causal import Causal, Foil
from mechgap.measures.channels import Follows, Number
from mechgap.measures.correlation import Correlation, Correlations
from mechgap.measures.internal import KINDS, ROWS, stacked_parts
from mechgap.measures.results import NetworkMeasures, Results
from mechgap.measures.solutions import FORMS, BesidePaper, Distance
from mechgap.report.paper import CLUSTERS

WIDE = 140
"""Columns where nobody says how wide the place is."""
BASELINES = {
    "uniform": "uniform attention",
    "self": "self attention",
    "untrained": "untrained networks",
    "compiled": "compiled network",
}


def show_measures(results: Results, folder: Path | None = None) -> None:
    """Print the summary of a measured population."""
    console = wide_console()
    task = results.recipe.task
    console.print(f"{task}: {len(results.seeds)} learned networks, {results.parameters} "
                  f"parameters, on {results.graphs.words}\n")  # fmt: skip
    console.print(_summary(results))
    if results.diverged:
        console.print(f"left out, because they diverged: seeds {list(results.diverged)}")
    if results.graphs.constant_outputs:
        console.print(constant_sentence(results.graphs.constant_outputs))
    console.print()
    if results.mechanisms:
        _show_mechanisms(console, results)
        _show_parts(console, results)
        _show_causal(console, results)
    else:
        console.print(f"{task} has no compiled program to compare with: external measures only\n")
    _show_channels(console, results)
    _show_traces(console, results)
    _show_probes(console, results)
    _show_correlations(console, results.correlations)
    _show_solutions(console, results)
    if folder is not None:
        console.print(f"\nwritten: {folder}/measures.json, {folder}/measures.safetensors")


def constant_sentence(outputs: Sequence[str]) -> str:
    """What is to be said of outputs that are the same on all graphs.

    >>> constant_sentence(["pi"])
    'Output pi is the same on all of these graphs, so accuracy says nothing about it.'
    """
    names = ", ".join(outputs)
    are = f"Outputs {names} are" if len(outputs) > 1 else f"Output {names} is"
    about = "them" if len(outputs) > 1 else "it"
    return f"{are} the same on all of these graphs, so accuracy says nothing about {about}."


PERCENTAGES = {
    "accuracy": "output accuracy",
    "graph_accuracy": "graph accuracy",
    "external": "hint accuracy",
}


def people(results: Results, learned: str) -> dict[str, list[NetworkMeasures]]:
    """The population and every baseline, by what they are called."""
    beside = {BASELINES.get(name, name): [row] for name, row in results.baselines.items()}
    return {learned: results.networks, **beside}


def _summary(results: Results) -> Table:
    table = tabular("", *PERCENTAGES.values(), "accuracy, deep graphs", "graph accuracy, deep")
    for name, rows in people(results, "learned, mean ± std").items():
        deep = [row.deep for row in rows if row.deep is not None]
        table.add_row(
            name,
            *(percent([getattr(row, c) for row in rows]) for c in PERCENTAGES),
            *(percent([getattr(d, c) for d in deep]) for c in ("accuracy", "graph_accuracy")),
        )
    return table


GAP_COLUMNS = {
    "agreement": "top-1 agreement on updated nodes",
    "agreement_strict": "without ties",
    "misplaced": "misplaced attention there",
    "tv": "tv, all nodes",
    "sharpness": "sharpness",
    "off_graph": "off graph",
}


def _show_mechanisms(console: Console, results: Results) -> None:
    table = tabular("beside", "on", "", *GAP_COLUMNS.values())
    for mechanism in results.mechanisms:
        for data in results.networks[0].gaps:
            beside = people(results, "learned")
            if data != "test":
                beside = {"learned": results.networks}
            for name, rows in beside.items():
                gaps = [row.gaps[data][mechanism] for row in rows]
                shown = [percent([getattr(gap, c) for gap in gaps]) for c in GAP_COLUMNS]
                table.add_row(mechanism, data, name, *shown)
    console.print(table)
    if sentence := own_state_sentence(results):
        console.print(sentence)
    console.print()


def _show_parts(console: Console, results: Results) -> None:
    """What tv is made of, in percent of all attention."""
    drawn = [name for name, _, _ in stacked_parts(np.zeros((len(ROWS), len(KINDS))))]
    table = tabular("tv, all nodes, is made of", "", *drawn)
    for mechanism in results.mechanisms:
        for name, rows in people(results, "learned, mean").items():
            parts = np.mean([row.gaps["test"][mechanism].part_array for row in rows], axis=0)
            table.add_row(
                mechanism, name, *(f"{100 * value:.2f} %" for _, _, value in stacked_parts(parts))
            )
    console.print(table)
    console.print()


UNDER = {
    "own": "own",
    "hardened": "own, hardened",
    "sharper": "sharper (T = 1/2)",
    "softer": "softer (T = 2)",
    "uniform": "uniform",
    "self": "self",
    "floor": "any (floor)",
}


def patched(results: Results) -> dict[str, list[Causal]]:
    """Learned networks and the compiled one, those whose attention was patched."""
    everyone = {"learned": results.networks}
    everyone |= {n: [row] for n, row in results.baselines.items() if n == "compiled"}
    return {name: [row.causal for row in rows if row.causal] for name, rows in everyone.items()}


def _show_causal(console: Console, results: Results) -> None:
    table = tabular("accuracy when attention is", *UNDER.values())
    for name, found in patched(results).items():
        each = [one.without_mechanism for one in found]
        table.add_row(name, *(percent([one[under] for one in each]) for under in UNDER))
    console.print(table)
    forced = tabular(
        "made to attend as", "", "everywhere", *(f"only {rows} nodes" for rows in ROWS)
    )
    foils = tabular("foil", "", "cases", *FOIL_COLUMNS.values(), "this part is")
    for name, found in patched(results).items():
        for mechanism in found[0].mechanisms:
            each = [one.mechanisms[mechanism] for one in found]
            forced.add_row(
                mechanism,
                name,
                percent([one.exact for one in each]),
                *(percent([one.rows[rows] for one in each]) for rows in ROWS),
            )
            for wrong in zip(*(one.foils for one in each), strict=True):
                foils.add_row(
                    f"{mechanism}, wrong {foil_name(wrong[0], each[0].foils)}",
                    name,
                    f"{wrong[0].cases:,}",
                    *(percent([getattr(one, key) for one in wrong]) for key in FOIL_COLUMNS),
                    verdicts(wrong),
                )
    if forced.row_count:
        console.print(forced)
        console.print(foils)
    given = [network.compiled_with_its_attention for network in results.networks]
    console.print(f"compiled network given a learned network's attention: {percent(given)}\n")


FOIL_COLUMNS = {
    "right": "right",
    "right_under_exact": "under exact",
    "right_under_any": "under any",
    "follows": "follows",
    "accuracy": "output accuracy",
    "named": "names the foil",
}


def foil_name(foil: Foil, all_foils: Sequence[Foil]) -> str:
    """The part that is wrong, and its phase if there are several."""
    several = any(other.phase for other in all_foils)
    return f"{foil.part} in phase {foil.phase + 1}" if several else foil.part


def verdicts(each: Sequence[Foil | Number]) -> str:
    """Of how many networks what is said: a part's use, or the way by which a number comes."""
    said = [one.verdict for one in each]
    if len(said) == 1:
        return said[0]
    return ", ".join(f"{verdict} {said.count(verdict)}" for verdict in dict.fromkeys(said))


FOLLOWED = {
    "own": "own attention",
    "interchanged": "of other weights",
    "hardened": "hardened",
    "source": "on the source",
    "uniform": "uniform",
    "self": "self",
}


def _show_channels(console: Console, results: Results) -> None:
    """What attention carries of weights, and whose weights the predicted numbers follow."""
    everyone = {
        name: [row.channels for row in rows if row.channels is not None]
        for name, rows in people(results, "learned").items()
    }
    everyone = {name: found for name, found in everyone.items() if found}
    if not everyone:
        return
    read = tabular("weight of the edge from the source, R²", "read from attention", "hidden state")
    follow = tabular("R² with true / other weights", "", *FOLLOWED.values(), "comes by")
    for name, found in everyone.items():
        read.add_row(
            name, *(mean_of([getattr(c, n) for c in found]) for n in ("attention", "hidden"))
        )
    for number in next(iter(everyone.values()))[0].numbers:
        for place, words in {"first": "first step", "end": "end"}.items():
            for name, found in everyone.items():
                each = [one.numbers[number] for one in found]
                under = [getattr(one, place).under for one in each]
                said = verdicts(each) if place == "first" else ""
                cells = (follows([u[key] for u in under if key in u]) for key in FOLLOWED)
                follow.add_row(f"{number}, {words}", name, *cells, said)
    console.print(read)
    if follow.row_count:
        console.print(follow)
    console.print()


def follows(each: Sequence[Follows]) -> str:
    """The mean with the true weights, and with the other ones."""
    true, other = (known([getattr(one, name) for one in each]) for name in ("true", "other"))
    return f"{np.mean(true):.2f} / {np.mean(other):.2f}" if true and other else "-"


def _show_traces(console: Console, results: Results) -> None:
    if not results.has_traces:
        console.print("trained without traces: no external measure\n")
        return
    hints = list(results.networks[0].traces["test"].hints)
    table = tabular("traces predicted on", "all hints", "scalars within 0.01", *hints)
    for data in results.networks[0].traces:
        each = [network.traces[data] for network in results.networks]
        table.add_row(
            data,
            percent([e.accuracy for e in each]),
            percent([e.accuracy_fine for e in each]),
            *(percent([e.hints[h] for e in each]) for h in hints),
        )
    console.print(table)
    if sentence := breaking_sentence(results):
        console.print(sentence)
    console.print()


def own_state_sentence(results: Results) -> str:
    """Agreement from where networks are themselves; empty where that is not known."""
    told = []
    for mechanism in results.mechanisms:
        each = [n.from_own_state[mechanism] for n in results.networks if n.from_own_state]
        if not each:
            return ""
        beside = percent([n.gaps["test"][mechanism].agreement for n in results.networks])
        phases = list(zip(*(own.by_phase for own in each), strict=True))
        by_phase = f" (by phase {', '.join(map(percent, phases))})" if len(phases) > 1 else ""
        own = percent([own.agreement for own in each])
        told.append(f"{mechanism}: {own}{by_phase}, beside its run {beside}")
    if not told:
        return ""
    return (
        "Top-1 agreement beside what a mechanism would select from each network's own state: "
        f"{'; '.join(told)}."
    )


def breaking_sentence(results: Results) -> str:
    """How far runs go before they are wrong; empty where that is not known."""
    each = [network.breaking for network in results.networks if network.breaking is not None]
    if not each:
        return ""
    whole = f"every hint right to the end on {percent([b.unbroken for b in each])} of the graphs"
    broken = [b for b in each if b.unbroken < 1]
    if not broken:
        return f"{whole}."
    names = list(broken[0].hints)
    first = max(names, key=lambda name: sum(b.hints[name] for b in broken))
    return (
        f"{whole}; others are wrong first at step {np.median([b.step for b in broken]):.0f} of "
        f"{broken[0].steps} (median), most often {first} "
        f"({percent([b.hints[first] for b in broken])})."
    )


def _show_probes(console: Console, results: Results) -> None:
    if not results.networks[0].probes:
        return
    untrained = results.baselines["untrained"].probes
    table = tabular("read from hidden states (long)", "probe", "R²", "decoded", "probe, untrained")
    for name in results.networks[0].probes:
        each = [network.probes[name] for network in results.networks]
        table.add_row(
            name,
            percent([e.accuracy for e in each]),
            mean_of([e.r2 for e in each]),
            percent([e.decoded for e in each]),
            percent([untrained[name].accuracy]),
        )
    console.print(table)
    console.print()


def _show_correlations(console: Console, found: Correlations) -> None:
    table = tabular("accuracy against", *CORRELATION_COLUMNS)
    listed = found.listed()
    for label, each in listed:
        table.add_row(label, *correlation_cells(each))
    if not table.row_count:
        return
    console.print(table)
    for warning in dict.fromkeys(each.warning for _, each in listed if each.warning):
        console.print(f"note: {warning}")
    console.print()


CORRELATION_COLUMNS = ("Pearson r", "p", "Spearman ρ", "p", "N")


def correlation_cells(found: Correlation) -> tuple[str, ...]:
    """Both coefficients with their intervals and p-values, and of how many seeds."""
    return (
        with_interval(found.pearson_r, found.pearson_interval),
        p_value(found.pearson_p),
        with_interval(found.spearman_rho, found.spearman_interval),
        p_value(found.spearman_p),
        str(found.n),
    )


DISTANCES = {
    "mean_between": "between learned solutions",
    "closest_to_compiled": "compiled to the closest",
}


def _show_solutions(console: Console, results: Results) -> None:
    table = tabular("distances", *FORMS, "the paper prints", "nearest form")
    for label, ours, printed in distances(results):
        beside = ("-", "-")
        if printed is not None and printed.nearest_form:
            near = f"{printed.nearest_form} (ours {printed.ours_over_printed:.2g} x)"
            beside = (f"{printed.printed}", near)
        table.add_row(label, *(_value(getattr(ours, form)) for form in FORMS), *beside)
    if table.row_count:
        console.print(table)
    console.print(clusters_sentence(results))


def distances(results: Results) -> Iterator[tuple[str, Distance, BesidePaper | None]]:
    """The distances that there are, with what they are of and what the paper prints of BFS."""
    found = results.solutions
    for name, label in DISTANCES.items():
        ours: Distance | None = getattr(found, name)
        if ours is not None and not math.isnan(ours.l1):
            whose = f" (seed {found.closest_seed})" if name == "closest_to_compiled" else ""
            yield label + whose, ours, found.paper[name] if is_the_papers(results) else None


def is_the_papers(results: Results) -> bool:
    """Whether the paper prints distances and clusters of this task: those of BFS."""
    return results.recipe.task == "bfs"


def clusters_sentence(results: Results) -> str:
    """How many clusters there are, and how that was decided."""
    found = results.solutions
    told = f"{found.clusters} cluster{'s' if found.clusters != 1 else ''}"
    theirs = f" The paper: {CLUSTERS}." if is_the_papers(results) else ""
    if math.isnan(found.one_cluster_p):
        return f"{told}: too few seeds to look for more.{theirs}"
    stability = "" if math.isnan(found.stability) else f", stability {found.stability:.2f}"
    return (
        f"{told}: a single Gaussian cloud has as large a silhouette ({found.silhouette:.2f}"
        f"{stability}) with p = {found.one_cluster_p:.2f}. A dendrogram's default cut gives "
        f"{found.clusters_at_default_cut}.{theirs}"
    )


def known(values: Sequence[float | None]) -> list[float]:
    """Those that are numbers."""
    return [v for v in values if v is not None and not math.isnan(v)]


def p_value(value: float) -> str:
    """A p-value as readers expect it.

    >>> p_value(0.0001), p_value(0.25)
    ('< 0.001', '0.250')
    """
    if math.isnan(value):
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def percent(values: Sequence[float | None]) -> str:
    """Mean ± standard deviation, in percent, of those that are numbers.

    >>> percent([0.5, 0.7]), percent([0.5]), percent([math.nan])
    ('60.00 ± 14.14 %', '50.00 %', '-')
    """
    each = [100 * v for v in known(values)]
    if not each:
        return "-"
    if len(each) == 1:
        return f"{each[0]:.2f} %"
    return f"{np.mean(each):.2f} ± {np.std(each, ddof=1):.2f} %"


def mean_of(values: Sequence[float]) -> str:
    """The mean of those that are numbers."""
    return _value(float(np.mean(known(values) or [math.nan])))


def _value(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.3g}"


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """A coefficient and its interval, as far as they are known."""
    if math.isnan(value) or math.isnan(sum(interval)):
        return "-" if math.isnan(value) else f"{value:.3f}"
    return f"{value:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def wide_console() -> Console:
    """Where tables are printed: wide, if nobody says how wide the place is."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDE)


def tabular(*columns: str) -> Table:
    """A table without lines."""
    return Table(*columns, box=None, padding=(0, 2, 0, 0))
