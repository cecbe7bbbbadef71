"""Runs whose networks are as they were before training: soon made, and measured like any other."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from mechgap.training.population import held_out, initial, score
from mechgap.training.presets import make_recipe
from mechgap.training.store import Store

SMALL: dict[str, Any] = {
    "hidden_size": 4,
    "train_lengths": (6,),
    "length_generalize": False,
    "train_steps": 20,
}


def untrained_run(folder: Path, task: str = "bfs", seeds: tuple[int, ...] = (0, 1, 2), **more: Any):
    """A run folder with so many seeds of a small recipe."""
    recipe = make_recipe(task, overrides={**SMALL, **more})
    scored = eqx.filter_jit(score)
    validation, test = held_out(recipe)
    with Store.writing(folder, recipe, 1) as store:
        for seed in seeds:
            network = initial(recipe, jnp.int32(seed)).network
            found = float(scored(network, validation)), float(scored(network, test))
            store.put(seed, network, *found, "untrained")
    return folder
