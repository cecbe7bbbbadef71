"""The tables of docs/teaching.md, and what README says of it."""

from statistics import mean
from typing import Any

from shown import markdown, percent, population, replication, results


def taught() -> str:
    """How far depth-first search is learned: on the official test graphs and on new ones."""
    shown = {
        "the paper's recipe": "dfs",
        "windows, hints alone": "dfs_windows_long",
        "windows, taught attention and signals": "dfs_windows_taught_long",
        "fewer steps: hints alone": "dfs_windows",
        "fewer steps: attention": "dfs_windows_attention",
        "fewer steps: attention and signals": "dfs_windows_taught",
        "the same, by `dfs`": "dfs_windows_taught_dfs",
        "the same, with Adam": "dfs_windows_taught_adam",
        "the same, on dense graphs alone": "dfs_windows_taught_er",
        "the same, without the worst node": "dfs_windows_taught_means",
        "the same, for the first 2,000 steps": "dfs_windows_taught_until_2000",
        "the same, for the first 4,000 steps": "dfs_windows_taught_until_4000",
        "the same, from step 4,000": "dfs_windows_taught_from_4000",
        "the same, forcing falls to 0": "dfs_windows_taught_annealed",
        "the same, noise on what is carried": "dfs_windows_taught_noise",
        "the same, attention of active nodes alone": "dfs_windows_taught_active",
        "the same, `v` counts": "dfs_windows_taught_with_v",
        "the same, `d` and `f` do not": "dfs_windows_taught_without_d_f",
        "the same, hidden size 128": "dfs_windows_taught_wide",
    }
    sets = [f"{kind}-{nodes}" for kind in ("er", "er-sparse") for nodes in (16, 32, 64)]
    rows = [
        "| output accuracy (graph accuracy) | official test | "
        f"{' | '.join(sets)} | seeds × steps |",
        "|---" * (3 + len(sets)) + "|",
    ]
    for label, name in shown.items():
        if (kept := population(name)) is None:
            continue
        cells = [percent(kept["accuracy"])]
        for each in sets:
            seen = kept.get("elsewhere", {}).get(each, {}).values()
            outputs, graphs = (
                percent([s[key] for s in seen]) for key in ("accuracy", "graph_accuracy")
            )
            cells.append(f"{outputs} ({graphs})" if seen else "-")
        size = f"{len(kept['seed'])} × {kept['recipe']['train_steps']:,}"
        rows.append(f"| {label} | {' | '.join(cells)} | {size} |")
    return "\n".join(rows) + "\n"


def in_equal_time() -> str:
    """How far depth-first search comes in dm-clrs and here, in equal CPU time."""
    found = results("teaching")
    sets = [name for name in next(iter(found["sides"].values())) if name.startswith("er")]
    rows = [
        f"| {found['cpu_seconds']:.0f} s of one core | compiling before | steps | steps per second"
        f" | {' | '.join(sets)} |",
        "|---" * (4 + len(sets)) + "|",
    ]
    for side, told in found["sides"].items():
        rate = told["steps"] / told["seconds"]
        cells = [f"{told['compiling']:.0f} s", f"{told['steps']:,}", f"{rate:.1f}"]
        cells += [f"{100 * told[name]:.1f} %" for name in sets]
        rows.append(f"| {side} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def taught_dfs() -> str:
    """What teaching did to depth-first search, in a sentence."""

    best, alone = (
        (population(name) or {})["accuracy"]
        for name in ("dfs_windows_taught_long", "dfs_windows_long")
    )
    return (
        "Taught its program's attention and state on graphs of at most 32 nodes, the same network "
        f"learns depth-first search: {percent(best)} of the official test graphs' outputs "
        f"({100 * max(best):.2f} % in the best of {len(best)} seeds; trained in the same way by "
        f"hints alone {percent(alone)}, {len(alone)} seeds; paper 12.74 %). "
        "See [teaching](docs/teaching.md).\n"
    )


def taught_bellman_ford() -> str:
    """What teaching did to Bellman-Ford, in a few sentences."""

    name = "bellman_ford"
    alone = population("bellman_ford_edge_info_mixed") or {}
    found = population("bellman_ford_supervised_edge_info") or {}
    seeds = found["measures"]["seeds"]
    forced = [row["causal"]["mechanisms"][name]["exact"] for row in seeds]
    return (
        f"Bellman-Ford with edge information, taught whom to attend to ({len(seeds)} seeds, "
        f"{found['recipe']['train_steps']:,} steps), has {percent(found['accuracy'])} of outputs; "
        f"with edge information alone it has {percent(alone['accuracy'])} "
        f"({len(alone['accuracy'])} seeds). Its attention is the program's in "
        f"{percent([row['gaps'][name]['agreement'] for row in seeds])} of updated nodes, where "
        f"{percent([row['gaps'][name]['misplaced'] for row in seeds])} of attention is misplaced. "
        f"Made to attend exactly, the same networks have {percent(forced)}.\n"
    )


def on_larger_graphs() -> str:
    """What is looked at on graphs of 160 nodes: of tasks and objectives, those that were."""
    table = replication("teaching")
    columns = ["accuracy (%)", "graph accuracy (%)", "top-1 agreement (%)"]
    columns += [column for column in table.head if "160 nodes" in column] + ["seeds"]
    places = [table.head.index(column) for column in columns]
    larger = [place for place in places if "160 nodes" in table.head[place]]
    rows = [
        [row[0], *(row[place] for place in places)]
        for row in table.rows
        if any(row[place] != "-" for place in larger)
    ]
    return markdown(["", *columns], rows)


def from_own_state() -> str:
    """Agreement beside the program's run and from the network's own state, where it is known."""
    table = replication("from_own_state")
    return markdown(table.head, [row for row in table.rows if row[-1] != "0"])


def queue_order() -> str:
    """Whom learned networks take out of the queue."""
    labels = {"windows": "hints alone", "windows_attention": "taught attention",
              "windows_taught": "taught attention and signals"}  # fmt: skip
    head = ("64 nodes", "graphs", "all look at the smallest", "it looks at itself",
            "else: place in the queue", "of", "farther by", "the second is by", "nodes taken",
            "order (τ)", "outputs", "seeds")  # fmt: skip
    rows = []
    for task in ("dijkstra", "mst_prim"):
        for suffix, label in labels.items():
            seen = results("queue_order")["runs"].get(f"{task}_{suffix}", [])
            for kind in ("er-64", "er-sparse-64"):
                of_kind = [each for each in seen if each["graphs"] == kind]
                if of_kind:
                    rows.append([f"{task}, {label}", kind, *_queue_cells(of_kind)])
    return markdown(head, rows)


def _queue_cells(seeds: list[dict[str, Any]]) -> list[str]:
    def of(name: str) -> float:
        return mean(each[name] for each in seeds)

    return [
        *(percent([each[name] for each in seeds]) for name in ("right", "smallest_right")),
        f"{of('rank') + 1:.1f}",
        f"{of('waiting'):.0f}",
        *(f"{of(name):.3f}" for name in ("farther", "usual")),
        percent([each["taken"] for each in seeds]),
        f"{of('tau'):.2f}",
        percent([each["outputs"] for each in seeds]),
        str(len(seeds)),
    ]
