"""`mechgap landscape` and `mechgap stability`: around compiled and learned parameters."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, app
from mechgap.cli.programs import ProgramName, TargetName
from mechgap.cli.watching import watched


@app.command()
def landscape(
    what: Annotated[
        str, typer.Argument(help="A run folder, a program of the library, or FILE.py:NAME.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where to keep it; landscape/ in the run if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which seed of the run.")] = 0,
    target: Annotated[
        str | None, typer.Option(help="What to compile for; the nearest to dm-clrs's if not given.")
    ] = None,
    general: Annotated[float, typer.Option(help="How far the general surface reaches.")] = 1.0,
    local: Annotated[float, typer.Option(help="How far the local surface reaches.")] = 0.01,
    points: Annotated[int, typer.Option(help="Points on a side of a surface.")] = 51,
    pairs: Annotated[int, typer.Option(help="Pairs of directions to average flatness over.")] = 8,
    directions: Annotated[int, typer.Option(help="Seed of the random directions.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Loss around learned, compiled and initial parameters; the same command resumes."""
    from mechgap.training.engines import keep_compiled_programs, use_one_thread_each

    use_one_thread_each()
    keep_compiled_programs()
    from mechgap.experiments.landscape import landscape_of_program, landscape_of_run
    from mechgap.measures.landscape import Settings, compute
    from mechgap.programs.load import find_program
    from mechgap.report.landscape import draw_landscape, show_flatness
    from mechgap.training.store import DATABASE

    if (Path(what) / DATABASE).exists():
        job = landscape_of_run(Path(what), seed, target)
    else:
        job = landscape_of_program(find_program(what), target)
    settings = Settings(
        title=job.title, general=general, local=local, points=points, pairs=pairs,
        directions=directions,
    )  # fmt: skip
    folder = out or job.folder
    with watched(folder, "computing") as watcher:
        found = compute(folder, settings, job.networks, job.batch, watcher.tell)
    written = draw_landscape(found, folder)
    rows = found.flatness()
    if as_json:
        print(json.dumps({"settings": asdict(settings), "flatness": rows, "folder": str(folder)}))
        return
    show_flatness(rows)
    if {"learned", "compiled"} <= set(job.networks) and "line/loss" not in found.arrays:
        print("no line from learned to compiled: the two networks differ in shape")
    for path in written:
        print(f"written: {path}")


@app.command()
def stability(
    program: ProgramName,
    target: TargetName = "stock-ln",
    seeds: Annotated[int, typer.Option(help="How many data orders.")] = 4,
    steps: Annotated[int, typer.Option(help="Training steps of each.")] = 2000,
    noise: Annotated[
        float, typer.Option(help="Noise on the compiled parameters, as a share of each filter.")
    ] = 0.0,
    learning_rate: Annotated[float, typer.Option(help="Adam's.")] = 1e-4,
    out: Annotated[Path | None, typer.Option(help="The run folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start from compiled parameters and train on: does the network stay what it was?"""
    from mechgap.experiments.stability import stability as train_on
    from mechgap.experiments.stability import stability_recipe
    from mechgap.report.trajectory import draw_trajectory, show_trajectory

    overrides = {"train_steps": steps, "learning_rate": learning_rate}
    recipe = stability_recipe(program, target, noise=noise, overrides=overrides)
    name = program.rpartition(":")[2]
    folder = out or Path(f"stability-{name}-{target}")
    with watched(folder) as watcher:
        rows = train_on(recipe, seeds, folder, watcher)
    written = draw_trajectory(rows, f"{name}, {target}", folder)
    if as_json:
        print(json.dumps({"rows": [row.data() for row in rows], "folder": str(folder)}))
        return
    show_trajectory(rows)
    for path in written:
        print(f"written: {path}")
