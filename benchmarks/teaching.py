"""How far does depth-first search come in equal CPU time? dm-clrs and mechgap in one run.

    python benchmarks/teaching.py [--seconds 300]

The same network (hidden size 64, three message-passing steps per hint) learns on graphs of 16 and
32 nodes: in dm-clrs with its own loop, sampler and Adam, on whole traces; in mechgap in windows,
by hints alone and taught (preset `windows`). Each has a process and one core of its own, and so
many seconds of CPU time after everything is compiled. Then all are asked the same new graphs, by
mechgap, to which dm-clrs's parameters are taken over. Stop everything else on the machine before.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from typing import Any

from measuring import save
from mechgap.experiments.replication.teaching import by_hints, by_state
from mechgap.network.network import Network
from mechgap.training.presets import recipe_from
from mechgap.training.recipe import Recipe

GRAPHS = (("er", 32), ("er", 64), ("er-sparse", 64))
ASKED = 32


def dm_clrs(seconds: float) -> dict[str, Any]:
    """dm-clrs's own loop: sample, feedback."""
    import clrs
    import jax
    import numpy as np

    from mechgap.interop.dm_clrs import baseline_model, from_haiku
    from mechgap.tasks.sampling import TRAIN_P

    recipe = by_hints("dfs").recipe
    rng = np.random.RandomState(0)

    def batches(nodes: int):
        sampler, _ = clrs.build_sampler(
            recipe.task, num_samples=-1, length=nodes, seed=rng.randint(2**31), p=list(TRAIN_P)
        )
        while True:
            yield sampler.next(recipe.batch_size)

    streams = [clrs.process_random_pos(batches(nodes), rng) for nodes in recipe.train_lengths]
    # Its own learning rate; the network is ours in shape.
    model = baseline_model(
        recipe.task, recipe.network_config, next(streams[-1]), learning_rate=1e-3
    )
    key = jax.random.PRNGKey(0)

    def cycle() -> int:
        for stream in streams:
            model.feedback(key, next(stream))
        jax.block_until_ready(model.params)
        return len(streams)

    began = time.process_time()
    for _ in range(3):  # hints are padded to the longest seen: compiled again until that settles
        cycle()
    compiling = time.process_time() - began
    steps, spent = _for_seconds(cycle, seconds)
    network = from_haiku(recipe.task, recipe.network_config, model.params)
    return {"compiling": compiling, "steps": steps, "seconds": spent, **_asked(network)}


def mechgap(recipe: Recipe, seconds: float) -> dict[str, Any]:
    """The population engine with one seed; as many steps as fit, so that the cosine ends there."""
    import jax

    from mechgap.training.local import compiled_trainer

    at_once = 50

    def trained(recipe: Recipe, seconds: float) -> tuple[Any, float, int, float]:
        began = time.process_time()
        trainer = compiled_trainer(recipe)
        running = [trainer.start([0])]

        def cycle() -> int:
            running[0] = jax.block_until_ready(trainer.advance(running[0], at_once)[0])
            return at_once

        cycle()
        compiling = time.process_time() - began
        return running, compiling, *_for_seconds(cycle, seconds)

    _, _, steps, spent = trained(recipe, seconds / 20)
    fitting = int(steps / spent * seconds) // at_once * at_once
    planned = recipe_from({**recipe.data(), "train_steps": fitting})
    (learner,), compiling, steps, spent = trained(planned, seconds)
    network = jax.tree.map(lambda x: x[0], learner.network)
    return {"compiling": compiling, "steps": steps, "seconds": spent, **_asked(network)}


def _for_seconds(cycle: Any, seconds: float) -> tuple[int, float]:
    """Steps, and the CPU time that they took."""
    began, steps = time.process_time(), 0
    while time.process_time() - began < seconds:
        steps += cycle()
    return steps, time.process_time() - began


def _asked(network: Network) -> dict[str, float]:
    """Shares of outputs that are right on new graphs."""
    import jax

    from mechgap.training.population import graphs_to_test, score

    batches = {
        f"{kind}-{nodes}": graphs_to_test(network.task, kind, nodes, ASKED)
        for kind, nodes in GRAPHS
    }
    return {name: float(jax.jit(score)(network, batch)) for name, batch in batches.items()}


SIDES = {
    "dm-clrs, whole traces": dm_clrs,
    "mechgap, windows": partial(mechgap, by_hints("dfs").recipe),
    "mechgap, windows, taught": partial(mechgap, by_state("dfs").recipe),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of CPU time, per side")
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(SIDES[given.side](given.seconds)))
        return
    found = {}
    for side in SIDES:
        words = [sys.executable, __file__, "--side", side, "--seconds", str(given.seconds)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        found[side] = json.loads(done.stdout.splitlines()[-1])
        print(side, found[side], flush=True)
        save("teaching", {"cpu_seconds": given.seconds, "sides": found})


if __name__ == "__main__":
    main()
