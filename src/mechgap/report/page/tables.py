"""The page's tables, from saved results."""

from collections.abc import Sequence
from html import escape

from mechgap.display import html_table
from mechgap.measures.along import along_training
from mechgap.measures.internal import ROWS
from mechgap.measures.results import Results
from mechgap.measures.snapshot import Snapshot
from mechgap.measures.solutions import FORMS
from mechgap.report import failing as why
from mechgap.report import interchange
from mechgap.report.answer import nearest
from mechgap.report.definitions import definition, explained
from mechgap.report.measures import (
    CORRELATION_COLUMNS,
    FOIL_COLUMNS,
    PERCENTAGES,
    UNDER,
    breaking_sentence,
    clusters_sentence,
    correlation_cells,
    distances,
    foil_name,
    is_the_papers,
    own_state_sentence,
    patched,
    people,
    percent,
    verdicts,
    with_interval,
)


def summary(results: Results) -> str:
    """The population beside its baselines, and beside every mechanism."""
    measures = {"agreement": "top-1 agreement on updated nodes",
                "misplaced": "misplaced attention there", "tv": "tv, all nodes"}  # fmt: skip
    rows = []
    for name, these in people(results, "learned (mean ± std)").items():
        cells = [percent([getattr(row, c) for row in these]) for c in PERCENTAGES]
        for mechanism in results.mechanisms:
            gaps = [row.gaps["test"][mechanism] for row in these]
            cells += [percent([getattr(gap, m) for gap in gaps]) for m in measures]
        rows.append((name, cells))
    of = [f"{said} ({name})" for name in results.mechanisms for said in measures.values()]
    return f'<div class="summary">{table(["", *PERCENTAGES.values(), *of], rows)}</div>'


def table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A table that scrolls where it is wider than the page; cells say what they are."""
    body = html_table(head, [(name, *row) for name, row in rows], meanings=[*map(definition, head)])
    label = escape(", ".join(filter(None, head)) or "table")
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{body}</div>'


def correlations(results: Results, snapshots: Sequence[Snapshot]) -> str:
    """Accuracy against every measure of faithfulness, over seeds."""
    rows, notes = [], list[str]()
    for label, found in results.correlations.listed():
        rows.append((f"accuracy and {label}", correlation_cells(found)))
        notes += [found.warning] if found.warning else []
    if not rows:
        return ""
    if results.parameters == "best" and any(s.which == "best" for s in snapshots):
        notes.append(
            "each network is taken at its own best validation score, after different numbers of "
            "steps; along training, below, all have the same"
        )
    said = "".join(f'<p class="quiet">{escape(note)}.</p>' for note in dict.fromkeys(notes))
    return table(["", *CORRELATION_COLUMNS], rows) + said


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
        rs = [at.correlation[m] for m in measures if m in at.correlation]
        shown = [with_interval(r.pearson_r, r.pearson_interval) for r in rs]
        rows.append((f"step {at.step:,}", [*(percent([v]) for v in means), *shown]))
    said = {"hints": "hint accuracy", "agreement": "agreement", "misplaced": "misplaced",
            "tv": "tv, all nodes"}  # fmt: skip
    known = [said[m] for m in measures if m in found.steps[0].correlation]
    head = ["", "accuracy", "graph accuracy", *said.values(), *(f"r with {name}" for name in known)]
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


def own_state(results: Results) -> str:
    """Agreement from where networks are themselves, in a sentence."""
    told = own_state_sentence(results)
    return f'<p class="quiet">{explained(told)}</p>' if told else ""


def breaking(results: Results) -> str:
    """How far runs go before they are wrong, in a sentence."""
    told = breaking_sentence(results)
    return f'<p class="quiet">{escape(told[0].upper() + told[1:])}</p>' if told else ""


def failing(results: Results) -> str:
    """What was first wrong at nodes that are answered wrongly, and what nodes these are."""
    found = why.failing(results)
    if not found:
        return ""
    head, cells = why.firsts(found)
    state = why.states(m.interchange for m in results.networks)
    return (
        table(["", *head], [("learned", cells)])
        + table(why.KIND_HEAD, why.kinds(found))
        + (table(why.STATE_HEAD, state) if state else "")
        + f'<p class="quiet">{escape(why.NOTE)}</p>'
    )


def solutions(results: Results) -> str:
    """Distances between seeds and to the compiled network, and how many clusters there are."""
    rows = []
    for label, ours, printed in distances(results):
        values = [f"{getattr(ours, form):.4f}" for form in FORMS]
        beside = [str(printed.printed), printed.nearest_form or "-"] if printed else []
        rows.append((label, [*values, *beside]))
    if not rows:
        return ""
    head, clusters = ["distance", *FORMS], clusters_sentence(results)
    if is_the_papers(results):
        head += ["the paper prints", "nearest in form"]
        clusters += (
            " The paper's two numbers cannot come from one normalisation: rows of attention sum "
            "to 1, so its formula is at most 2/n."
        )
    return table(head, rows) + f'<p class="quiet">{escape(clusters)}</p>'


def causal(results: Results) -> str:
    """Accuracy when attention is replaced, and what each part of a mechanism is worth."""
    if not results.mechanisms:
        return ""
    under = [
        (name, [percent([c.without_mechanism[key] for c in found]) for key in UNDER])
        for name, found in patched(results).items()
    ]
    forced, foils = [], []
    for name, found in patched(results).items():
        for mechanism in found[0].mechanisms:
            each = [c.mechanisms[mechanism] for c in found]
            forced.append(
                (
                    f"{name}, as {mechanism}",
                    [percent([c.exact for c in each]),
                     *(percent([c.rows[rows] for c in each]) for rows in ROWS)],
                )
            )  # fmt: skip
            for wrong in zip(*(c.foils for c in each), strict=True):
                cells = [percent([getattr(w, key) for w in wrong]) for key in FOIL_COLUMNS]
                part = foil_name(wrong[0], each[0].foils)
                foils.append(
                    (f"{name}, {mechanism} with a wrong {part}", [verdicts(wrong), *cells])
                )
    given = percent([n.compiled_with_its_attention for n in results.networks])
    parts = [table(["accuracy when attention is", *UNDER.values()], under)]
    if forced:
        in_rows = [f"only in {rows} nodes" for rows in ROWS]
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


def interchanges(results: Results) -> str:
    """How far networks compute what mechanisms compute, variable by variable."""
    found = [(f"{variable}, {name}", cells) for variable, name, cells in interchange.rows(results)]
    if not found:
        return ""
    silent = "".join(
        f" Nothing follows from {', '.join(names)} of {mechanism} that is not decided again in "
        "every step."
        for mechanism, names in interchange.without_cases(results).items()
    )
    note = f'<p class="quiet">{escape(interchange.NOTE + silent)}</p>'
    return table(["", *interchange.COLUMNS], found) + note
