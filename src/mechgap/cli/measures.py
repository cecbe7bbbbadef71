"""`mechgap measure` and `mechgap import`: a run's gap; networks trained elsewhere."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mechgap.cli.app import AsJson, app
from mechgap.cli.watching import watched
from mechgap.errors import InvalidInput
from mechgap.tasks.kinds import KINDS, kinds_of


@app.command()
def measure(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    which: Annotated[str, typer.Option(help="Parameters: best (by validation) or last.")] = "best",
    graphs: Annotated[
        str | None,
        typer.Option(
            help=f"Measure on other graphs than the test set: {', '.join(KINDS)}, or several, "
            "tree+grid."
        ),
    ] = None,
    graphs_from: Annotated[
        list[Path] | None,
        typer.Option(
            help="Measure on the graphs of a file (.graphml, .gml, .edgelist, .txt, .csv, .npz); "
            "may be given several times."
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="With --graphs: how many nodes. [64]")] = None,
    count: Annotated[
        int | None,
        typer.Option(
            help="How many graphs; of a file with one graph, from how many sources it is searched. "
            "[32]"
        ),
    ] = None,
    scalar_margin: Annotated[float, typer.Option(help="How far a scalar hint may be off.")] = 0.5,
    binary_margin: Annotated[
        float, typer.Option(help="How far the probability of a mask may be off.")
    ] = 0.1,
    as_json: AsJson = False,
) -> None:
    """Measure a population's mechanistic gap, inside and outside; write it into the run.

    On other graphs than the test set: write it into RUN/elsewhere.
    """
    if graphs is not None and graphs_from:
        raise InvalidInput("give --graphs or --graphs-from, not both")
    if nodes is not None and graphs is None:
        raise InvalidInput("--nodes is the size of other graphs. Say which: --graphs tree")
    if count is not None and graphs is None and not graphs_from:
        raise InvalidInput("--count is of other graphs. Say which: --graphs tree")
    if graphs is not None:
        kinds_of(graphs)

    from mechgap.measures.external import Margins
    from mechgap.measures.run import measure_run
    from mechgap.report.measures import show_measures

    elsewhere = None
    if graphs is not None or graphs_from:
        elsewhere = _elsewhere(folder, graphs, graphs_from or [], nodes, count)
    with watched(folder) as watcher:
        margins = Margins(scalar=scalar_margin, binary=binary_margin)
        results = measure_run(
            folder, which, elsewhere=elsewhere, margins=margins, tell=watcher.tell
        )
    if as_json:
        print(json.dumps(results.to_json()))
    else:
        show_measures(results, elsewhere.folder(folder, which) if elsewhere else folder)


def _elsewhere(
    folder: Path, graphs: str | None, files: list[Path], nodes: int | None, count: int | None
) -> Any:
    """Graphs for the networks of a run in place of its test set."""
    from mechgap.measures.elsewhere import other_graphs, own_graphs
    from mechgap.training.store import Store

    with Store.reading(folder) as store:
        recipe = store.recipe
    if graphs is None:
        return own_graphs(recipe, files, count=count)
    given = {"nodes": nodes, "count": count}
    return other_graphs(recipe, graphs, **{k: v for k, v in given.items() if v is not None})


@app.command("import")
def import_run(
    files: Annotated[
        list[Path], typer.Argument(help="Safetensors with Haiku's names, one a seed.")
    ],
    task: Annotated[str, typer.Option(help="The task that they were trained for.")],
    out: Annotated[Path, typer.Option(help="The run folder to make.")],
    nb_msg_passing_steps: Annotated[
        int, typer.Option(help="Message-passing steps per hint, which files do not tell.")
    ] = 1,
    processor_type: Annotated[
        str, typer.Option(help="gatv2 or gatv2_full, which files do not tell.")
    ] = "gatv2",
) -> None:
    """Make a run of dm-clrs parameters, so that it can be measured like any other."""
    from mechgap.training.exchange import import_networks

    count = import_networks(files, task, out, nb_msg_passing_steps, processor_type)
    print(f"written: {out} ({count} seeds). Next: mechgap measure {out}")
