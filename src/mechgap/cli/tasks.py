"""`mechgap tasks` and `mechgap sample`."""

import json
from typing import Annotated

import typer

from mechgap.cli.app import AsJson, TaskArgument, app, check_seed
from mechgap.tasks.kinds import ER, KINDS, kinds_of


@app.command()
def tasks(as_json: AsJson = False) -> None:
    """List the tasks with their inputs, hints and outputs."""
    from mechgap.tasks.specs import TASKS

    if as_json:
        listed = {
            task.name: {
                "summary": task.summary,
                "directed": task.directed,
                "acyclic": task.acyclic,
                "weighted": task.weighted,
                "in_dm_clrs": task.in_dm_clrs,
                "features": [
                    {
                        "name": f.name,
                        "stage": f.stage.value,
                        "location": f.location.value,
                        "type": f.type.value,
                    }
                    for f in task.features
                ],
            }
            for task in TASKS.values()
        }
        print(json.dumps(listed, indent=2))
        return
    from rich.console import Console
    from rich.table import Column, Table

    columns = (Column("task", no_wrap=True), "what it is", "graphs", "hints", "output")
    table = Table(*columns, box=None, padding=(0, 2, 0, 0))
    for task in TASKS.values():
        kinds = {
            "directed": task.directed,
            "undirected": not task.directed,
            "acyclic": task.acyclic,
            "weighted": task.weighted,
        }
        graphs = ", ".join(kind for kind, is_so in kinds.items() if is_so)
        hints = ", ".join(f.name for f in task.hints)
        outputs = ", ".join(f.name for f in task.outputs)
        table.add_row(task.name, task.summary, graphs, hints, outputs)
    Console(highlight=False).print(table)


@app.command()
def sample(
    task: TaskArgument,
    nodes: Annotated[int, typer.Option(help="How many nodes.")] = 8,
    seed: Annotated[int, typer.Option(help="Same seed, same graph.")] = 0,
    p: Annotated[
        float,
        typer.Option(
            help="CLRS's edge parameter: an edge has probability p² in undirected tasks, "
            "p in directed ones (acyclic: p along an order of the nodes); a self-loop p."
        ),
    ] = 0.5,
    random_pos: Annotated[
        bool, typer.Option("--random-pos", help="Random node positions, as in training.")
    ] = False,
    graphs: Annotated[
        str,
        typer.Option(help=f"Kind of graph: {', '.join(KINDS)}; or one of several, tree+grid."),
    ] = ER,
    as_json: AsJson = False,
) -> None:
    """Draw one graph and print it with its trace."""
    from mechgap.programs.load import find_task
    from mechgap.tasks.sampling import check_nodes, check_probability

    posed, _ = find_task(task)
    check_nodes(nodes)
    check_probability(p)
    check_seed(seed)
    kinds_of(graphs)

    import jax

    from mechgap.report.trace_table import print_trace, trace_data
    from mechgap.tasks.sampling import sample as draw

    batch = draw(
        posed,
        jax.random.key(seed),
        batch_size=1,
        nodes=nodes,
        p=(p,),
        random_pos=random_pos,
        graphs=graphs,
    ).trim()
    if as_json:
        print(json.dumps({**trace_data(batch), "seed": seed, "p": p, "graphs": graphs}))
    else:
        print_trace(batch)
