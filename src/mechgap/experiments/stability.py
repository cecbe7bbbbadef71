"""Start from compiled parameters, train on: does the network stay what it was?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechgap.compiler.target import get_target
from mechgap.errors import InvalidInput
from mechgap.experiments.training import train_recipe
from mechgap.measures.snapshot import Snapshot, load_snapshots
from mechgap.programs.load import find_program
from mechgap.training.presets import make_recipe
from mechgap.training.recipe import Recipe
from mechgap.training.start import compiled_start
from mechgap.training.train import Watcher

_EVERY = (10, 20, 50, 100, 200, 500, 1000, 2000, 3000, 5000, 7000, 10_000)


def stability_recipe(
    program: str, target: str, *, noise: float = 0.0, overrides: Mapping[str, Any] | None = None
) -> Recipe:
    """The paper's recipe from compiled parameters: the network is the target's.

    With a pre-attention bias there is one size, 16 nodes, in training and test.
    """
    shape, written = get_target(target), find_program(program)
    sizes = {"train_lengths": (16,), "length_generalize": False} if shape.pre_attention_bias else {}
    values = {
        "start_from": f"{written.name}:{target}",
        "start_noise": noise,
        "use_ln": shape.layer_norm,
        "use_edge_info": shape.edge_information,
        "use_pre_att_bias": shape.pre_attention_bias,
        "processor_type": "gatv2_full" if shape.full_attention else "gatv2",
        "nb_msg_passing_steps": written.selections,
        "eval_every": 10,
        "test_every": 50,
        **sizes,
        **(overrides or {}),
    }
    return make_recipe(program, overrides=values)


def stability(
    recipe: Recipe, seeds: int, folder: Path, watcher: Watcher | None = None
) -> list[Snapshot]:
    """Train on from compiled parameters; what was seen at every step that is looked at.

    Raises:
        InvalidInput: the program does not compile into that network, or the folder holds another
            run.
        Stopped: the watcher asked for it; what was done is kept.
    """
    if seeds < 1:
        raise InvalidInput(f"seeds must be at least 1; got {seeds}")
    compiled_start(recipe)  # refuses what cannot be, before anything is written
    train_recipe(recipe, range(seeds), folder, snapshots=snapshot_steps(recipe), watcher=watcher)
    return [row for row in load_snapshots(folder) if row.which == "step"]


def snapshot_steps(recipe: Recipe) -> list[int]:
    """Steps to look at: the start, early ones close together, and the last."""
    wanted = {step for step in (0, *_EVERY) if step < recipe.train_steps}
    return sorted(step for step in wanted if step % recipe.eval_every == 0)
