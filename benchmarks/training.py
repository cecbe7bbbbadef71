"""How fast is training? Seed-steps per second, dm-clrs and mechgap in one run.

    python benchmarks/training.py [--seconds 20]

Both train on batches of 32 graphs of 4, 7, 11, 13 and 16 nodes in turn, sampling included, each
with its own padding, each in a process of its own with its own threads. dm-clrs trains one seed, as
its run.py does; mechgap one seed per core (hidden 128) or 32 side by side per core (hidden 4).
First both compute the loss of the same parameters on the same batch, which must agree. Stop
everything else on the machine before.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

from measuring import earlier, save
from mechgap.training.engines import lanes, use_one_thread_each
from mechgap.training.presets import make_recipe
from mechgap.training.recipe import Recipe

CORES = len(os.sched_getaffinity(0))


def dm_clrs_rate(recipe: Recipe, seconds: float) -> float:
    """Steps per second of dm-clrs's own loop: sample, feedback."""
    import clrs
    import jax
    import numpy as np

    from mechgap.interop.dm_clrs import baseline_model
    from mechgap.tasks.sampling import TRAIN_P

    rng = np.random.RandomState(0)
    samplers = []
    for nodes in recipe.train_lengths:
        sampler, _ = clrs.build_sampler(
            recipe.task, num_samples=-1, length=nodes, seed=rng.randint(2**31), p=list(TRAIN_P)
        )
        samplers.append(clrs.process_random_pos(_batches(sampler, recipe.batch_size), rng))
    model = baseline_model(
        recipe.task, recipe.network_config, next(samplers[-1]), learning_rate=recipe.learning_rate
    )
    key = jax.random.PRNGKey(0)

    def cycle() -> None:
        for sampler in samplers:
            model.feedback(key, next(sampler))
        jax.block_until_ready(model.params)

    # Its hints are padded to the longest seen, so it compiles again until that has settled.
    for _ in range(6):
        cycle()
    return _rate(cycle, len(samplers), seconds)


def _batches(sampler: Any, batch_size: int):
    while True:
        yield sampler.next(batch_size)


def mechgap_rate(recipe: Recipe, seconds: float) -> float:
    """Seed-steps per second on all cores."""
    use_one_thread_each()
    import jax

    from mechgap.training.local import compiled_trainer
    from mechgap.training.train import default_chunk

    width = default_chunk(recipe)
    trainer = compiled_trainer(recipe)
    places = lanes()[:CORES]
    running = [
        trainer.start(range(i * width, (i + 1) * width), place) for i, place in enumerate(places)
    ]
    steps = 2 * len(recipe.train_lengths)
    threads = ThreadPoolExecutor(len(places))

    def one(learners: Any) -> Any:
        return jax.block_until_ready(trainer.advance(learners, steps)[0])

    def cycle() -> None:
        running[:] = threads.map(one, running)

    cycle()
    return _rate(cycle, steps * width * len(places), seconds)


def _rate(cycle: Any, steps: int, seconds: float) -> float:
    """The best of four stretches: noise only ever takes away."""
    rates = []
    for _ in range(4):
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds / 4:
            cycle()
            count += steps
        rates.append(count / (time.perf_counter() - began))
    return max(rates)


def loss_difference(recipe: Recipe) -> float:
    """Relative difference of the two losses, same parameters, same batch."""
    import jax

    from mechgap.interop.dm_clrs import baseline_model, from_haiku, to_feedback
    from mechgap.tasks.sampling import sample
    from mechgap.training.lesson import Lesson, groups_by_length
    from mechgap.training.loss import loss_and_gradient

    batch = sample(recipe.task, jax.random.key(0), batch_size=recipe.batch_size, nodes=16).trim()
    feedback = to_feedback(batch)
    model = baseline_model(recipe.task, recipe.network_config, feedback)
    theirs = float(model.compute_grad(jax.random.PRNGKey(0), feedback)[0])
    network = from_haiku(recipe.task, recipe.network_config, model.params)
    ours = float(jax.jit(loss_and_gradient)(network, *groups_by_length(Lesson(batch), 4))[0])
    return abs(ours - theirs) / abs(theirs)


SIDES = {"loss": lambda recipe, _: loss_difference(recipe), "dm-clrs": dm_clrs_rate,
         "mechgap": mechgap_rate}  # fmt: skip


def in_its_own_process(side: str, task: str, hidden: int, seconds: float) -> float:
    words = [sys.executable, __file__, "--side", side, "--task", task, "--hidden", str(hidden)]
    words += ["--seconds", str(seconds)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="per side and setting")
    parser.add_argument("--hidden", type=int, nargs="*", default=[128, 4])
    parser.add_argument("--tasks", nargs="*", default=["bfs", "bellman_ford"])
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--task", default="bfs", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        recipe = make_recipe(given.task, overrides={"hidden_size": given.hidden[0]})
        print(json.dumps(SIDES[given.side](recipe, given.seconds)))
        return
    again = set(product(given.tasks, given.hidden))
    stored = earlier("training").get("settings", [])
    rows = [row for row in stored if (row["task"], row["hidden_size"]) not in again]
    for hidden in given.hidden:
        for task in given.tasks:
            found = {side: in_its_own_process(side, task, hidden, given.seconds) for side in SIDES}
            if found["loss"] > 1e-5:
                raise SystemExit(f"the losses differ by {found['loss']:.1e}")
            rows.append(
                {
                    "task": task,
                    "hidden_size": hidden,
                    "loss_difference": float(f"{found['loss']:.1e}"),
                    "dm_clrs": round(found["dm-clrs"], 2),
                    "mechgap": round(found["mechgap"], 1),
                    "ratio": round(found["mechgap"] / found["dm-clrs"], 1),
                }
            )
            print(rows[-1], flush=True)
            save("training", {"unit": "seed-steps per second", "settings": rows})


if __name__ == "__main__":
    main()
