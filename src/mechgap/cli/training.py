"""`mechgap train`: every field of the recipe is an option."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from mechgap.cli.app import RayAddress, TaskArgument, app, whole_numbers
from mechgap.cli.watching import watched
from mechgap.errors import InvalidInput
from mechgap.training.presets import PRESETS, make_recipe
from mechgap.training.recipe import Recipe


def _train(
    task: TaskArgument,
    out: Annotated[Path, typer.Option(help="The run folder; an existing run is resumed.")],
    seeds: Annotated[int | None, typer.Option(help="How many seeds: 0, 1, …")] = None,
    seed_range: Annotated[
        str | None, typer.Option(help="Which seeds, FIRST:END, for one job of many.")
    ] = None,
    preset: Annotated[str, typer.Option(help=f"One of {', '.join(PRESETS)}.")] = "default",
    config: Annotated[Path | None, typer.Option(help="A TOML file with hyperparameters.")] = None,
    chunk: Annotated[
        int | None, typer.Option(help="Seeds per vectorised program; chosen if not given.")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="Devices (CPU cores) to use; all if not given.")
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(help="How often to record where it stands.")
    ] = 20.0,
    snapshots: Annotated[
        str,
        typer.Option(help="Steps at which networks are measured, such as 250,500; auto; or none."),
    ] = "auto",
    engine: Annotated[str, typer.Option(help="local, or ray (extra `ray`).")] = "local",
    ray_address: RayAddress = None,
    **overrides: Any,
) -> None:
    """Train a population of networks. The same command resumes where it was stopped."""
    given = {name: value for name, value in overrides.items() if value is not None}
    if (lengths := given.get("train_lengths")) is not None:
        given["train_lengths"] = whole_numbers("train_lengths", lengths)
    recipe = make_recipe(task, preset, config, given)
    wanted = _seeds(seeds, seed_range)
    looked = snapshots if snapshots in {"auto", "none"} else whole_numbers("snapshots", snapshots)

    from mechgap.experiments.training import train_recipe
    from mechgap.report.runs import show_run

    with watched(out) as watcher:
        train_recipe(
            recipe,
            wanted,
            out,
            snapshots=looked,
            engine=engine,
            devices=devices,
            ray_address=ray_address,
            chunk=chunk,
            checkpoint_seconds=checkpoint_seconds,
            watcher=watcher,
        )
    show_run(out)


def _seeds(count: int | None, given: str | None) -> list[int]:
    if count is not None and given is not None:
        raise InvalidInput("give --seeds or --seed-range, not both")
    if given is None:
        count = 1 if count is None else count
        if count < 1:
            raise InvalidInput(f"seeds must be at least 1; got {count}")
        return list(range(count))
    first, separator, end = given.partition(":")
    if not (separator and first.isdigit() and end.isdigit() and int(first) < int(end)):
        raise InvalidInput(f"--seed-range is FIRST:END, such as 0:64; got '{given}'")
    return list(range(int(first), int(end)))


def _with_recipe_options(command: Any) -> Any:
    """The command with one option for each field of the recipe; given ones override."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[:-1]
    options = []
    for f in fields(Recipe):
        if f.name in {"task", "program"}:  # the argument
            continue
        default: Any = f.default
        is_list = isinstance(default, tuple)
        kind = str if is_list or isinstance(default, str) else type(default)
        shown = ",".join(map(str, default)) if is_list else str(default).lower()
        flag = f"--{f.name.replace('_', '-')}"
        names = [f"{flag}/--no-{flag[2:]}"] if kind is bool else [flag]
        names += ["--steps"] if f.name == "train_steps" else []
        told = typer.Option(
            *names, help=f"{f.metadata['help']} [{shown}]", rich_help_panel="Recipe"
        )
        options.append(
            inspect.Parameter(
                f.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[kind | None, told],
            )
        )
    command.__signature__ = inspect.Signature([*own, *options])
    command.__annotations__ = {p.name: p.annotation for p in [*own, *options]}
    return command


app.command("train")(_with_recipe_options(_train))
