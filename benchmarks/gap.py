"""How long the main job takes from nothing, and what it says.

    python benchmarks/gap.py [TASK …]

`mechgap gap TASK` in a new process with an empty cache, as a newcomer runs it: native code and
programs are compiled, networks trained, everything measured, the page written. Without names: every
CLRS task that has an exact program, and the programs of `examples/own_programs.py`. Each replaces
what an earlier run found of it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

from measuring import earlier, save

CLRS = ("bfs", "bellman_ford", "dijkstra", "mst_prim", "dfs", "topological_sort")
OWN = ("hop_distance", "highest_parent", "lightest_parent", "walk")
FILE = Path(__file__).parent.parent / "examples" / "own_programs.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="*", default=[*CLRS, *OWN])
    for task in parser.parse_args().task:
        found = {**earlier("gap"), task: measured(task)}
        print(task, found[task], flush=True)
        save("gap", {k: v for k, v in found.items() if k != "machine"})


def measured(task: str) -> dict[str, Any]:
    """One job, from an empty cache to its page."""
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "XDG_CACHE_HOME": f"{place}/cache"}
        name = f"{FILE}:{task}" if task in OWN else task
        words = [sys.executable, "-m", "mechgap.cli", "gap", name, "--json"]
        began = time.perf_counter()
        done = subprocess.run(
            [*words, "--out", f"{place}/run"], check=True, capture_output=True, text=True,
            env=environment,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        told = json.loads(done.stdout)
        page = Path(told["page"]).stat().st_size
    seeds = list(told["seeds"].values())
    mechanism = told["reference"]
    gaps = [row["gaps"]["test"][mechanism] for row in seeds]
    chance = told["baselines"]["uniform"]["gaps"]["test"][mechanism]
    recipe = told["recipe"]
    return {
        "seconds": round(seconds),
        "answer": told["answer"],
        "verified": {
            name: told["verification"][name] for name in ("verdict", "graphs", "inside_certificate")
        },
        "page_megabytes": round(page / 1e6, 1),
        "seeds": len(seeds),
        "steps": recipe["train_steps"],
        "graphs": {name: told["graphs"][name] for name in ("count", "nodes", "constant_outputs")},
        "network": {
            name: recipe[name]
            for name in ("processor_type", "use_ln", "use_edge_info", "nb_msg_passing_steps")
        },
        "accuracy": mean(row["accuracy"] for row in seeds),
        "agreement": mean(gap["agreement"] for gap in gaps),
        "chance": chance["agreement"],
        "misplaced": mean(gap["misplaced"] for gap in gaps),
        "hardened": mean(row["causal"]["tempered"]["hardened"] for row in seeds),
        "tv": mean(gap["tv"] for gap in gaps),
        "alarms": done.stderr.count("slow compile"),
    }


if __name__ == "__main__":
    main()
