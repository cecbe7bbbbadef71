"""`mechgap zoo`."""

import json
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, app
from mechgap.cli.programs import DType
from mechgap.errors import InvalidInput


@app.command()
def zoo(
    nodes: Annotated[int, typer.Option(help="Compiled for, and verified on, so many nodes.")] = 64,
    graphs: Annotated[int, typer.Option(help="New graphs to verify each on; 0: none.")] = 32,
    hidden_size: Annotated[int, typer.Option(help="Hidden units of the networks.")] = 128,
    largest: Annotated[
        bool,
        typer.Option("--largest", help="Instead, the largest graphs that each is certified for."),
    ] = False,
    dtype: DType = "float32",
    as_json: AsJson = False,
) -> None:
    """Every program in every target: size, certificate, and whether it is exact."""
    if largest:
        _show_largest(hidden_size, dtype, as_json)
        return
    if dtype != "float32":
        raise InvalidInput("--dtype is for --largest: the zoo itself is in float32")
    if graphs < 0:
        raise InvalidInput(f"graphs must be at least 0; got {graphs}")
    from mechgap.tasks.sampling import check_nodes

    check_nodes(nodes)
    from mechgap.compiler.zoo import attempts, verified
    from mechgap.programs.library import LIBRARY
    from mechgap.report.progress import Shown
    from mechgap.report.zoo import ZooRow, show_zoo

    rows = []
    with Shown("verifying" if graphs else "compiling") as progress:
        for attempt in attempts(nodes, hidden_size):
            name = attempt.program.name
            progress.tell(name, list(LIBRARY).index(name), len(LIBRARY))
            found = verified(attempt, graphs) if graphs and attempt.compiled else None
            rows.append(ZooRow(attempt, found))
    if as_json:
        print(json.dumps([row.data() for row in rows], indent=1))
    else:
        show_zoo(rows)
    wrong = [e for e in rows if e.verification is not None and not e.verification.exact]
    raise typer.Exit(1 if wrong else 0)


def _show_largest(hidden_size: int, dtype: str, as_json: bool) -> None:
    import jax

    from mechgap.compiler.sizes import all_largest
    from mechgap.report.progress import Shown
    from mechgap.report.zoo import show_largest
    from mechgap.typed import plain

    jax.config.update("jax_enable_x64", dtype == "float64")
    with Shown("compiling") as progress:
        found = all_largest(hidden_size, dtype, progress.tell)
    if as_json:
        print(json.dumps([plain(each) for each in found], indent=1))
    else:
        show_largest(found)
