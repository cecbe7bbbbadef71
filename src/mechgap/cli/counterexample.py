"""`mechgap counterexample`: the smallest graph on which each network of a run is wrong."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, app
from mechgap.cli.watching import watched


@app.command()
def counterexample(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    max_nodes: Annotated[
        int | None,
        typer.Option(
            help="Up to this size all graphs are tried, from every source; larger ones are "
            "searched by chance. If not given, as many as are 200,000 graphs at most."
        ),
    ] = None,
    which: Annotated[
        str, typer.Option(help="Checkpoint: best (by validation), or last, the final one.")
    ] = "best",
    as_json: AsJson = False,
) -> None:
    """Find the smallest graph on which each seed's output is wrong.

    What is found is also written into the run, as counterexamples.json, seed by seed: the same
    command resumes where it was stopped.
    """
    from mechgap import calls

    with watched(folder, "searching") as watcher:
        found = calls.counterexamples(folder, which, max_nodes=max_nodes, progress=watcher)
    if as_json:
        print(json.dumps(found.to_json()))
        return
    for seed, searched in found.seeds.items():
        print(f"seed {seed}: {searched.sentence}")
    print(
        f"{found.right_on_all} of {len(found.seeds)} seeds are right on all graphs up to "
        f"{found.max_nodes} nodes"
    )
