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
from mechgap.decompiler.population import DecompiledRun
from mechgap.disk import write_file
from mechgap.display import png
from mechgap.errors import InvalidInput
from mechgap.measures.at_sizes import AtSizes, load_sizes
from mechgap.measures.counterexamples import SearchedRun
from mechgap.measures.landscape import SETTINGS, Landscape, load_landscape
from mechgap.measures.results import Results, load_results
from mechgap.measures.snapshot import Snapshot, load_snapshots
from mechgap.report.answer import answer, beyond_the_answer
from mechgap.report.definitions import explained
from mechgap.report.page import tables
from mechgap.report.page.charts import charts
from mechgap.report.page.decompiled import clusters_named, decompiled
from mechgap.report.page.player import openable, player
from mechgap.report.page.wrong_graphs import wrong_graphs
from mechgap.tasks.kinds import MATRICES_UP_TO
from mechgap.training.recipe import Recipe
from mechgap.training.rows import MetricRow
from mechgap.training.store import Store

_CAPTIONS = {
    "internal": "Accuracy against misplaced attention on the nodes that the mechanism updates: "
    "attention on nobody whom a correct run could have chosen. Bars: 95 % intervals over graphs.",
    "computes": "Every network twice: does it attend as the mechanism does, and does it compute "
    "what that computes? Up, the mean over the mechanism's variables of the cases in which the "
    "network follows when one variable is put from one run into another.",
    "directions": "How far networks follow, by how many directions of the hidden state are put in "
    "(0: only the hints that say the variable), on the cases that their number is chosen on. "
    "Dotted: untrained networks, whose directions were sought in the same way.",
    "external": "Accuracy against the share of the trace that is predicted within the margins.",
    "parts": "What the paper's gap (tv over all rows) is made of. Updated nodes: the algorithm "
    "changes the node's state by whom it attends to. Unchanged: it attends to another node and the "
    "state stays. Inactive: it attends to the node itself. Wrong choice: the largest entry is one "
    "that no correct run would choose; soft: that is right, and the rest of the row is not; tie: "
    "on a sender that another correct run could have chosen.",
    "gap": "The same at every step of the algorithm, the mean of all seeds. Symbols: the whole gap "
    "of attention that knows nothing.",
    "along": "Every seed at fixed steps of training, on 1,000 sparse graphs with long traces: "
    "accuracy is not at its ceiling. Points of one colour were trained equally long.",
    "trace": "How much of each hint is predicted, over each graph's own time; bands span seeds.",
    "solutions": "Distance between the attentions of every two seeds, in the order of Ward's "
    "dendrogram.",
    "sizes": "The same networks on graphs of several kinds and sizes: outputs and whole graphs "
    "that are right, and agreement on the nodes that the mechanism updates. Points: every seed. "
    f"Graphs of more than {MATRICES_UP_TO} nodes run as lists of edges, where predicted pointers "
    "are decisions before they are fed back.",
    "landscape": "The loss around the parameters in two random directions, each as long as the "
    "parameters themselves; drag to turn.",
    "training": "Training: loss, validation (which selects the parameters), test.",
}


def write_page(folder: Path, compiled: Compiled | None = None, out: Path | None = None) -> Path:
    """Write a measured run's page; where it is."""
    results = load_results(folder)
    with Store.reading(folder) as store:
        recipe, metrics = store.recipe, store.metrics()
    snapshots = load_snapshots(folder)
    path = out or folder / "report" / "index.html"
    if out is not None and not out.parent.is_dir():
        raise InvalidInput(f"there is no folder '{out.parent}' to write {out.name} into")
    try:
        text = page(
            results,
            recipe,
            metrics,
            folder,
            compiled,
            snapshots,
            _landscape(folder),
            DecompiledRun.load(folder),
            SearchedRun.load(folder),
            load_sizes(folder, results.parameters),
        )
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
    snapshots: Sequence[Snapshot] = (),
    landscape: Landscape | None = None,
    found: DecompiledRun | None = None,
    searched: SearchedRun | None = None,
    sizes: AtSizes | None = None,
) -> str:
    """The page's text."""
    drawn = charts(results, metrics, snapshots, landscape, found, sizes)
    shown = player(results, searched)
    title = f"mechgap: {recipe.task}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="answer">{explained(answer(results))}</p>',
        _figures(drawn, "internal"),
        _resource("player.html") if shown and shown["mechanisms"] else "",
        _section("The numbers", tables.summary(results) + _more(beyond_the_answer(results))),
        _section(
            "What the gap is made of", _figures(drawn, "parts", "gap") + tables.own_state(results)
        ),
        _section("Does it use what it attends to?", tables.causal(results)),
        _section(
            "Does it compute what the program computes?",
            _figures(drawn, "computes", "directions") + tables.interchanges(results),
        ),
        _section("What size does to it", _figures(drawn, "sizes")),
        _section("Why it fails", tables.failing(results)),
        _section(
            "The smallest graph on which it is wrong", wrong_graphs(searched, openable(shown))
        ),
        _section("Then what is it running?", decompiled(found, recipe.mechanisms) if found else ""),
        _section(
            "Accuracy and faithfulness",
            f'<div class="pair">{_figures(drawn, "external", "trace")}</div>'
            + tables.correlations(results, snapshots)
            + tables.breaking(results),
        ),
        _section("Along training", _figures(drawn, "along") + tables.along(results, snapshots)),
        _section(
            "Between solutions",
            _figures(drawn, "solutions")
            + tables.solutions(results)
            + clusters_named(results, found),
        ),
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


def _more(text: str) -> str:
    return f"<p>{explained(text)}</p>" if text else ""


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _figures(drawn: Mapping[str, Any], *names: str) -> str:
    return "".join(
        f'<figure><div class="plot" id="{name}"></div>'
        f"<figcaption>{explained(_CAPTIONS[name])}</figcaption></figure>"
        for name in names
        if name in drawn
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
        f"</figcaption></figure><pre tabindex='0'>{escape(str(compiled.program))}</pre>"
    )


def _what_was_run(results: Results, recipe: Recipe, folder: Path) -> str:
    usual = Recipe(task=recipe.task, program=recipe.program)
    versions = results.provenance.versions
    changed = recipe.differences(usual)
    task = recipe.task if recipe.own_program is None else f"FILE.py:{recipe.own_program.name}"
    command = ["mechgap", "train", task, "--seeds", str(len(results.seeds))]
    defaults = usual.data()
    for name, value in recipe.data().items():
        if value == defaults[name]:
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
        ("seeds", [str(len(results.seeds))]),
        ("steps", [f"{recipe.train_steps:,}"]),
        ("parameters", [results.parameters]),
        ("differs from the paper's defaults", ["; ".join(changed) or "no"]),
        ("commit", [results.provenance.commit or "not a checkout"]),
        ("versions", [", ".join(f"{k} {v}" for k, v in versions.items())]),
    ]
    commands = [command, ["mechgap", "report", folder.name]]
    again = "\n".join(shlex.join(words) for words in commands)
    return tables.table(["", ""], rows) + f"<pre tabindex='0'>{escape(again)}</pre>"
