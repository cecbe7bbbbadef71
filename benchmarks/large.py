"""Large graphs: the network on lists of edges beside itself on matrices, PyTorch Geometric's layer
of the same width, and SciPy's algorithms without any network.

    pip install torch torch_geometric     # the peer; builds for CPUs will do
    python benchmarks/large.py

Parts: `forward`, compiled breadth-first search and Bellman-Ford on graphs of 1,600 nodes, as
SALSA-CLRS has them, on matrices, on lists, and as many of PyTorch Geometric's `GATv2Conv` (only the
layer: no encoders, decoders or hints). `edges`, graphs of 10⁴ to 10⁶ edges, each in a process of
its own, breadth-first search and reachability to the end and beside `scipy.sparse.csgraph`.
`largest`, for how large graphs each program is certified, in both precisions. The bars: lists at
least 5 times as fast as matrices and ahead of PyTorch Geometric; 10⁶ edges under 60 s and 4 GB.
"""

import argparse
import json
import subprocess
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

from measuring import best_seconds, earlier, save
from mechgap.compiler.domain import position_grid
from mechgap.compiler.sizes import all_largest, compile_for
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs
from mechgap.network.sparse import run_on_edges
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY
from mechgap.programs.on_edges import listed_graph
from mechgap.tasks.edge_lists import EdgeLists, Edges
from mechgap.typed import plain

HIDDEN = 128
NODES = 1600
FORWARD = (("bfs", "stock"), ("bellman_ford", "general"))
SIZES = (10**4, 10**5, 10**6)
"""Edges; a tenth as many nodes."""


def forward(program: str, target: str, kind: str) -> dict[str, Any]:
    """One graph's whole run, three ways."""
    compiled = compile_for(LIBRARY[program], TARGETS[target], NODES, hidden_size=HIDDEN)
    grid = compiled.certificate.domain.position_grid
    batch = fresh_graphs(LIBRARY[program], NODES, 1, 0, kind, grid)
    lists = EdgeLists.of(batch)
    on_matrices = eqx.filter_jit(lambda network, graphs: run(network, graphs).outputs)

    def seconds(call: Any) -> float:
        jax.block_until_ready(call())
        return best_seconds(lambda: jax.block_until_ready(call()), repeats=3, calls=1)

    network = compiled.network
    matrices = seconds(lambda: on_matrices(network, batch))
    listed = seconds(lambda: run_on_edges(network, lists).outputs)
    peer = geometric_seconds(lists, batch.steps)
    found = np.asarray(run_on_edges(network, lists).outputs["pi"])
    return {
        "program": program, "target": target, "graphs": kind, "nodes": NODES,
        "pairs": int((np.asarray(lists.receivers) < NODES).sum()), "steps": batch.steps,
        "right": bool((found == np.asarray(batch.outputs["pi"])).all()),
        "matrices_seconds": matrices, "lists_seconds": listed, "geometric_seconds": peer,
        "matrices_over_lists": matrices / listed, "geometric_over_lists": peer / listed,
    }  # fmt: skip


def geometric_seconds(lists: EdgeLists, steps: int) -> float:
    """As many layers of PyTorch Geometric on the same pairs, one after the other."""
    torch = import_module("torch")  # the peer, which nobody else needs
    layers = import_module("torch_geometric.nn")
    real = np.asarray(lists.receivers[0]) < lists.nodes
    ends = [np.asarray(x[0])[real] for x in (lists.senders, lists.receivers)]
    pairs = torch.tensor(np.stack(ends), dtype=torch.long)
    layer = layers.GATv2Conv(2 * HIDDEN, HIDDEN, edge_dim=HIDDEN, add_self_loops=False).eval()
    told = torch.randn(pairs.shape[1], HIDDEN)
    nodes, hidden = torch.randn(lists.nodes, HIDDEN), torch.zeros(lists.nodes, HIDDEN)

    def whole_run() -> None:
        state = hidden
        with torch.no_grad():
            for _ in range(steps):
                state = torch.relu(layer(torch.cat([nodes, state], 1), pairs, told))

    whole_run()
    return best_seconds(whole_run, repeats=3, calls=1)


