"""`mechgap gap` and `mechgap report`: the main job, and its page."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, TaskArgument, app
from mechgap.cli.training import train_with_progress
from mechgap.errors import InvalidInput


@app.command()
def gap(
    task: TaskArgument,
    out: Annotated[Path | None, typer.Option(help="The run folder; gap-TASK if not given.")] = None,
    seeds: Annotated[int, typer.Option(help="How many networks to train.")] = 4,
    steps: Annotated[
        int, typer.Option(help="Training steps of each; the paper has 10,000.")
    ] = 2000,
    hidden_size: Annotated[int, typer.Option(help="Hidden units.")] = 128,
    as_json: AsJson = False,
) -> None:
    """Compile an algorithm, train networks on it, measure the gap, write a page about it."""
    from mechgap.training.recipe import make_recipe

    if seeds < 1:
        raise InvalidInput(f"seeds must be at least 1; got {seeds}")
    overrides = {"train_steps": steps, "hidden_size": hidden_size}
    recipe = make_recipe(task, overrides=overrides)
    folder = out or Path(f"gap-{task.rpartition(':')[2]}")

    from mechgap.training.engines import make_engine

    engine = make_engine("local", devices=None, ray_address=None)

    from mechgap.experiments.gap import compile_and_verify, measured_run
    from mechgap.measures.snapshot import STEPS, Observer
    from mechgap.report.answer import answer
    from mechgap.report.page.page import write_page
    from mechgap.report.progress import Steps
    from mechgap.training.train import snapshots_at

    began = time.monotonic()
    compiled, verified = compile_and_verify(recipe)
    _say(
        f"compiled {compiled.program.name} ({compiled.target.name}, "
        f"{compiled.network.parameters:,} parameters): {verified.sentence}, every hint of every "
        "step"
    )
    _say(
        f"training {seeds} networks for {steps:,} steps each; a full run is: mechgap gap {task} "
        f"--seeds 128 --steps 10000 --out {folder}-full"
    )
    looked = snapshots_at(recipe, STEPS, Observer)
    train_with_progress(recipe, range(seeds), folder, engine, snapshots=looked)
    with Steps() as shown:
        results = measured_run(folder, shown.tell)
    page = write_page(folder, compiled)
    if as_json:
        print(json.dumps({"answer": answer(results), "page": str(page), **results.to_json()}))
        return
    print(answer(results))
    print(f"page: {page} ({time.monotonic() - began:.0f} s in all)")


@app.command("report")
def report_command(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The page; report/index.html in the run if not given.")
    ] = None,
) -> None:
    """Write the page of a measured run; measures it first if nobody has."""
    from mechgap.experiments.gap import report_run
    from mechgap.report.progress import Steps

    with Steps() as shown:
        path = report_run(folder, out, shown.tell)
    print(f"page: {path}")


def _say(text: str) -> None:
    print(f"mechgap: {text}", file=sys.stderr, flush=True)


@app.command()
def figures(
    folder: Annotated[Path, typer.Argument(help="A measured run folder.")],
    out: Annotated[Path, typer.Option(help="Where to write them.")] = Path("figures"),
) -> None:
    """Draw the paper's figures of a measured run, as PDF and PNG."""
    from mechgap.measures.population import compile_reference
    from mechgap.measures.results import load_results
    from mechgap.report.figures import draw_figures
    from mechgap.training.store import Store

    results = load_results(folder)
    with Store.reading(folder) as store:
        recipe = store.recipe
    for path in draw_figures(results, compile_reference(recipe, 64), out):
        print(f"written: {path}")
