"""The command line itself, to which the other modules add their commands."""

from typing import Annotated

import typer

from mechgap import __version__
from mechgap.cli.watching import LOUDNESS
from mechgap.errors import InvalidInput

app = typer.Typer(
    name="mechgap",
    pretty_exceptions_enable=False,
)

TaskArgument = Annotated[
    str,
    typer.Argument(
        help="A task (`mechgap tasks`), a program (`mechgap programs`), or FILE.py:NAME, which is "
        "Python code that is run."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
RayAddress = Annotated[
    str | None, typer.Option(help="An existing Ray cluster; one of this machine if not given.")
]


def check_seed(seed: int) -> None:
    """Refuse what is no seed of a random key."""
    if not 0 <= seed < 2**32:
        raise InvalidInput(f"seed must lie between 0 and {2**32 - 1}; got {seed}")


def whole_numbers(what: str, text: str) -> list[int]:
    """Numbers with commas between them."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InvalidInput(f"{what} are whole numbers, such as 4,7,11; got '{text}'")
    return [int(part) for part in parts]


def _version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing while working.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say every report, with the time.")
    ] = False,
) -> None:
    """Graph algorithms compiled exactly into graph networks, beside networks that learned them."""
    del version
    if quiet and verbose:
        raise InvalidInput("say --quiet or --verbose, not both")
    LOUDNESS.set("quiet" if quiet else "verbose" if verbose else "normal")
    if context.invoked_subcommand is None:
        print(context.get_help())
