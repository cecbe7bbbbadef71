"""Compiled programs at a size where networks that were trained on 16 nodes are said to fail.

    python benchmarks/at_size.py [--nodes 1600] [--only dfs dijkstra]

Each program on graphs as SALSA-CLRS has them (Erdős–Rényi with p between log n / n and 3 log n / n,
Watts–Strogatz, Delaunay), with every hint of every step beside the interpreter's and CLRS's trace.
What is known already is kept; a stopped run goes on.
"""

import argparse
import time
from typing import Any

from measuring import earlier, save
from mechgap.compiler.sizes import compile_for
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs, verify
from mechgap.programs.library import LIBRARY

PROGRAMS = {
    "bfs": ("stock", 32),
    "bellman_ford": ("general", 32),
    "dfs": ("stock", 2),
    "dijkstra": ("full", 2),
    "mst_prim": ("full", 2),
}
"""The target, and how many graphs of each kind."""
KINDS = ("er-sparse", "ws", "delaunay")
SEED = 26


def at_size(name: str, nodes: int, kind: str) -> dict[str, Any]:
    """One program on graphs of one kind."""
    program, (target, graphs) = LIBRARY[name], PROGRAMS[name]
    compiled = compile_for(program, TARGETS[target], nodes)
    batch = fresh_graphs(
        program, nodes, graphs, SEED, kind, compiled.certificate.domain.position_grid
    )
    began = time.perf_counter()
    found = verify(compiled, batch)
    return {
        "program": name, "target": target, "graphs": kind, "nodes": nodes, "count": graphs,
        "longest": int(batch.lengths.max()) - 1, "accuracy": min(found.outputs.values()),
        "graph_accuracy": found.whole, "hints": min(found.hints.values()),
        "inside": found.inside_certificate, "missed_inside": found.missed_graphs_inside,
        "missed_outside": found.missed_graphs_outside, "exact": found.exact,
        "outside": dict(found.outside_reasons), "seconds_a_graph":
        (time.perf_counter() - began) / graphs,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1600)
    parser.add_argument("--only", nargs="*", choices=PROGRAMS, default=[])
    asked = parser.parse_args()
    rows = [
        row
        for row in earlier("at_size").get("rows", [])
        if not (row["program"] in asked.only and row["nodes"] == asked.nodes)
    ]
    known = {(row["program"], row["graphs"], row["nodes"]) for row in rows}
    for name in PROGRAMS:
        for kind in KINDS:
            if (name, kind, asked.nodes) not in known:
                rows.append(at_size(name, asked.nodes, kind))
                print(rows[-1], flush=True)
                save("at_size", {"seed": SEED, "rows": rows})


if __name__ == "__main__":
    main()
