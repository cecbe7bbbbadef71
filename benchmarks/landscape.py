"""A loss surface of 51 × 51 points beside dm-clrs's network on the same points.

    python benchmarks/landscape.py

BFS, hidden size 128, the official validation graphs (32 graphs of 16 nodes). Ours is loss and
accuracy at every point; dm-clrs's is its compiled loss alone at some of them, with parameters that
are ready. Each in a process of its own. Losses are compared.
"""

import json
import subprocess
import sys
import time
from typing import Any

from measuring import save
from mechgap.training.engines import use_one_thread_each

SIDE, THEIRS = 51, 64
CORES = 2


def points() -> Any:
    """All points of the surface."""
    from mechgap.measures.loss_surface import grid

    return grid(1.0, SIDE)


def plane() -> Any:
    """A network and two directions."""
    import jax

    from mechgap.measures.loss_surface import Plane
    from mechgap.network.network import Network

    return Plane.random(Network.initial("bfs", jax.random.key(0)), jax.random.key(1))


def ours() -> dict[str, Any]:
    """Seconds for the whole surface, without and with compiling, and the losses."""
    use_one_thread_each()
    import numpy as np

    from mechgap.measures.loss_surface import heights
    from mechgap.tasks.official import official

    batch, around, where = official("bfs", "validation"), plane(), points()
    began = time.perf_counter()
    list(heights(around, batch, where[:CORES]))
    compiled = time.perf_counter()
    found = [h.loss for _, h in heights(around, batch, where)]
    done = time.perf_counter()
    return {
        "seconds": done - compiled,
        "with_compiling": done - began,
        "losses": np.concatenate(found)[:: len(where) // THEIRS][:THEIRS].tolist(),
    }


def theirs() -> dict[str, Any]:
    """dm-clrs's seconds per point, after compiling, and its losses."""
    import jax

    from mechgap.interop.dm_clrs import baseline_model, to_feedback, to_haiku
    from mechgap.network.config import NetworkConfig
    from mechgap.tasks.official import official

    feedback = to_feedback(official("bfs", "validation"))
    model: Any = baseline_model("bfs", NetworkConfig(), feedback, seed=0)
    around, where = plane(), points()
    some = where[:: len(where) // THEIRS][:THEIRS]
    parameters = [jax.device_put(to_haiku(around.at(point))) for point in some]
    key = jax.random.PRNGKey(0)
    loss = jax.jit(lambda p: model._loss(p, key, feedback, 0))
    loss(parameters[0]).block_until_ready()
    began = time.perf_counter()
    losses = [float(loss(p)) for p in parameters]
    return {"seconds_per_point": (time.perf_counter() - began) / len(some), "losses": losses}


def _alone(side: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, side], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    mine, peer = _alone("ours"), _alone("theirs")
    off = max(
        abs(a - b) / max(abs(b), 1e-3) for a, b in zip(mine["losses"], peer["losses"], strict=True)
    )
    their_seconds = peer["seconds_per_point"] * SIDE**2
    found = {
        "points": SIDE**2,
        "mechgap_seconds": round(mine["seconds"], 2),
        "mechgap_seconds_with_compiling": round(mine["with_compiling"], 2),
        "dm_clrs_seconds": round(their_seconds, 2),
        "ratio": round(their_seconds / mine["seconds"], 2),
        "largest_relative_difference_of_losses": off,
    }
    print(json.dumps(found, indent=1))
    save("landscape", found)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(ours() if sys.argv[1] == "ours" else theirs()))
    else:
        main()
