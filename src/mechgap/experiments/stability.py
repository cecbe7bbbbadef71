"""Start from compiled parameters, train on: does the network stay what it was?"""

from collections.abc import Mapping
from typing import Any

from mechgap.compiler.target import get_target
from mechgap.errors import unknown
from mechgap.programs.library import LIBRARY
from mechgap.training.recipe import Recipe, make_recipe

_EVERY = (10, 20, 50, 100, 200, 500, 1000, 2000, 3000, 5000, 7000, 10_000)


def stability_recipe(
    program: str, target: str, *, noise: float = 0.0, overrides: Mapping[str, Any] | None = None
) -> Recipe:
    """The paper's recipe from compiled parameters: the network is the target's.

    With a pre-attention bias there is one size, 16 nodes, in training and test.
    """
    if program not in LIBRARY:
        raise unknown("program", program, LIBRARY)
    shape, written = get_target(target), LIBRARY[program]
    sizes = {"train_lengths": (16,), "length_generalize": False} if shape.pre_attention_bias else {}
    values = {
        "start_from": f"{program}:{target}",
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
    return make_recipe(written.task, overrides=values)


def snapshot_steps(recipe: Recipe) -> list[int]:
    """Steps to look at: the start, early ones close together, and the last."""
    wanted = {step for step in (0, *_EVERY) if step < recipe.train_steps}
    return sorted(step for step in wanted if step % recipe.eval_every == 0)
