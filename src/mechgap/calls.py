"""What the command line does, one call each, with typed results: `train`, `measure`, `compile`,
`decompile`.

(`gap` is in `experiments`, `verify` in `compiler`.) `progress` is called with what is being done,
how much of it is done, and of how much. A program file (``file.py:name``) is Python code that is
run: use only files that you trust.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from mechgap.compiler.compile import Compiled
from mechgap.compiler.sizes import compile_for
from mechgap.compiler.target import get_target
from mechgap.decompiler.decompile import Decompiled
from mechgap.decompiler.decompile import decompile as decompile_network
from mechgap.decompiler.graphs import Graphs, graphs_for
from mechgap.decompiler.population import DecompiledRun, decompile_run
from mechgap.errors import InvalidInput
from mechgap.experiments.gap import measured_run
from mechgap.experiments.training import train_recipe
from mechgap.measures.at_sizes import AtSizes
from mechgap.measures.at_sizes import measure_sizes as sizes_of_run
from mechgap.measures.counterexamples import SearchedRun
from mechgap.measures.counterexamples import counterexamples as search_run
from mechgap.measures.elsewhere import other_graphs, own_graphs
from mechgap.measures.external import Margins
from mechgap.measures.results import Results
from mechgap.measures.run import check_interchange, measure_interchange, measure_run
from mechgap.measures.workers import make_workers
from mechgap.network.network import Network
from mechgap.programs.library import mechanisms
from mechgap.programs.load import find_program
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.official import SAMPLES
from mechgap.tasks.specs import get_task
from mechgap.training.presets import make_recipe
from mechgap.training.run import Run
from mechgap.training.train import OnProgress, Watcher, watching


def train(
    task: str | Program,
    out: Path | str,
    *,
    seeds: int | Sequence[int] = 1,
    preset: str = "default",
    config: Path | None = None,
    snapshots: Sequence[int] | str = "auto",
    progress: OnProgress | Watcher | None = None,
    **hyperparameters: Any,
) -> Run:
    """Train a population of networks; the same call resumes where it was stopped.

    Args:
        task: A task, a program (itself or by its name in the library), or ``file.py:name``.
        out: The run folder.
        seeds: How many, or which.
        preset: The paper's variants; see `training.presets.PRESETS`.
        config: A TOML file with hyperparameters.
        snapshots: Steps at which networks are measured; `auto` or `none`.
        progress: Is told how it goes.
        hyperparameters: Fields of `training.recipe.Recipe`, such as ``train_steps=2000``.

    Raises:
        InvalidInput: what is asked for cannot be, or the folder holds another run.
    """
    recipe = make_recipe(task, preset, config, hyperparameters)
    wanted = range(seeds) if isinstance(seeds, int) else seeds
    return train_recipe(recipe, wanted, Path(out), snapshots=snapshots, watcher=watching(progress))


def measure(
    run: Run | Path | str,
    which: str = "best",
    *,
    graphs: str | None = None,
    nodes: int | None = None,
    graphs_from: Sequence[Path | str] = (),
    count: int | None = None,
    margins: Margins | None = None,
    causal: bool = False,
    dimensions: Sequence[int] | None = None,
    engine: str = "local",
    ray_address: str | None = None,
    progress: OnProgress | Watcher | None = None,
) -> Results:
    """Measure a run's finished seeds, and write what was found into its folder.

    Args:
        run: The run, or its folder.
        which: `best` (by validation) or `last` parameters.
        graphs: A kind of graph in place of the test set, such as `tree` or ``tree+grid``.
        nodes: With `graphs`: how many nodes, 64 if not given.
        graphs_from: Files of graphs in place of the test set.
        count: How many graphs, 32 if not given; of files that hold several, all. A single graph is
            searched from so many sources.
        margins: How far a hint may be off.
        causal: Whether to count by interchange interventions, too, how far networks compute what
            their mechanisms compute: minutes a seed. A run that is measured is not measured again
            for it.
        dimensions: With `causal`: how many directions may carry a variable, to choose from.
        engine: `local`, or `ray` for the networks to be spread over a cluster.
        ray_address: An existing Ray cluster; one of this machine if not given.
        progress: Is told how it goes.

    Raises:
        InvalidInput: there is nothing to measure, or the graphs cannot be.
    """
    if graphs is not None and graphs_from:
        raise InvalidInput("give graphs or graphs_from, not both")
    if nodes is not None and graphs is None:
        raise InvalidInput("nodes is the size of other graphs. Say which, such as graphs='tree'")
    if count is not None and graphs is None and not graphs_from:
        raise InvalidInput("count is of other graphs. Say which, such as graphs='tree'")
    if causal and (graphs is not None or graphs_from):
        raise InvalidInput("causal draws its own graphs: give no others with it")
    if dimensions is not None and not causal:
        raise InvalidInput("dimensions are of causal measures. Ask for these, too")
    found = run if isinstance(run, Run) else Run.open(run)
    elsewhere = None
    if graphs is not None:
        given = {"nodes": nodes, "count": count}
        chosen = {name: value for name, value in given.items() if value is not None}
        elsewhere = other_graphs(found.recipe, graphs, **chosen)
    elif graphs_from:
        elsewhere = own_graphs(found.recipe, [Path(file) for file in graphs_from], count=count)
    on_progress, workers = watching(progress).tell, make_workers(engine, ray_address)
    if causal:
        check_interchange(found.recipe, dimensions)
        measured_run(found.folder, on_progress, which=which, workers=workers)
        return measure_interchange(
            found.folder, which, dimensions=dimensions, workers=workers, on_progress=on_progress
        )
    return measure_run(
        found.folder,
        which,
        elsewhere=elsewhere,
        margins=margins,
        workers=workers,
        on_progress=on_progress,
    )


def measure_sizes(
    run: Run | Path | str,
    kinds: Sequence[str],
    sizes: Sequence[int],
    *,
    which: str = "best",
    count: int | None = None,
    lists: bool = False,
    engine: str = "local",
    ray_address: str | None = None,
    progress: OnProgress | Watcher | None = None,
) -> AtSizes:
    """Look at a run's networks, uniform attention, an untrained and a compiled network on graphs of
    several kinds and sizes, and write what was seen into its folder.

    Args:
        run: The run, or its folder.
        kinds: Kinds of graphs, such as ``["er-sparse", "ws", "delaunay"]``.
        sizes: Numbers of nodes; large graphs are run as lists of edges.
        which: `best` (by validation) or `last` parameters.
        count: How many graphs of each kind and size, 32 if not given.
        lists: Whether graphs that are not large run as lists of edges, too.
        engine: `local`, or `ray` for the looks to be spread over a cluster.
        ray_address: An existing Ray cluster; one of this machine if not given.
        progress: Is told how it goes.

    Raises:
        InvalidInput: there is nothing to measure, or no such graphs.
    """
    folder = run.folder if isinstance(run, Run) else Path(run)
    return sizes_of_run(
        folder,
        kinds,
        sizes,
        which=which,
        count=SAMPLES if count is None else count,
        lists=lists,
        workers=make_workers(engine, ray_address),
        on_progress=watching(progress).tell,
    )


def counterexamples(
    run: Run | Path | str,
    which: str = "best",
    *,
    max_nodes: int | None = None,
    progress: OnProgress | Watcher | None = None,
) -> SearchedRun:
    """Find the smallest graph on which each network of a run is wrong, and write it there.

    Args:
        run: The run, or its folder.
        which: `best` (by validation) or `last` parameters.
        max_nodes: Up to this size all graphs are tried.
        progress: Is told how it goes.

    Raises:
        InvalidInput: there are too many graphs of that size, or no networks to try them on.
    """
    found = run if isinstance(run, Run) else Run.open(run)
    return search_run(found, which, max_nodes, on_progress=watching(progress).tell)


def compile(
    program: Program | str,
    target: str = "general",
    nodes: int = 64,
    *,
    hidden_size: int = 128,
    dtype: str = "float32",
    simplify_decoders: bool = False,
) -> Compiled:
    """Compile a program into the parameters of a network, with a certificate.

    Args:
        program: A program, its name in the library, or ``file.py:name``.
        target: An architecture: paper, general, stock, stock-ln or full.
        nodes: The largest number of nodes. Where many cannot be certified with any positions that
            are as far apart as i / nodes, they are to be on a grid (`Domain.large`).
        hidden_size: Hidden units of the network.
        dtype: float32, or float64, for which JAX's 64-bit mode must be on.
        simplify_decoders: The paper's pointer decoder.

    Raises:
        InvalidInput: the program does not fit into that architecture; all reasons are named.
    """
    found = find_program(program) if isinstance(program, str) else program
    return compile_for(
        found,
        get_target(target),
        nodes,
        hidden_size=hidden_size,
        dtype=dtype,
        simplify_decoders=simplify_decoders,
    )


@overload
def decompile(
    what: Network,
    graphs: Graphs | None = None,
    *,
    program: Program | str | None = None,
) -> Decompiled: ...


@overload
def decompile(
    what: Run | Path | str,
    *,
    which: str = "best",
    seeds: Sequence[int] | None = None,
    progress: OnProgress | Watcher | None = None,
) -> DecompiledRun: ...


def decompile(
    what: Network | Run | Path | str,
    graphs: Graphs | None = None,
    *,
    program: Program | str | None = None,
    which: str = "best",
    seeds: Sequence[int] | None = None,
    progress: OnProgress | Watcher | None = None,
) -> Decompiled | DecompiledRun:
    """What does a network run? A program of the language, how far it holds, and the proof.

    Args:
        what: A network; or a run, whose finished seeds are decompiled and the result written into
            its folder, seed by seed. What stands there already is not found again.
        graphs: Of a network: what to find, check and test the program on; new graphs if not given.
        program: Of a network whose task is none of CLRS's: the program that traces it.
        which: Of a run: `best` (by validation) or `last` parameters.
        seeds: Of a run: some of its seeds, which are decompiled anew.
        progress: Is told how it goes.

    Raises:
        InvalidInput: there is nothing to decompile, or its task's trace says nothing about nodes.
    """
    if not isinstance(what, Network):
        run = what if isinstance(what, Run) else Run.open(what)
        return decompile_run(run, which, seeds, watching(progress).tell)
    own = find_program(program) if isinstance(program, str) else program
    task = get_task(what.task.name) if own is None else posed(own)
    known = mechanisms(task) if own is None else (own, *(p for p in mechanisms(task) if p != own))
    return decompile_network(what, graphs_for(task) if graphs is None else graphs, known)
