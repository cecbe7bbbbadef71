"""The page's tables, from saved results."""

from collections.abc import Sequence
from html import escape

from mechgap.display import html_table
from mechgap.measures.along import along_training
from mechgap.measures.internal import ROWS
from mechgap.measures.plain import without_nan
from mechgap.measures.results import FORMS, Results
from mechgap.measures.snapshot import Snapshot
from mechgap.report.answer import nearest
from mechgap.report.measures import (
    FOIL_COLUMNS,
    PERCENTAGES,
    UNDER,
    YARDSTICKS,
    clusters_sentence,
    flat,
    foil_name,
    list_correlations,
    p_value,
    percent,
    verdicts,
)


def summary(results: Results) -> str:
    """The population beside its yardsticks, and beside every mechanism."""
    seeds, yardsticks = results.numbers["seeds"], results.numbers["yardsticks"]
    people = {"learned (mean ± std)": seeds}
    people |= {str(YARDSTICKS.get(name, name)): [row] for name, row in yardsticks.items()}
    measures = {"agreement": "agreement on updated nodes", "misplaced": "misplaced there",
                "tv": "tv, all rows"}  # fmt: skip
    rows = []
    for name, these in people.items():
        cells = [percent([row[c] for row in these]) for c in PERCENTAGES]
        for mechanism in results.mechanisms:
            gaps = [row["gaps"]["test"][mechanism] for row in these]
            cells += [percent([gap[m] for gap in gaps]) for m in measures]
        rows.append((name, cells))
    of = [f"{said} ({name})" for name in results.mechanisms for said in measures.values()]
    return f'<div class="summary">{table(["", *PERCENTAGES.values(), *of], rows)}</div>'


