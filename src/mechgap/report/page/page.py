"""Put the page together: one file, no network, everything from data escaped."""

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs
from plotly.utils import PlotlyJSONEncoder

from mechgap.compiler.compile import Compiled
from mechgap.display import html_table, png
from mechgap.errors import InvalidInput
from mechgap.measures.results import FORMS, Results, load_results
from mechgap.measures.surroundings import SETTINGS, Landscape, load_landscape
from mechgap.report.answer import answer
from mechgap.report.measures import YARDSTICKS, p_value, spread
from mechgap.report.page.charts import charts
from mechgap.report.page.player import player
from mechgap.training.recipe import Recipe
from mechgap.training.store import MetricRow, Store, write_file

_CAPTIONS = {
    "internal": "Accuracy against the internal gap: the share of attention that is not where the "
    "nearest exact mechanism attends. Bars are 95 % intervals over graphs.",
    "external": "Accuracy against the share of the trace that is predicted within the margins.",
    "gap": "The gap at every step. A gap means something only beside attention that knows nothing.",
    "trace": "How much of each hint is predicted, over each graph's own time; bands span seeds.",
    "solutions": "Distance between the attentions of every two seeds, in the order of Ward's "
    "dendrogram.",
    "landscape": "The loss around the parameters in two random directions, each as long as the "
    "parameters themselves; drag to turn.",
    "training": "Training: loss, validation (which selects the parameters), test.",
}


def write_page(folder: Path, compiled: Compiled | None = None, out: Path | None = None) -> Path:
    """Write a measured run's page; where it is."""
    results = load_results(folder)
    with Store.reading(folder) as store:
        recipe, metrics = store.recipe, store.metrics()
    path = out or folder / "report" / "index.html"
    try:
        text = page(results, recipe, metrics, folder, compiled, _landscape(folder))
        write_file(path, text.encode())
    except OSError as error:
        raise InvalidInput(f"cannot write '{path}': {error}") from error
    return path


def page(
    results: Results,
    recipe: Recipe,
    metrics: Sequence[MetricRow],
    folder: Path,
    compiled: Compiled | None,
    landscape: Landscape | None = None,
) -> str:
    """The page's text."""
    drawn = charts(results, metrics, landscape)
    shown = player(results)
    title = f"mechgap: {recipe.task}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="answer">{escape(answer(results))}</p>',
        _summary(results),
        _resource("player.html") if shown and shown["mechanisms"] else "",
        "<h2>Accuracy and faithfulness</h2>",
        f'<div class="pair">{_figures(drawn, "internal", "external")}</div>',
        _correlations(results),
        _figures(drawn, "gap", "trace"),
        _section("Between solutions", _figures(drawn, "solutions") + _solutions(results)),
        _section("Does it use what it attends to?", _forced(results)),
        _section("The loss around it", _figures(drawn, "landscape")),
        _section("Training", _figures(drawn, "training")),
        _section("The compiled network", _parameters(compiled)),
        _section("What was run", _what_was_run(results, recipe, folder)),
    ]
    data = {"charts": drawn, "player": shown if shown and shown["mechanisms"] else None}
    return _TEMPLATE.format(
        title=escape(title),
        style=_resource("page.css"),
        body="\n".join(part for part in parts if part),
        data=_embedded(data),
        plotly=get_plotlyjs(),
        player=_resource("player.js"),
        charts=_resource("charts.js"),
    )


def _landscape(folder: Path) -> Landscape | None:
    """The run's landscape, if somebody made one."""
    place = folder / "landscape"
    return load_landscape(place) if (place / SETTINGS).exists() else None


