"""What every benchmark needs: the machine it ran on, fair timing, and a file for the numbers."""

import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def best_seconds(run: Callable[[], Any], *, repeats: int, calls: int) -> float:
    """Seconds a call takes: the best of several rounds, since noise only ever adds."""
    rounds = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(calls):
            run()
        rounds.append((time.perf_counter() - began) / calls)
    return min(rounds)


def machine() -> dict[str, Any]:
    """Where and with what the numbers were taken."""
    packages = ("jax", "numpy", "dm-clrs")
    return {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "date": time.strftime("%Y-%m-%d"),
    }


def save(name: str, numbers: dict[str, Any]) -> None:
    """Write the numbers of one benchmark beside it."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), **numbers}, indent=1) + "\n")
    print(f"written: {path.relative_to(RESULTS.parent.parent)}")


def earlier(name: str) -> dict[str, Any]:
    """What this benchmark wrote before, or nothing."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}
