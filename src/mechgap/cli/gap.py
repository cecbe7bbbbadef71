"""`mechgap gap` and `mechgap report`: the main job, and its page."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, TaskArgument, app
from mechgap.cli.watching import watched


@app.command()
def gap(
    task: TaskArgument,
    out: Annotated[Path | None, typer.Option(help="The run folder; gap-TASK if not given.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many networks to train; what takes five minutes.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps of each; what takes five minutes.")
    ] = None,
    hidden_size: Annotated[int, typer.Option(help="Hidden units.")] = 128,
    official: Annotated[
        bool | None,
        typer.Option(
            "--official/--training-size",
            help="Test on the official graphs of 64 nodes, or on ones of the training size; if not "
            "given, on the official ones unless traces are long.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile an algorithm, train networks on it, measure the gap, write a page about it.

    Without --seeds and --steps: as much as takes about five minutes on two cores.
    """
    from mechgap.experiments.gap import gap as measure_gap

    folder = out or Path(f"gap-{task.rpartition(':')[2]}")
    with watched(folder) as watcher:
        found = measure_gap(
            task,
            seeds=seeds,
            steps=steps,
            out=folder,
            hidden_size=hidden_size,
            official=official,
            progress=watcher,
        )
    if as_json:
        print(json.dumps(found.to_json()))
        return
    print(found.answer)
    print(f"page: {found.page} ({found.seconds:.0f} s in all)")


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The page; report/index.html in the run if not given.")
    ] = None,
) -> None:
    """Write the page of a measured run; measures it first if nobody has."""
    from mechgap.experiments.gap import report_run

    with watched(folder) as watcher:
        path = report_run(folder, out, watcher.tell)
    print(f"page: {path}")


@app.command()
def figures(
    folder: Annotated[Path, typer.Argument(help="A measured run folder.")],
    out: Annotated[Path, typer.Option(help="Where to write them.")] = Path("figures"),
) -> None:
    """Draw the paper's figures of a measured run, as PDF and PNG."""
    from mechgap.decompiler.population import DecompiledRun
    from mechgap.measures.at_sizes import load_sizes
    from mechgap.measures.reference import compile_reference
    from mechgap.measures.results import load_results
    from mechgap.report.figures import draw_figures

    results = load_results(folder)
    compiled = compile_reference(results.recipe, 64).compiled
    sizes = load_sizes(folder, results.parameters)
    for path in draw_figures(results, compiled, out, DecompiledRun.load(folder), sizes):
        print(f"written: {path}")
