"""`mechgap measure` and `mechgap import`: a run's gap; networks trained elsewhere."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, RayAddress, app, whole_numbers
from mechgap.cli.watching import watched
from mechgap.errors import InvalidInput
from mechgap.tasks.kinds import KINDS, MATRICES_UP_TO


@app.command()
def measure(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    which: Annotated[
        str, typer.Option(help="Checkpoint: best (by validation), or last, the final one.")
    ] = "best",
    graphs: Annotated[
        str | None,
        typer.Option(
            help=f"Measure on other graphs than the test set: {', '.join(KINDS)}, or a mixture, "
            "tree+grid. Several, with commas between them: one after the other, see --nodes."
        ),
    ] = None,
    graphs_from: Annotated[
        list[Path] | None,
        typer.Option(
            help="Measure on the graphs of a file (.graphml, .gml, .edgelist, .txt, .csv, .npz); "
            "may be given several times."
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="With --graphs: how many nodes. [64] Several, 16,64,160,800,1600, or more than "
            f"{MATRICES_UP_TO}: what size does to outputs, whole graphs and attention."
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            help="How many graphs; of a file with one graph, from how many sources it is searched. "
            "[32]"
        ),
    ] = None,
    scalar_margin: Annotated[float, typer.Option(help="How far a scalar hint may be off.")] = 0.5,
    binary_margin: Annotated[
        float, typer.Option(help="How far the probability of a mask may be off.")
    ] = 0.1,
    causal: Annotated[
        bool,
        typer.Option(
            "--causal",
            help="Also interchange the mechanisms' variables between runs: does the network "
            "compute what they compute? Minutes a seed; the same command resumes from there.",
        ),
    ] = False,
    dimensions: Annotated[
        str | None,
        typer.Option(
            help="With --causal: how many directions of the hidden state may carry a variable, to "
            "choose from. [1,2,4,8,16,32]"
        ),
    ] = None,
    lists: Annotated[
        bool,
        typer.Option(
            "--lists",
            help="With --graphs: run them as lists of edges, as large graphs are, with predicted "
            "pointers as decisions.",
        ),
    ] = False,
    engine: Annotated[
        str, typer.Option(help="local, or ray (extra `ray`): networks are spread over a cluster.")
    ] = "local",
    ray_address: RayAddress = None,
    as_json: AsJson = False,
) -> None:
    """Measure a population's mechanistic gap, inside and outside; write it into the run.

    On other graphs than the test set: write it into RUN/elsewhere. On several kinds or sizes: fewer
    numbers of each, beside uniform attention, an untrained and a compiled network, into
    RUN/sizes.json.
    """
    sizes = [] if nodes is None else whole_numbers("nodes", nodes)
    kinds = [] if graphs is None else [kind.strip() for kind in graphs.split(",")]
    if lists and not kinds:
        raise InvalidInput("--lists needs kinds of graphs: --graphs er-sparse,ws")
    if lists or len(kinds) > 1 or len(sizes) > 1 or any(size > MATRICES_UP_TO for size in sizes):
        if causal or graphs_from or not kinds:
            raise InvalidInput(
                "several kinds or sizes of graphs are measured alone: give --graphs, --nodes, "
                "--count, --lists and --which"
            )
        from mechgap import calls
        from mechgap.report.sizes import show_sizes

        with watched(folder) as watcher:
            found = calls.measure_sizes(
                folder,
                kinds,
                sizes or [64],
                which=which,
                count=count,
                lists=lists,
                engine=engine,
                ray_address=ray_address,
                progress=watcher,
            )
        if as_json:
            print(json.dumps(found.to_json()))
        else:
            show_sizes(found)
        return
    from mechgap import calls
    from mechgap.measures.external import Margins
    from mechgap.report.failing import show_failing
    from mechgap.report.interchange import show_interchange
    from mechgap.report.measures import show_measures

    with watched(folder) as watcher:
        results = calls.measure(
            folder,
            which,
            graphs=graphs,
            nodes=sizes[0] if sizes else None,
            graphs_from=graphs_from or (),
            count=count,
            margins=Margins(scalar=scalar_margin, binary=binary_margin),
            causal=causal,
            dimensions=None if dimensions is None else whole_numbers("dimensions", dimensions),
            engine=engine,
            ray_address=ray_address,
            progress=watcher,
        )
    if as_json:
        print(json.dumps(results.to_json()))
    else:
        show_measures(results, results.folder(folder))
        show_failing(results)
        show_interchange(results)


@app.command("import")
def import_run(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Safetensors with Haiku's names, one a seed; or a folder of `mechgap runs hub`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The run folder to make.")],
    task: Annotated[
        str | None, typer.Option(help="The task that they were trained for; a folder says it.")
    ] = None,
    nb_msg_passing_steps: Annotated[
        int, typer.Option(help="Message-passing steps per hint, which files do not tell.")
    ] = 1,
    processor_type: Annotated[
        str, typer.Option(help="gatv2 or gatv2_full, which files do not tell.")
    ] = "gatv2",
) -> None:
    """Make a run of dm-clrs parameters, or of a hub's folder, to be measured like any other."""
    if len(files) == 1 and files[0].is_dir():
        from mechgap.experiments.hub import read_hub_folder

        count = read_hub_folder(files[0], out)
    elif task is None:
        raise InvalidInput("parameters do not say for which task they were trained: say --task")
    else:
        from mechgap.training.exchange import import_networks

        count = import_networks(files, task, out, nb_msg_passing_steps, processor_type)
    print(f"written: {out} ({count} seeds). Next: mechgap measure {out}")
