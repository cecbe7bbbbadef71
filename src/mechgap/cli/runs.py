"""`mechgap runs …`: look at runs, take their numbers out, put runs together."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, app

runs_app = typer.Typer(add_completion=False, help="Look at runs; list, show, export, merge.")
app.add_typer(runs_app, name="runs", invoke_without_command=True)

Folder = Annotated[Path, typer.Argument(help="A run folder.")]


@runs_app.callback()
def list_runs(
    context: typer.Context,
    root: Annotated[Path, typer.Option(help="Where to look for runs.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """List the runs below a folder and how they stand."""
    if context.invoked_subcommand is not None:
        return
    from mechgap.report.runs import run_summaries, show_runs

    if as_json:
        print(json.dumps(run_summaries(root)))
    else:
        show_runs(root)


@runs_app.command("show")
def show(folder: Folder, as_json: AsJson = False) -> None:
    """The seeds of a run: mean ± std (max), beside the paper's number where there is one."""
    from mechgap.report.runs import run_summary, show_run

    if as_json:
        print(json.dumps(run_summary(folder)))
    else:
        show_run(folder)


@runs_app.command("export")
def export(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="The file or folder; in the run if not given.")
    ] = None,
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="csv; or parquet, tensorboard, wandb (offline), each with the extra of its name.",
        ),
    ] = "csv",
) -> None:
    """Write a run's metrics as one table, or for a program that draws curves. Nothing is sent."""
    from mechgap.training.exchange import export_metrics

    print(f"written: {export_metrics(folder, out, file_format)}")


@runs_app.command("merge")
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Runs with one recipe, other seeds.")],
    out: Annotated[Path, typer.Option(help="The run folder that has them all.")],
) -> None:
    """Put the finished seeds of several runs into one, for jobs that shared the seeds out."""
    from mechgap.training.exchange import merge_runs

    print(f"written: {out} ({merge_runs(folders, out)} seeds)")


@runs_app.command("hub")
def hub(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    which: Annotated[
        str, typer.Option(help="The best checkpoint (by validation) or the last, final one.")
    ] = "best",
) -> None:
    """Write networks, measures and a model card as a folder that the Hugging Face hub takes.

    Nothing is sent; `mechgap import FOLDER --out RUN` makes a run of it again.
    """
    from mechgap.experiments.hub import write_hub_folder
    from mechgap.training.run import Run

    print(f"written: {write_hub_folder(Run.open(folder), out, which)}")
