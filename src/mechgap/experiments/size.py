"""How much of a population fits into about five minutes on two cores.

Time goes into pairs of nodes: a message-passing step over a graph looks at each. So the cost of a
recipe is told from how long its traces are, with two constants fitted to the speeds in
`experiments/replication/rates.json`, which were measured. The choice depends on the recipe alone:
the same command is the same experiment everywhere, only faster or slower.
"""

from dataclasses import dataclass, replace
from functools import cache

import jax
import numpy as np

from mechgap.errors import InvalidInput
from mechgap.measures.data import DEEP_GRAPHS, DEEP_NODES
from mechgap.tasks.official import NODES, SAMPLES, Split
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import Task
from mechgap.training.recipe import Recipe

CORES = 2
TRAINING_SECONDS = 160.0
"""Of the five minutes; the rest is compiling and measuring."""
STEP_SECONDS, PAIR_SECONDS = 0.013, 7e-5 / 32
"""Of a training step on one core: in any case, and for every pair of nodes that is looked at."""
FORWARD = 1 / 3
"""What a run costs of a training step over the same graphs."""
LONGEST_PASS = 4.0
"""Seconds that one run over the test graphs may take; measuring a population takes many."""
LONG = 0.3
"""Traces that have more than this share of the longest are taken to grow with the graph."""
CHOICES = ((4, 2000), (4, 1000), (2, 1000), (2, 500), (2, 250), (2, 150), (2, 100))
"""Seeds and steps, the largest that fits is taken."""


@dataclass(frozen=True)
class Size:
    """How large a population is, and what it is measured on."""

    seeds: int
    steps: int
    on_official_graphs: bool
    """Whether it is tested on the official graphs of 64 nodes, or on ones of the training size."""
    deep_graphs: int
    """How many sparse graphs with long traces it is looked at on."""
    seconds: float
    """About how long training takes on two cores."""

    def with_(self, seeds: int | None, steps: int | None, official: bool | None) -> "Size":
        """The same with another number of seeds or steps, or on other graphs."""
        for name, value in (("seeds", seeds), ("steps", steps)):
            if value is not None and value < 1:
                raise InvalidInput(f"{name} must be at least 1; got {value}")
        new = replace(
            self,
            seeds=seeds or self.seeds,
            steps=steps or self.steps,
            on_official_graphs=self.on_official_graphs if official is None else official,
        )
        return replace(
            new, seconds=self.seconds * new.seeds * new.steps / (self.seeds * self.steps)
        )


def gap_size(recipe: Recipe) -> Size:
    """What takes about five minutes in all."""
    step = step_seconds(recipe)
    fitting = (c for c in CHOICES if c[0] * c[1] * step / CORES <= TRAINING_SECONDS)
    seeds, steps = next(fitting, CHOICES[-1])
    test = SAMPLES * _pairs(recipe, NODES[Split.TEST]) * PAIR_SECONDS * FORWARD
    deep = _pairs(recipe, DEEP_NODES) * PAIR_SECONDS * FORWARD
    return Size(
        seeds=seeds,
        steps=steps,
        on_official_graphs=test <= LONGEST_PASS,
        deep_graphs=int(np.clip(2 * LONGEST_PASS / deep, 32, DEEP_GRAPHS)),
        seconds=seeds * steps * step / CORES,
    )


def step_seconds(recipe: Recipe) -> float:
    """About how long a training step of one seed takes on one core."""
    sizes = recipe.train_lengths
    largest = _pairs(recipe, max(sizes))
    # Traces of smaller graphs are shorter in proportion.
    share = float(np.mean([(n / max(sizes)) ** 3 for n in sizes]))
    width = recipe.hidden_size / 128
    return STEP_SECONDS + recipe.batch_size * largest * share * width * PAIR_SECONDS


def _pairs(recipe: Recipe, nodes: int) -> float:
    """About how many pairs of nodes a run over a graph looks at."""
    task, known = recipe.posed, max(recipe.train_lengths)
    steps = _mean_steps(task, known)
    if steps > LONG * task.max_hints(known):  # grows with the graph
        steps *= task.max_hints(nodes) / task.max_hints(known)
    return steps * nodes**2 * recipe.nb_msg_passing_steps


@cache
def _mean_steps(task: Task, nodes: int) -> float:
    """How long traces of training graphs are, on average."""
    graphs = sample(task, jax.random.key(0), batch_size=64, nodes=nodes)
    return float(np.maximum(1, np.asarray(graphs.lengths) - 1).mean())
