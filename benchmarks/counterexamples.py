"""How long it takes to ask a network about every small graph.

    python benchmarks/counterexamples.py [--nodes 6]

Breadth-first search, compiled into dm-clrs's network with layer norm, hidden size 128, is asked
about all labelled graphs up to a size, from every source. It is right on all, so none is spared:
2¹⁵ graphs of 6 nodes times 6 sources. The bar is 2 minutes on two cores.
"""

import argparse
import time

from measuring import save
from mechgap.calls import compile
from mechgap.measures.counterexample import smallest_wrong
from mechgap.tasks.specs import get_task

BAR_SECONDS = 120.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=6)
    nodes = parser.parse_args().nodes
    network = compile("bfs", "stock-ln", nodes).network
    began = time.perf_counter()
    found = smallest_wrong(network, get_task("bfs"), nodes, beyond=())
    seconds = time.perf_counter() - began
    graphs = sum(found.all_of.values())
    assert found.found is None, found.sentence
    print(f"{found.sentence}: {seconds:.1f} s, {graphs / seconds:,.0f} graphs a second")
    numbers = {"task": "bfs", "hidden_size": 128, "nodes": nodes, "graphs": graphs}
    save("counterexamples", {**numbers, "seconds": seconds, "bar_seconds": BAR_SECONDS})


if __name__ == "__main__":
    main()
