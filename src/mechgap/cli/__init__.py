"""`mechgap …`: parsing and printing only. Everything heavy is imported inside a command."""

import sys

import typer

from mechgap.cli import (
    counterexample,
    decompile,
    doctor,
    gap,
    landscape,
    measures,
    programs,
    reproduce,
    runs,
    tasks,
    training,
    zoo,
)
from mechgap.cli.app import app
from mechgap.errors import InvalidInput

__all__ = [
    "app",
    "counterexample",
    "decompile",
    "doctor",
    "gap",
    "landscape",
    "main",
    "measures",
    "programs",
    "reproduce",
    "runs",
    "tasks",
    "training",
    "zoo",
]

# typer brings its own copy of click or uses click's, depending on its version.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def main() -> None:
    """Run the command line. A user's mistake is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except (InvalidInput, _UsageError) as error:
        text = error.format_message() if isinstance(error, _UsageError) else str(error)  # pyright: ignore[reportAttributeAccessIssue]
        print(f"mechgap: {' '.join(text.split())}", file=sys.stderr)
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        print("mechgap: stopped", file=sys.stderr)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