def table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A table that scrolls where it is wider than the page."""
    return f'<div class="scroll">{html_table(head, [(name, *row) for name, row in rows])}</div>'


def correlations(results: Results, snapshots: Sequence[Snapshot]) -> str:
    """Accuracy against every measure of faithfulness, over seeds."""
    rows, notes = [], list[str]()
    for label, found in list_correlations(results.numbers["correlation"]):
        shown = []
        for name, key in (("pearson", "pearson_r"), ("spearman", "spearman_rho")):
            shown += [_with_interval(found[key], found[f"{name}_interval"]),
                      p_value(found[f"{name}_p"])]  # fmt: skip
        rows.append((f"accuracy and {label}", [*shown, str(found["n"])]))
        notes += [found["warning"]] if found["warning"] else []
    if not rows:
        return ""
    if results.numbers["parameters"] == "best" and any(s.which == "best" for s in snapshots):
        notes.append(
            "each network is taken at its own best validation score, after different numbers of "
            "steps; along training, below, all have the same"
        )
    said = "".join(f'<p class="quiet">{escape(note)}.</p>' for note in dict.fromkeys(notes))
    return table(["", "Pearson r", "p", "Spearman ρ", "p", "N"], rows) + said


def _with_interval(value: float | None, interval: Sequence[float | None]) -> str:
    if value is None or interval[0] is None or interval[1] is None:
        return "-" if value is None else f"{value:.3f}"
    return f"{value:.3f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def along(results: Results, snapshots: Sequence[Snapshot]) -> str:
    """Between seeds at each step, and within seeds."""
    found = along_training(snapshots, "deep", nearest(results)) if results.mechanisms else None
    if found is None:
        return ""
    measures = ("hints", "agreement", "misplaced", "tv")
    rows = []
    for at in found.steps:
        means = [
            at.mean["accuracy"],
            at.mean["graph_accuracy"],
            *(at.mean.get(m) for m in measures),
        ]
        rs = [without_nan(at.correlation[m].data()) for m in measures if m in at.correlation]
        shown = [_with_interval(r["pearson_r"], r["pearson_interval"]) for r in rs]
        rows.append((f"step {at.step:,}", [*(percent([without_nan(v)]) for v in means), *shown]))
    said = {"hints": "hint accuracy", "agreement": "agreement", "misplaced": "misplaced",
            "tv": "tv, all rows"}  # fmt: skip
    known = [said[m] for m in measures if m in found.steps[0].correlation]
    head = ["", "accuracy", "graphs right", *said.values(), *(f"r with {name}" for name in known)]
    models = "; ".join(
        f"{said[m]} {model.slope:+.2f} [{model.interval[0]:+.2f}, {model.interval[1]:+.2f}]"
        for m, model in found.models.items()
        if model is not None
    )
    note = (
        f"At equal steps, with seeds as random intercepts, per point of accuracy: {models}."
        if models
        else ""
    )
    return table(head, rows) + f'<p class="quiet">{escape(note)}</p>'


def solutions(results: Results) -> str:
    """Distances between seeds and to the compiled network, and how many clusters there are."""
    found = results.numbers["solutions"]
    rows = []
    for name, label in (
        ("mean_between", "between learned solutions (mean)"),
        ("closest_to_compiled", f"compiled to the closest, seed {found['closest_seed']}"),
    ):
        ours = found[name]
        if ours is None or ours["l1"] is None:
            continue
        printed = found["paper"][name]
        near = printed["nearest_form"] or "-"
        values = [f"{ours[f]:.4f}" for f in FORMS]
        rows.append((label, [*values, str(printed["printed"]), near]))
    if not rows:
        return ""
    head = ["distance", *FORMS, "the paper prints", "nearest in form"]
    clusters = (
        f"{clusters_sentence(found)} The paper's two numbers cannot come from one normalisation: "
        "rows of attention sum to 1, so its formula is at most 2/n."
    )
    return table(head, rows) + f'<p class="quiet">{escape(clusters)}</p>'


def causal(results: Results) -> str:
    """Accuracy when attention is replaced, and what each part of a mechanism is worth."""
    numbers = results.numbers
    if not results.mechanisms:
        return ""
    people = {"learned": [s["causal"] for s in numbers["seeds"]]}
    if "compiled" in numbers["yardsticks"]:
        people["compiled"] = [numbers["yardsticks"]["compiled"]["causal"]]
    under = [
        (name, [percent([flat(c)[key] for c in found]) for key in UNDER])
        for name, found in people.items()
    ]
    forced, foils = [], []
    for name, found in people.items():
        for mechanism in found[0]["mechanisms"]:
            each = [c["mechanisms"][mechanism] for c in found]
            forced.append(
                (
                    f"{name}, as {mechanism}",
                    [percent([c["exact"] for c in each]),
                     *(percent([c["rows"][rows] for c in each]) for rows in ROWS)],
                )
            )  # fmt: skip
            for wrong in zip(*(c["foils"] for c in each), strict=True):
                cells = [percent([w[key] for w in wrong]) for key in FOIL_COLUMNS]
                part = foil_name(wrong[0], each[0]["foils"])
                foils.append(
                    (f"{name}, {mechanism} with a wrong {part}", [verdicts(wrong), *cells])
                )
    given = percent([s["compiled_with_its_attention"] for s in numbers["seeds"]])
    parts = [table(["accuracy when attention is", *UNDER.values()], under)]
    if forced:
        in_rows = [f"only in {rows} rows" for rows in ROWS]
        parts.append(table(["accuracy when made to attend", "everywhere", *in_rows], forced))
        parts.append(table(["foils", "this part is", *FOIL_COLUMNS.values()], foils))
    note = (
        "Floor: nodes that are right under each of eight random attentions. A foil is the "
        "mechanism's attention with one part of its selection wrong: "
        "a sender that passes the mask but would be selected last (key), or one that does not pass "
        "it and would be selected first (mask). Of the hints that the program itself changes by "
        "the foil, in the same step: the share that is right all the same, is right under the "
        "exact attention, under any, and follows the program; of outputs, with the foil in every "
        "step: accuracy, and the share that names the foil. A part is used if its foil costs half "
        f"of what could be lost. The compiled network, given a learned network's attention: {given}"
    )
    return "".join(parts) + f'<p class="quiet">{escape(note)}</p>'
