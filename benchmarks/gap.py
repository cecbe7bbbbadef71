"""How long the main job takes from nothing, and what it says.

    python benchmarks/gap.py

`mechgap gap TASK` in a new process with an empty cache, as a newcomer runs it: native code and
programs are compiled, four networks trained, everything measured, the page written.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import save

TASKS = ("bfs", "bellman_ford")


def main() -> None:
    found = {}
    for task in TASKS:
        with tempfile.TemporaryDirectory() as place:
            environment = {**os.environ, "XDG_CACHE_HOME": f"{place}/cache"}
            words = [sys.executable, "-m", "mechgap.cli", "gap", task, "--json"]
            words += ["--out", f"{place}/run"]
            began = time.perf_counter()
            done = subprocess.run(
                words, check=True, stdout=subprocess.PIPE, text=True, env=environment
            )
            seconds = time.perf_counter() - began
            told = json.loads(done.stdout)
            page = Path(told["page"]).stat().st_size
        found[task] = {
            "seconds": round(seconds),
            "answer": told["answer"],
            "page_megabytes": round(page / 1e6, 1),
            "seeds": len(told["seeds"]),
            "steps": told["recipe"]["train_steps"],
        }
        print(task, found[task], flush=True)
        save("gap", found)


if __name__ == "__main__":
    main()
