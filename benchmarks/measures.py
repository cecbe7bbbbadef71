"""How long measuring takes once attention is computed: 128 solutions, 32 graphs of 64 nodes.

    python benchmarks/measures.py [--seeds 128]

Attention is that of untrained networks, which is as hard to measure as any. Computing it is timed
apart. Also told: the memory that is held for the distances, and the largest that the process used.
"""

import argparse
import resource
import time

import jax
import numpy as np

from measuring import save
from mechgap.measures.data import make_data
from mechgap.measures.fingerprint import Places
from mechgap.measures.internal import internal_gap
from mechgap.measures.solutions import solutions
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.tasks.official import official


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=128)
    seeds = parser.parse_args().seeds
    data = make_data("test", official("bfs", "test"))
    places, prints = Places.of(data), list[np.ndarray]()
    attending = measuring = 0.0
    for seed in range(seeds):
        began = time.perf_counter()
        attention = run(Network.initial("bfs", jax.random.key(seed)), data.batch).attention
        jax.block_until_ready(attention)
        between = time.perf_counter()
        for truth in data.truths:
            internal_gap(attention, truth, data)
        prints.append(places.fingerprint(np.asarray(places.rows(attention))))
        attending += between - began
        measuring += time.perf_counter() - between
    began = time.perf_counter()
    distances = places.distances(np.stack(prints))
    paired = time.perf_counter() - began
    began = time.perf_counter()
    found = solutions(distances, seeds, nodes=64)
    clustered = time.perf_counter() - began
    held = sum(print_.nbytes for print_ in prints)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    numbers = {
        "seeds": seeds,
        "graphs": data.batch.size,
        "nodes": data.batch.nodes,
        "attention_seconds": round(attending, 1),
        "gaps_seconds": round(measuring, 1),
        "distances_seconds": round(paired, 1),
        "clusters_seconds": round(clustered, 1),
        "all_but_attention_seconds": round(measuring + paired + clustered, 1),
        "held_megabytes": round(held / 2**20, 1),
        "peak_megabytes": round(peak),
        "clusters": found.clusters,
    }
    print(numbers)
    save("measures", numbers)


if __name__ == "__main__":
    main()
