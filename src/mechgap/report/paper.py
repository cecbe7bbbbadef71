"""The paper's printed numbers, to stand beside ours."""

from typing import Any

from mechgap.training.recipe import PRESETS, Recipe, make_recipe

# Test accuracy in percent: mean, standard deviation, largest, initialisations.
_NUMBERS: dict[tuple[str, str], tuple[float, float, float | None, int]] = {
    ("bfs", "default"): (98.30, 0.97, 100.0, 128),
    ("dfs", "default"): (12.74, 3.44, 18.21, 128),
    ("bellman_ford", "default"): (90.63, 1.27, 92.77, 128),
    ("dfs", "trace_ablation"): (16.49, 2.45, 20.61, 128),
    ("bfs", "trace_ablation"): (98.74, 0.98, 100.0, 128),
    ("bellman_ford", "trace_ablation"): (90.14, 1.15, 91.80, 128),
    ("bellman_ford", "minimal"): (38.97, 8.35, 59.13, 1024),
    ("bellman_ford", "minimal_both"): (74.38, 10.29, 88.77, 1024),
    ("bfs", "minimal"): (81.60, 11.32, 99.56, 1024),
    ("bfs", "minimal_pre_att_bias"): (93.32, 6.89, 99.32, 1024),
    ("bellman_ford", "edge_info_default"): (86.59, 5.97, 92.24, 128),
    ("bellman_ford", "edge_info"): (90.67, 1.40, 92.72, 128),
    ("bfs", "ablation_default"): (99.92, 0.28, 100.0, 128),
    ("bfs", "ablation_pre_att_bias"): (99.72, 0.95, 100.0, 128),
    ("bellman_ford", "ablation_default"): (97.31, 0.92, 98.93, 128),
    ("bellman_ford", "ablation_both"): (97.81, 0.88, 99.41, 128),
    ("bfs", "grokking"): (97.55, 1.52, None, 128),
    ("bfs_sequential", "default"): (92.90, 2.85, 95.61, 128),
    ("dfs_simplified", "default"): (11.66, 4.16, 20.75, 128),
}


def paper_number(recipe: Recipe) -> dict[str, Any] | None:
    """The paper's test accuracy for this recipe, if it has one. The number of steps must agree."""
    for preset in PRESETS:
        found = _NUMBERS.get((recipe.task, preset))
        if found and recipe == make_recipe(recipe.task, preset):
            mean, std, largest, seeds = found
            return {"mean": mean, "std": std, "max": largest, "n": seeds}
    return None
