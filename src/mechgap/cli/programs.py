"""`mechgap programs`, `compile`, `verify` and `show`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechgap.cli.app import AsJson, app, check_seed
from mechgap.errors import InvalidInput, unknown
from mechgap.tasks.kinds import ER, KINDS, MATRICES_UP_TO, kinds_of

if TYPE_CHECKING:
    from mechgap.compiler.compile import Compiled

_PROGRAM = typer.Argument(
    help="A program of the library (see `mechgap programs`), or FILE.py:NAME. A program file "
    "is Python code that is run: use only files that you trust."
)
ProgramName = Annotated[str, _PROGRAM]
TargetName = Annotated[str, typer.Option(help="paper, general, stock, stock-ln or full.")]
HiddenSize = Annotated[int, typer.Option(help="Hidden units of the network.")]
DType = Annotated[str, typer.Option(help="float32 or float64.")]


@app.command()
def programs(
    name: Annotated[str | None, typer.Argument(help="Print this program's text.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the programs of the library, or print one."""
    from mechgap.programs.library import LIBRARY
    from mechgap.programs.load import find_program

    if name is not None:
        print(find_program(name), end="")
        return
    if as_json:
        print(json.dumps({program.name: str(program) for program in LIBRARY.values()}, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("program", "select", "mask", "state", "on", box=None, padding=(0, 2, 0, 0))
    for program in LIBRARY.values():
        state = ", ".join(component.name for component in program.hidden)
        name, task = program.name, program.task
        for phase in program.phases:
            table.add_row(
                name, str(phase.select), "-" if phase.mask is None else str(phase.mask), state, task
            )
            name = state = task = ""
    Console(highlight=False).print(table)


def _compiled(program: str, target: str, nodes: int, hidden_size: int, dtype: str, simple: bool):
    """Compile as the command line asks for."""
    import jax

    from mechgap import calls

    jax.config.update("jax_enable_x64", dtype == "float64")
    return calls.compile(program, target, nodes, hidden_size=hidden_size, dtype=dtype,
                         simplify_decoders=simple)  # fmt: skip


def _smallest(program: str, target: str | None, nodes: int, hidden_size: int | None):
    """Compile for what was asked for, or for the smallest of some sizes that will do."""
    from mechgap.programs.load import find_program

    chosen = target or ("full" if find_program(program).sees_all else "paper")
    sizes = (4, 8, 16, 32, 64, 128) if hidden_size is None else (hidden_size,)
    for size in sizes[:-1]:
        try:
            return _compiled(program, chosen, nodes, size, "float32", False)
        except InvalidInput:
            continue
    return _compiled(program, chosen, nodes, sizes[-1], "float32", False)


@app.command("compile")
def compile_command(
    program: Annotated[str | None, _PROGRAM] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every program in every target that takes it.")
    ] = False,
    target: TargetName = "general",
    hidden_size: HiddenSize = 128,
    nodes: Annotated[int, typer.Option(help="The largest number of nodes.")] = 64,
    dtype: DType = "float32",
    simplify_decoders: Annotated[
        bool, typer.Option("--simplify-decoders", help="The paper's pointer decoder.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the network to this file; with --all, this folder.")
    ] = None,
    file_format: Annotated[
        str, typer.Option("--format", help="mechgap, or dm-clrs for Haiku's names.")
    ] = "mechgap",
    as_json: AsJson = False,
) -> None:
    """Compile a program into the parameters of a network, with a certificate."""
    if file_format not in {"mechgap", "dm-clrs"}:
        raise unknown("format", file_format, ["mechgap", "dm-clrs"])
    if (program is not None) == everything:
        raise InvalidInput("give a program, or --all for every one; not both")
    if program is None:
        if (target, dtype, file_format) != ("general", "float32", "mechgap") or simplify_decoders:
            raise InvalidInput(
                "--all writes every target, in float32 and mechgap's format: leave out --target, "
                "--dtype, --format and --simplify-decoders, or compile one program"
            )
        _compile_all(out, nodes, hidden_size, as_json)
        return
    compiled = _compiled(program, target, nodes, hidden_size, dtype, simplify_decoders)
    from mechgap.compiler.files import about, save_compiled, save_for_dm_clrs

    if out is not None:
        (save_compiled if file_format == "mechgap" else save_for_dm_clrs)(compiled, out)
    if as_json:
        print(json.dumps({**about(compiled), "parameters": compiled.network.parameters}))
        return
    from mechgap.report.compiled import compiled_view, show

    show(compiled_view(compiled))
    if out is not None:
        print(f"\nwritten: {out}")


def _compile_all(folder: Path | None, nodes: int, hidden_size: int, as_json: bool) -> None:
    """Write every program in every target, and say which were refused."""
    if folder is None:
        raise InvalidInput("--all writes many files: give their folder with --out")
    from mechgap.compiler.zoo import save_all

    with_reasons = save_all(folder, nodes, hidden_size)
    if as_json:
        files = {s.file_name: s.refused for s in with_reasons}
        print(json.dumps({"folder": str(folder), "refused": {k: v for k, v in files.items() if v},
                          "written": [k for k, v in files.items() if not v]}))  # fmt: skip
        return
    for specimen in with_reasons:
        done = "refused, mechgap zoo says why" if specimen.refused else "written"
        print(f"{folder / specimen.file_name}: {done}")


@app.command("verify")
def verify_command(
    program: ProgramName,
    target: TargetName = "general",
    hidden_size: HiddenSize = 128,
    nodes: Annotated[int | None, typer.Option(help="Nodes of each graph; 64 if not given.")] = None,
    graphs: Annotated[
        int | None,
        typer.Option(help=f"How many graphs. [256; 4 of more than {MATRICES_UP_TO} nodes]"),
    ] = None,
    kind: Annotated[
        str, typer.Option(help=f"What graphs: {', '.join(KINDS)}, or several, tree+grid.")
    ] = ER,
    seed: Annotated[int, typer.Option(help="Same seed, same graphs.")] = 0,
    official: Annotated[
        str | None,
        typer.Option(help="test or validation: CLRS-30's own graphs instead of new ones."),
    ] = None,
    exhaustive: Annotated[
        int | None,
        typer.Option(
            help="Every graph of up to so many nodes, from every source, in place of new ones."
        ),
    ] = None,
    dtype: DType = "float32",
    simplify_decoders: Annotated[
        bool, typer.Option("--simplify-decoders", help="The paper's pointer decoder.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare interpreter, compiled network and CLRS's trace.

    Exit code 0 only if all agree on every graph inside the certificate, and some are inside.
    """
    if graphs is not None and graphs < 1:
        raise InvalidInput(f"graphs must be at least 1; got {graphs}")
    kinds_of(kind)
    from mechgap.tasks.official import NODES, get_split

    split = get_split(official) if official is not None else None
    size = NODES[split] if split else 64 if nodes is None else nodes
    if nodes not in (None, size):
        raise InvalidInput(f"the official {official} graphs have {size} nodes; got --nodes {nodes}")
    check_seed(seed)
    if exhaustive is not None:
        if official is not None or nodes is not None or kind != ER:
            raise InvalidInput(
                "--exhaustive is in place of --official, --nodes and --kind: give it alone"
            )
        _verify_every_graph(
            lambda n: _compiled(program, target, n, hidden_size, dtype, simplify_decoders),
            exhaustive,
            as_json,
        )
        return
    compiled = _compiled(program, target, size, hidden_size, dtype, simplify_decoders)
    from mechgap.compiler.verify import fresh_graphs, posed_batch, verify
    from mechgap.report.progress import Shown
    from mechgap.tasks.official import official as official_set

    if split is not None and kind != ER:
        raise InvalidInput(f"--kind is for new graphs: the official {official} ones are CLRS's own")
    if split is not None:
        batch = posed_batch(compiled.program, official_set(compiled.program.task, split))
    else:
        count = graphs or (256 if size <= MATRICES_UP_TO else 4)
        grid = compiled.certificate.domain.position_grid
        batch = fresh_graphs(compiled.program, size, count, seed, kind, grid)
    with Shown("verifying") as progress:
        found = verify(compiled, batch, on_progress=progress.tell)
    if as_json:
        print(json.dumps(found.to_json()))
    else:
        from mechgap.report.compiled import show, verification_view

        show(verification_view(compiled, found))
    raise typer.Exit(0 if found.exact else 1)


def _verify_every_graph(
    compiled_for: Callable[[int], "Compiled"], most: int, as_json: bool
) -> None:
    """Tell of each size as soon as it is done."""
    from mechgap.compiler.exhaustive import exhaustive
    from mechgap.typed import plain

    if most < 1:
        raise InvalidInput(f"exhaustive must be at least 1 node; got {most}")
    found = []
    for each in exhaustive(compiled_for, most):
        found.append(each)
        if not as_json:
            print(each.sentence, flush=True)
    if as_json:
        print(json.dumps([plain(each) for each in found]))
    raise typer.Exit(0 if all(each.exact for each in found) else 1)


@app.command("show")
def show_command(
    program: ProgramName,
    out: Annotated[Path, typer.Option(help="The figure's file: .png, .pdf or .svg.")],
    target: Annotated[
        str | None, typer.Option(help="What to compile for; paper, or full, if not given.")
    ] = None,
    hidden_size: Annotated[
        int | None, typer.Option(help="Hidden units; about as many as it needs if not given.")
    ] = None,
    nodes: Annotated[int, typer.Option(help="Nodes of the graph that is run.")] = 6,
    seed: Annotated[int, typer.Option(help="Same seed, same graph.")] = 0,
) -> None:
    """Draw a compiled program: its parameters, and a run on a small graph, step by step."""
    from mechgap.report.style import check_figure_path, save_figure

    check_figure_path(out)
    check_seed(seed)
    compiled = _smallest(program, target, nodes, hidden_size)
    from mechgap.compiler.verify import fresh_graphs
    from mechgap.report.parameters import auxiliary_figure, main_figure
    from mechgap.report.run_figure import longest, run_figure

    batch = fresh_graphs(compiled.program, nodes, 64, seed)
    figures = {
        out: main_figure(compiled),
        out.with_stem(f"{out.stem}-auxiliary"): auxiliary_figure(compiled),
        out.with_stem(f"{out.stem}-run"): run_figure(compiled, batch, longest(batch)),
    }
    for path, figure in figures.items():
        save_figure(figure, path)
        print(f"written: {path}")
