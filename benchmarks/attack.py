"""Attack the certificates: is there a graph inside one on which a compiled network is wrong?

    python benchmarks/attack.py [--graphs 10000]      the library's programs
    python benchmarks/attack.py --programs 2000       random programs of the language
    python benchmarks/attack.py --nodes 1600          graphs of so many nodes, as lists of edges

A stopped run goes on where it was. Graphs are made to hurt: long paths, stars, cycles, complete
graphs, layered ones, random ones, disconnected ones, self-loops on every node or none; positions as
close as the domain allows and anywhere else; weights whose sums nearly tie, at the edge of what is
certified. A graph counts only if it lies inside the certificate; not one miss is allowed there.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from measuring import earlier, save
from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.sizes import compile_for
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import Verification, posed_batch, verify
from mechgap.errors import InvalidInput
from mechgap.programs.library import LIBRARY
from mechgap.tasks.batch import Batch
from mechgap.tasks.kinds import MATRICES_UP_TO
from mechgap.tasks.sampling import make_batch
from mechgap.tasks.specs import get_task
from random_programs import random_program

Rng = np.random.Generator


def _path(n: int, rng: Rng) -> np.ndarray:
    order = rng.permutation(n) if rng.random() < 0.5 else np.arange(n)
    edges = np.zeros((n, n), bool)
    edges[order[:-1], order[1:]] = True
    return edges


def _cycle(n: int, rng: Rng) -> np.ndarray:
    edges = _path(n, rng)
    ends = np.flatnonzero((edges | edges.T).sum(0) < 2)
    edges[ends[0], ends[-1]] = True
    return edges


def _star(n: int, rng: Rng) -> np.ndarray:
    edges = np.zeros((n, n), bool)
    edges[rng.integers(n)] = True
    return edges


def _complete(n: int, rng: Rng) -> np.ndarray:
    del rng
    return np.ones((n, n), bool)


def _layers(n: int, rng: Rng) -> np.ndarray:
    """Every node of a layer to every node of the next: as many ties in level as can be."""
    layer = np.sort(rng.integers(0, max(1, n // 3) + 1, n))
    layer = layer if rng.random() < 0.5 else rng.permutation(layer)
    return np.abs(layer[:, None] - layer) == 1


def _random(n: int, rng: Rng) -> np.ndarray:
    return rng.random((n, n)) < rng.choice([0.02, 0.1, 0.3, 0.7])


def _grid(n: int, rng: Rng) -> np.ndarray:
    wide = int(np.ceil(np.sqrt(n)))
    node = rng.permutation(n) if rng.random() < 0.5 else np.arange(n)
    edges = np.zeros((n, n), bool)
    beside = np.flatnonzero(np.arange(1, n) % wide)
    edges[node[beside], node[beside + 1]] = True
    edges[node[:-wide], node[wide:]] = True
    return edges


def _sparse(n: int, rng: Rng) -> np.ndarray:
    return rng.random((n, n)) < rng.choice([1, 3, 10]) / n


Families = Mapping[str, Callable[[int, Rng], np.ndarray]]
FAMILIES: Families = {
    "path": _path,
    "cycle": _cycle,
    "star": _star,
    "complete": _complete,
    "layers": _layers,
    "random": _random,
}
LARGE_FAMILIES: Families = {**FAMILIES, "grid": _grid, "random": _sparse}
LARGE_PROGRAMS = {
    "bfs": ("stock", 8),
    "bfs_parent": ("stock", 8),
    "bellman_ford": ("general", 8),
    "reachability": ("stock", 2),
    "dfs": ("stock", 1),
    "topological_sort": ("stock", 1),
}
"""What is attacked at size: its target, and how many graphs of each family, fewer where runs are
long. Programs that attend to all nodes are not: of their graphs hardly any lies inside there."""


def _weights(n: int, rng: Rng, gap: float) -> np.ndarray:
    """Symmetric weights; half of the time few different ones, so that sums nearly tie."""
    if rng.random() < 0.5:
        values = rng.uniform(0.0316, 1.0, (n, n))
    else:
        few = rng.uniform(0.0316, 0.5, 3)
        values = rng.choice(few, (n, n)) + gap * rng.integers(0, 8, (n, n)) * rng.uniform(1, 3)
    upper = np.triu(values)
    return upper + np.triu(values, 1).T


def _positions(n: int, rng: Rng, gap: float, grid: float | None) -> np.ndarray:
    """Increasing positions in [0, 1), each at least a gap from the next; on a grid, if any."""
    if grid is not None:
        gap = np.ceil(gap / grid) * grid
    if rng.random() < 0.3 or n == 1:
        return np.arange(n) * gap
    spare = 1.0 - gap * n
    extra = np.sort(rng.uniform(0, max(0.0, spare), n))
    if grid is not None:
        extra = np.floor(extra / grid) * grid
    return np.arange(n) * gap + extra


def attack_batch(
    compiled: Compiled, nodes: int, graphs: int, rng: Rng, families: Families = FAMILIES
) -> Batch:
    """Graphs of one size, from every family."""
    task = get_task(compiled.program.task)
    domain = compiled.certificate.domain
    # As close as values may be where some four small numbers were added up.
    value_gap = max(race.needs(4, 2.0) for race in compiled.certificate.races)
    matrices, positions = [], []
    names = list(families)
    for i in range(graphs):
        edges = families[names[i % len(names)]](nodes, rng)
        loops = rng.choice(["all", "none", "some"])
        if not task.directed or rng.random() < 0.3:
            edges = edges | edges.T
        if rng.random() < 0.2:  # cut in two
            side = rng.random(nodes) < 0.5
            edges &= side[:, None] == side
        if task.acyclic:
            edges, loops = np.triu(edges | edges.T, 1), "none"
        np.fill_diagonal(edges, {"all": 1, "none": 0}.get(loops, rng.random(nodes) < 0.5))
        matrices.append(edges * (_weights(nodes, rng, value_gap) if task.weighted else 1.0))
        positions.append(_positions(nodes, rng, domain.position_gap, domain.position_grid))
    batch = make_batch(
        task,
        jnp.asarray(np.stack(matrices), jnp.float32),
        jnp.asarray(rng.integers(0, nodes, graphs), jnp.int32),
        jnp.asarray(np.stack(positions), jnp.float32),
    )
    if nodes > MATRICES_UP_TO:
        return posed_batch(compiled.program, batch.trim())
    most = task.max_hints(nodes)
    return posed_batch(compiled.program, batch).pad(most)  # one shape, compiled once


def attack(compiled: Compiled, nodes: int, graphs: int, rng: Rng) -> Verification:
    """How a compiled network stands up to such graphs."""
    return verify(compiled, attack_batch(compiled, nodes, graphs, rng))


def attack_large(nodes: int) -> None:
    """Programs on some graphs of every family at a size that is run as lists of edges."""
    rows = [row for row in earlier("attack_large").get("rows", []) if row["nodes"] == nodes]
    done = {(row["program"], row["family"]) for row in rows}
    for name, (target, graphs) in LARGE_PROGRAMS.items():
        compiled = compile_for(LIBRARY[name], TARGETS[target], nodes)
        for family, draw in LARGE_FAMILIES.items():
            # A search of a complete graph would take hours: n² edges at each of its steps.
            if (name, family) in done or (family == "complete" and compiled.program.selections > 1):
                continue
            rng = np.random.default_rng([7, nodes])
            found = [
                verify(compiled, attack_batch(compiled, nodes, 1, rng, {family: draw}))
                for _ in range(graphs)
            ]
            row = {"program": name, "target": target, "family": family, "nodes": nodes}
            counted = {
                "graphs": graphs,
                "inside": sum(each.inside_certificate for each in found),
                "missed_inside": sum(each.missed_graphs_inside for each in found),
                "missed_outside": sum(each.missed_graphs_outside for each in found),
            }
            rows.append({**row, **counted})
            print(rows[-1], flush=True)
            save("attack_large", {"rows": rows})


def _rows_so_far(graphs: int) -> list[dict[str, Any]]:
    """What an earlier, stopped run with as many graphs has done."""
    stored = earlier("attack")
    return stored["compiled"] if stored.get("graphs_each") == graphs else []


RANDOM_NODES, RANDOM_SIZES = 8, (1, 3, 8, 8)


def attack_random(seed: int) -> dict[str, Any]:
    """One random program in every target that takes it, each on hostile graphs of some size."""
    rng = np.random.default_rng(seed)
    program = random_program(rng, f"random_{seed}")
    row: dict[str, Any] = {"seed": seed, "phases": program.selections, "targets": []}
    row |= dict.fromkeys(("graphs", "inside", "missed_inside", "missed_outside"), 0)
    for target in TARGETS.values():
        nodes = int(rng.choice(RANDOM_SIZES))
        size = nodes if target.pre_attention_bias else RANDOM_NODES
        try:
            compiled = compile_program(
                program, target, Domain.regular(program, size), hidden_size=128
            )
        except InvalidInput:
            continue
        row["targets"].append(target.name)
        found = attack(compiled, nodes, 64, rng)
        row["graphs"] += found.graphs
        row["inside"] += found.inside_certificate
        row["missed_inside"] += found.missed_graphs_inside
        row["missed_outside"] += found.missed_graphs_outside
        if found.missed_graphs_inside:
            print("MISSED INSIDE THE CERTIFICATE:", target.name, found.first, program, sep="\n")
    return row


def attack_programs(programs: int) -> None:
    """Random programs, one after the other; their sums are kept."""
    rows = earlier("attack_programs").get("rows", [])
    for seed in range(len(rows), programs):
        rows.append(attack_random(seed))
        if len(rows) % 25 == 0:
            jax.clear_caches()  # every program is another network
        if len(rows) % 50 == 0 or len(rows) == programs:
            compiled = [row for row in rows if row["targets"]]
            totals = {
                name: sum(row[name] for row in rows)
                for name in ("graphs", "inside", "missed_inside", "missed_outside")
            }
            pairs = [target for row in compiled for target in row["targets"]]
            summary = {
                "programs": len(rows),
                "compiled": len(compiled),
                "pairs": {target: pairs.count(target) for target in TARGETS},
                **totals,
            }
            print(summary, flush=True)
            save("attack_programs", {**summary, "rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=10_000, help="per compiled program")
    parser.add_argument("--programs", type=int, help="so many random programs instead")
    parser.add_argument("--nodes", type=int, help="large graphs of so many nodes instead")
    arguments = parser.parse_args()
    if arguments.nodes is not None:
        attack_large(arguments.nodes)
        return
    if arguments.programs is not None:
        # Each network runs once: what counts is how soon XLA has compiled it.
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
        attack_programs(arguments.programs)
        return
    sizes = {1: 0.02, 2: 0.08, 5: 0.4, 16: 0.4, 33: 0.07, 64: 0.03}
    rows = _rows_so_far(arguments.graphs)
    done = {(row["program"], row["target"]) for row in rows}
    for program in LIBRARY.values():
        for target in TARGETS.values():
            if (program.name, target.name) in done:
                continue
            row: dict[str, Any] = {"program": program.name, "target": target.name}
            counts = dict.fromkeys(("graphs", "inside", "missed_inside", "missed_outside"), 0)
            rng = np.random.default_rng(7)
            for nodes, share in sizes.items():
                # A bias is made for one size, so that target is compiled for each.
                size = nodes if target.pre_attention_bias else 64
                try:
                    # Layer norm depends on how many units it spans; nothing else does.
                    enough = 8 if program.selections == 1 else 80
                    hidden = 128 if target.layer_norm else enough
                    compiled = compile_program(
                        program, target, Domain.regular(program, size), hidden_size=hidden
                    )
                except InvalidInput as error:
                    row["refused"] = str(error)
                    break
                left = max(1, int(arguments.graphs * share))
                while left > 0:
                    now = min(left, 2048 if nodes <= 16 else 64)
                    found = attack(compiled, nodes, now, rng)
                    counts["graphs"] += now
                    counts["inside"] += now - found.outside_certificate
                    counts["missed_inside"] += found.missed_graphs_inside
                    counts["missed_outside"] += found.missed_graphs_outside
                    left -= now
                    if found.missed_graphs_inside:
                        print("MISSED INSIDE THE CERTIFICATE:", program.name, target.name, found)
            rows.append(row if "refused" in row else {**row, **counts})
            print(rows[-1], flush=True)
            save("attack", {"graphs_each": arguments.graphs, "compiled": rows})


if __name__ == "__main__":
    main()
