"""What compiling costs, and what running a compiled network costs beside a learned one.

    python benchmarks/compiling.py

Compiling is timed as a user meets it: a new process, imports included, hidden size 128. A learned
network of the same configuration has other numbers in the same shapes, so a run should take the
same time.
"""

import subprocess
import sys
import time

import jax

from measuring import best_seconds, save
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY
from mechgap.tasks.official import official

PAIRS = (
    *(("bfs", name) for name, target in TARGETS.items() if not target.full_attention),
    ("bellman_ford", "paper"),
    ("bellman_ford", "general"),
)


def compile_seconds(program: str, target: str) -> float:
    """The best of three new processes, from start to the printed certificate."""
    command = [sys.executable, "-m", "mechgap.cli", "compile", program, "--target", target]
    return best_seconds(
        lambda: subprocess.run(command, check=True, capture_output=True), repeats=3, calls=1
    )


def run_milliseconds(program: str, target: str) -> tuple[float, float]:
    """A run over the official test set: compiled, and learned (here: initial) parameters."""
    chosen = LIBRARY[program]
    compiled = compile_program(chosen, TARGETS[target], Domain.regular(chosen, 64)).network
    learned = Network.initial(compiled.task, jax.random.key(0), compiled.config)
    batch = official(chosen.task, "test")
    times: dict[int, float] = {}
    for _ in range(5):  # in turns, so that both see the same machine
        for index, network in enumerate((compiled, learned)):
            jax.block_until_ready(run(network, batch))
            began = time.perf_counter()
            jax.block_until_ready(run(network, batch))
            took = 1e3 * (time.perf_counter() - began)
            times[index] = min(took, times.get(index, took))
    return times[0], times[1]


def main() -> None:
    rows = []
    for program, target in PAIRS:
        seconds = compile_seconds(program, target)
        compiled, learned = run_milliseconds(program, target)
        rows.append(
            {
                "program": program,
                "target": target,
                "compile_seconds": round(seconds, 2),
                "run_compiled_ms": round(compiled, 1),
                "run_learned_ms": round(learned, 1),
                "ratio": round(compiled / learned, 3),
            }
        )
        print(rows[-1], flush=True)
    save("compiling", {"hidden_size": 128, "compiled": rows})


if __name__ == "__main__":
    main()
