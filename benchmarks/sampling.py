"""How fast are graphs with their traces made? mechgap beside dm-clrs, in one run.

    python benchmarks/sampling.py [--nodes 16] [--batch-size 32]

Both draw training batches (p from 0.1 to 0.9, random positions) without end. dm-clrs's rate is
that of its own sampler and `process_random_pos`; ours includes the call from Python, one batch at
a time. The best of five rounds each.
"""

import argparse

import clrs
import jax
import numpy as np

from measuring import best_seconds, save
from mechgap.tasks.sampling import TRAIN_P, sample


def dm_clrs_seconds(task: str, nodes: int, batch_size: int) -> float:
    sampler, _ = clrs.build_sampler(task, num_samples=-1, length=nodes, seed=1, p=TRAIN_P)

    def batches():
        while True:
            yield sampler.next(batch_size)

    positioned = clrs.process_random_pos(batches(), np.random.RandomState(2))
    return best_seconds(lambda: next(positioned), repeats=5, calls=20)


def mechgap_seconds(task: str, nodes: int, batch_size: int) -> float:
    keys = iter(list(jax.random.split(jax.random.key(0), 5 * 400 + 1)))

    def draw():
        batch = sample(task, next(keys), batch_size=batch_size, nodes=nodes)
        jax.block_until_ready(batch.hints)

    draw()
    return best_seconds(draw, repeats=5, calls=400)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    rows = {}
    print(f"batches of {arguments.batch_size} graphs with {arguments.nodes} nodes, milliseconds")
    for task in ("bfs", "bellman_ford", "dfs"):
        theirs = dm_clrs_seconds(task, arguments.nodes, arguments.batch_size)
        ours = mechgap_seconds(task, arguments.nodes, arguments.batch_size)
        rows[task] = {
            "dm_clrs_ms": round(theirs * 1e3, 3),
            "mechgap_ms": round(ours * 1e3, 3),
            "ratio": round(theirs / ours, 1),
        }
        print(
            f"{task:14} dm-clrs {theirs * 1e3:7.2f}   mechgap {ours * 1e3:7.3f}   "
            f"ratio {theirs / ours:6.1f} x"
        )
    save("sampling", {"nodes": arguments.nodes, "batch_size": arguments.batch_size, "tasks": rows})


if __name__ == "__main__":
    main()