def large_graph(edges: int) -> tuple[Edges, csr_array, dict[str, np.ndarray]]:
    """A random graph in two halves, and breadth-first search's inputs on it."""
    nodes = edges // 10
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, edges + edges // 10))
    ends[1] ^= (ends[0] ^ ends[1]) & 1  # even ones with even ones
    ends = np.sort(ends, axis=0)
    keys = np.unique((ends[0] * nodes + ends[1])[ends[0] != ends[1]])
    keys = rng.permutation(keys)[:edges]
    one, other = keys // nodes, keys % nodes
    listed = Edges.of(nodes, one, other)
    linked = (listed.receivers != listed.senders).astype(float)
    matrix = csr_array((np.ones(2 * edges), (np.r_[one, other], np.r_[other, one])))
    source = np.zeros(nodes)
    source[nodes // 3] = 1
    grid = position_grid(nodes)
    positions = np.round(np.arange(nodes) / nodes / grid) * grid
    return listed, matrix, {"pos": positions, "s": source, "A": linked, "adj": linked}


def to_the_end(program: str, edges: int) -> dict[str, Any]:
    """A compiled program's run on one graph, in this process alone, and SciPy's answer to it."""
    listed, matrix, inputs = large_graph(edges)
    nodes, source = listed.nodes, listed.nodes // 3
    began = time.perf_counter()
    if program == "bfs":
        breadth_first_order(matrix, source, directed=False)
    else:
        connected_components(matrix, directed=False)
    scipy_seconds = time.perf_counter() - began
    hops = shortest_path(matrix, unweighted=True, indices=source)
    steps = 1 + int(hops[np.isfinite(hops)].max())

    network = compile_for(LIBRARY[program], TARGETS["stock"], nodes, hidden_size=HIDDEN).network
    graph = listed_graph(LIBRARY[program], listed, inputs, hints=1 + steps)
    began = time.perf_counter()
    found = jax.block_until_ready(run_on_edges(network, graph))
    first = time.perf_counter() - began
    seconds = best_seconds(
        lambda: jax.block_until_ready(run_on_edges(network, graph)), repeats=2, calls=1
    )
    return {
        "program": program, "edges": edges, "nodes": nodes, "pairs": len(listed.receivers),
        "steps": steps, "exact": exact(program, found.outputs, listed, hops),
        "seconds": seconds, "seconds_with_compiling": first, "scipy_seconds": scipy_seconds,
        "over_scipy": seconds / scipy_seconds,
        "nanoseconds_per_edge_and_step": 1e9 * seconds / edges / steps,
        "gigabytes_at_most": most_memory(),
    }  # fmt: skip


def most_memory() -> float:
    """The largest this process has been, in gigabytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def exact(program: str, outputs: Any, listed: Edges, hops: np.ndarray) -> bool:
    """Whether every node is right: reached, or its parent the first of those that are nearer."""
    if program == "reachability":
        return bool(((np.asarray(outputs["reachable"][0]) > 0) == np.isfinite(hops)).all())
    receivers, senders = listed.receivers, listed.senders
    nearer = np.isfinite(hops[senders]) & (hops[senders] == hops[receivers] - 1)
    first = np.minimum.reduceat(np.where(nearer, senders, listed.nodes), listed.offsets[:-1])
    wanted = np.where(first < listed.nodes, first, np.arange(listed.nodes))
    return bool((np.asarray(outputs["pi"][0]) == wanted).all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["all", "forward", "edges", "largest"], default="all")
    parser.add_argument("--one", nargs=2, metavar=("PROGRAM", "EDGES"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(to_the_end(asked.one[0], int(asked.one[1]))))
        return
    numbers = {k: v for k, v in earlier("large").items() if k != "machine"}
    if asked.part in {"all", "largest"}:
        found = all_largest(HIDDEN)
        with jax.enable_x64(True):
            found += all_largest(HIDDEN, "float64")
        numbers["largest"] = [plain(each) for each in found]
    if asked.part in {"all", "forward"}:
        rows = [
            forward(*each, kind) for each in FORWARD for kind in ("er-sparse", "ws", "delaunay")
        ]
        for row in rows:
            print(f"{row['program']}, {row['graphs']}: lists {row['lists_seconds']:.3f} s, "
                  f"{row['matrices_over_lists']:.1f} × as fast as matrices, "
                  f"{row['geometric_over_lists']:.2f} × as PyTorch Geometric")  # fmt: skip
        peers = {name: version(name) for name in ("torch", "torch_geometric")}
        numbers |= {"hidden_size": HIDDEN, "forward": rows, "peers": peers}
    if asked.part in {"all", "edges"}:
        rows = []
        for program in ("bfs", "reachability"):
            for edges in SIZES:
                command = [sys.executable, __file__, "--one", program, str(edges)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                rows.append(json.loads(done.stdout.splitlines()[-1]))
                print(rows[-1], flush=True)
            mine = [row for row in rows if row["program"] == program]
            per_edge = [row["seconds"] / row["steps"] for row in mine]
            slope = np.polyfit(np.log([row["edges"] for row in mine]), np.log(per_edge), 1)[0]
            numbers[f"slope_{program}"] = float(slope)
            print(f"{program}: a step's time goes with edges to the power of {slope:.2f}")
        numbers["edges"] = rows
    save("large", numbers)


if __name__ == "__main__":
    main()
