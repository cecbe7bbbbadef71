"""`mechgap decompile`: then what is it running?"""

import json
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, app
from mechgap.cli.watching import watched
from mechgap.errors import InvalidInput


@app.command()
def decompile(
    what: Annotated[
        Path, typer.Argument(help="A run folder, or the file of a network (.safetensors).")
    ],
    seed: Annotated[
        list[int] | None,
        typer.Option(
            help="Which seed of a run, decompiled anew; may be given several times. All that are "
            "not decompiled yet, if not given."
        ),
    ] = None,
    which: Annotated[
        str,
        typer.Option(help="Of a run: the best checkpoint (by validation) or the last, final one."),
    ] = "best",
    program: Annotated[
        str | None,
        typer.Option(
            help="Of a file whose task is your own: the program that traces it, FILE.py:NAME, "
            "which is Python code that is run."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the program that networks run, force them to it, and say how much of it holds.

    What is found about a run is also written into it, as decompiled.json, seed by seed: the same
    command resumes where it was stopped.
    """
    from mechgap import calls
    from mechgap.network.files import load_network
    from mechgap.report.decompiled import show_decompiled, show_explanation
    from mechgap.typed import plain, rounded

    if what.is_file() and (seed or which != "best"):
        raise InvalidInput("--seed and --which are for runs; a file holds one network")
    if not what.is_file() and program is not None:
        raise InvalidInput("--program is for a file; a run knows its own program")
    if what.is_file():
        found = calls.decompile(load_network(what)[0], program=program).explanation
        if as_json:
            print(json.dumps(rounded(plain(found))))
        else:
            show_explanation(what.stem, found)
        return
    with watched(what, "decompiling") as watcher:
        run = calls.decompile(what, which=which, seeds=seed, progress=watcher)
    if as_json:
        print(json.dumps(run.to_json()))
    else:
        show_decompiled(run, what)