_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
<script id="data" type="application/json">{data}</script>
<script>{player}</script>
<script>{plotly}</script>
<script>{charts}</script>
</body>
</html>
"""


def _embedded(data: Any) -> str:
    """JSON that no closing tag in it can end."""
    text = json.dumps(data, cls=PlotlyJSONEncoder, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _resource(name: str) -> str:
    return files("mechgap.report.page").joinpath(name).read_text()


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _figures(drawn: Mapping[str, Any], *names: str) -> str:
    return "".join(
        f'<figure><div class="plot" id="{name}"></div>'
        f"<figcaption>{escape(_CAPTIONS[name])}</figcaption></figure>"
        for name in names
        if name in drawn
    )


def _summary(results: Results) -> str:
    columns = {
        "accuracy": "accuracy",
        **{f"internal_{form}": f"gap ({form})" for form in FORMS},
        "top1_active": "active rows right",
        "external": "trace predicted",
    }
    seeds = results.numbers["seeds"]
    rows: list[tuple[str, Sequence[str]]] = [
        ("learned (mean ± std)", [spread([s[c] for s in seeds], c) for c in columns])
    ]
    for name, row in results.numbers["yardsticks"].items():
        rows.append((str(YARDSTICKS.get(name, name)), [spread([row[c]], c) for c in columns]))
    return f'<div class="summary">{_table(["", *columns.values()], rows)}</div>'


def _table(head: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    return f'<div class="scroll">{html_table(head, [(name, *row) for name, row in rows])}</div>'


def _correlations(results: Results) -> str:
    names = {"internal": "gap (tv)", "external": "trace predicted"}
    rows, notes = [], set()
    for kind, found in results.numbers["correlation"].items():
        if found is None:
            continue
        shown = []
        for coefficient, chance in (("pearson_r", "pearson_p"), ("spearman_rho", "spearman_p")):
            value = found[coefficient]
            shown += ["-" if value is None else f"{value:.3f}", p_value(found[chance])]
        rows.append((f"accuracy and {names[kind]}", [*shown, str(found["n"])]))
        notes |= {found["warning"]} - {None}
    if not rows:
        return ""
    said = "".join(f'<p class="quiet">{escape(note)}.</p>' for note in sorted(notes))
    return _table(["", "Pearson r", "p", "Spearman ρ", "p", "N"], rows) + said


def _solutions(results: Results) -> str:
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
        f"{found['clusters']} clusters ({found['criterion']}); the paper: 18. The paper's two "
        "numbers cannot come from one normalisation: rows of attention sum to 1, so its formula is "
        "at most 2/n."
    )
    return _table(head, rows) + f'<p class="quiet">{escape(clusters)}</p>'


def _forced(results: Results) -> str:
    seeds = results.numbers["seeds"]
    if seeds[0]["internal_tv"] is None:
        return ""
    names = list(seeds[0]["forced"])
    rows = [("learned", [spread([s["forced"][n] for s in seeds], "accuracy") for n in names])]
    compiled = results.numbers["yardsticks"].get("compiled")
    if compiled:
        rows.append(("compiled", [spread([compiled["forced"][n]], "accuracy") for n in names]))
    given = spread([s["compiled_with_its_attention"] for s in seeds], "accuracy")
    note = f"The compiled network, given a learned network's attention, is {given} accurate."
    return (
        _table(["accuracy with attention", *names], rows) + f'<p class="quiet">{escape(note)}</p>'
    )


def _parameters(compiled: Compiled | None) -> str:
    if compiled is None:
        return ""
    from mechgap.report.parameters import main_figure

    image = base64.b64encode(png(main_figure(compiled))).decode()
    name = f"{compiled.program.name}, target {compiled.target.name}"
    return (
        f'<figure><img class="drawn" alt="compiled parameters" src="data:image/png;base64,{image}">'
        f"<figcaption>{escape(name)}: parameters that are not zero, by the program's own names."
        f"</figcaption></figure><pre>{escape(str(compiled.program))}</pre>"
    )


def _what_was_run(results: Results, recipe: Recipe, folder: Path) -> str:
    numbers = results.numbers
    changed = recipe.differences(Recipe(task=recipe.task))
    command = ["mechgap", "train", recipe.task, "--seeds", str(len(numbers["seeds"]))]
    defaults = Recipe(task=recipe.task).data()
    for name, value in recipe.data().items():
        if name == "task" or value == defaults[name]:
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            command.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            command += [f"--{flag}", text]
    command += ["--out", folder.name]
    rows = [
        ("task", [recipe.task]),
        ("seeds", [str(len(numbers["seeds"]))]),
        ("steps", [f"{recipe.train_steps:,}"]),
        ("parameters", [numbers["parameters"]]),
        ("differs from the paper's defaults", ["; ".join(changed) or "no"]),
        ("commit", [numbers["commit"] or "not a checkout"]),
        ("versions", [", ".join(f"{k} {v}" for k, v in numbers["versions"].items())]),
    ]
    commands = [command, ["mechgap", "report", folder.name]]
    again = "\n".join(shlex.join(words) for words in commands)
    return _table(["", ""], rows) + f"<pre>{escape(again)}</pre>"
