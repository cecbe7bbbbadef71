"""What the page's player shows: a few graphs, every network's run over them, the exact one."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.sparse.csgraph import shortest_path

from mechgap.measures.results import NetworkMeasures, Results
from mechgap.report.answer import nearest
from mechgap.tasks.specs import Task, Type
from mechgap.typed import Arrays

MOST_SEEDS = 24
"""More would make the page heavy; the closest and the most and least accurate are kept."""


def player(results: Results) -> dict[str, Any] | None:
    """The player's data; None where no examples were kept."""
    series = results.examples
    if not series:
        return None
    task = results.recipe.posed
    mechanisms = [n.removeprefix("senders/") for n in series if n.startswith("senders/")]
    if mechanisms:
        first = nearest(results)
        mechanisms.sort(key=lambda name: (name != first, name))
    supports = _supports(results, series)
    # A mechanism that selects several times in a hint step is shown phase by phase.
    hints = max(1, int(series["lengths"].max()) - 1)
    phases = len(series[f"senders/{mechanisms[0]}"]) // hints if mechanisms else 1
    samples = [
        _sample(task, series, supports[k], mechanisms, phases, k)
        for k in range(len(series["lengths"]))
    ]
    flags = [f.name for f in task.hints if f.type is Type.MASK]
    pointers = [f.name for f in task.hints if f.type is Type.POINTER]
    return {
        "samples": samples,
        "seeds": [
            {
                "name": f"seed {seed} ({100 * network.accuracy:.1f} % accurate)",
                "samples": _runs(task, network, samples, phases),
            }
            for seed, network in _chosen(results).items()
        ],
        "mechanisms": mechanisms,
        "phases": phases,
        "flag": flags[0] if flags else None,
        "pointer": pointers[0] if pointers else None,
        "scalars": [f.name for f in task.hints if f.type is Type.SCALAR],
    }


def _chosen(results: Results) -> dict[int, NetworkMeasures]:
    seeds, closest = results.seeds, results.solutions.closest_seed
    by_accuracy = sorted(seeds, key=lambda seed: -seeds[seed].accuracy)
    first = [] if closest is None else [closest]
    ordered = dict.fromkeys([*first, by_accuracy[0], by_accuracy[-1], *seeds])
    return {seed: seeds[seed] for seed in sorted(list(ordered)[:MOST_SEEDS])}


def _supports(results: Results, series: Arrays) -> list[Bool[np.ndarray, "n n"]]:
    """Pairs worth a number: neighbours, oneself, and wherever some network attends."""
    adjacent = series["inputs/adj"] > 0
    support = adjacent | adjacent.swapaxes(1, 2) | np.eye(adjacent.shape[1], dtype=bool)
    for network in _chosen(results).values():
        support = support | (network.examples["attention"].max(0) > 5e-4)
    return list(support)


def _sample(
    task: Task,
    series: Arrays,
    support: Bool[np.ndarray, "n n"],
    mechanisms: list[str],
    phases: int,
    k: int,
) -> dict[str, Any]:
    steps = max(1, int(series["lengths"][k]) - 1)
    edges = np.argwhere(np.triu(series["inputs/adj"][k] + series["inputs/adj"][k].T, 1))
    source = series.get("inputs/s")
    return {
        "steps": steps,
        "places": np.round(places(series["inputs/adj"][k] > 0), 4).tolist(),
        "edges": edges.tolist(),
        "pairs": np.argwhere(support).tolist(),
        "source": -1 if source is None else int(source[k].argmax()),
        "hints": {
            f.name: _listed(series[f"hints/{f.name}"][1 : steps + 1, k])
            for f in _shown(task)
            if series[f"hints/{f.name}"].shape[0] > steps
        },
        "senders": {m: series[f"senders/{m}"][: phases * steps, k].tolist() for m in mechanisms},
    }


def _shown(task: Task):
    """Hints that every node has one number of."""
    return [f for f in task.hints if f.type in {Type.MASK, Type.POINTER, Type.SCALAR}
            and f.location.value == "node"]  # fmt: skip


def _runs(
    task: Task, network: NetworkMeasures, samples: list[dict[str, Any]], phases: int
) -> list[dict[str, Any]]:
    attention = network.examples["attention"].astype(np.float32)
    runs = []
    for k, sample in enumerate(samples):
        to, sender = np.array(sample["pairs"]).T
        steps = sample["steps"]
        seen = attention[: phases * steps, k, to, sender]
        runs.append(
            {
                "attention": np.rint(1000 * seen).astype(int).tolist(),
                "hints": {
                    f.name: _listed(network.examples[f"hints/{f.name}"][:steps, k])
                    for f in _shown(task)
                    if f.name in sample["hints"] and network.traces
                },
            }
        )
    return runs


def _listed(values: np.ndarray) -> list[Any]:
    if np.issubdtype(values.dtype, np.integer):
        return values.tolist()
    return np.round(values.astype(float), 4).tolist()


def places(adjacent: Bool[np.ndarray, "n n"]) -> Float[np.ndarray, "n 2"]:
    """Where to draw nodes, in the unit square: distances as near as can be to those in the graph.

    Stress is lowered step by step from a circle (Gansner, Koren and North's majorisation). The
    longest extent is laid along the diagonal, and both sides of the square are filled.
    """
    n = len(adjacent)
    angle = 2 * np.pi * np.arange(n) / n
    at = np.stack([np.sin(angle), -np.cos(angle)], axis=1)
    if n > 2:
        wanted = shortest_path(adjacent | adjacent.T, unweighted=True)
        wanted = np.where(np.isfinite(wanted), wanted, 3.0)  # parts that are not connected
        np.fill_diagonal(wanted, 1)
        weight = wanted**-2.0
        np.fill_diagonal(weight, 0)
        at = at * wanted.max() / 2
        for _ in range(300):
            apart = at[:, None] - at[None]
            length = np.maximum(np.linalg.norm(apart, axis=-1), 1e-9)
            pull = at[None] + apart * (wanted / length)[..., None]
            at = (weight[..., None] * pull).sum(1) / weight.sum(1, keepdims=True)
        _, _, axes = np.linalg.svd(at - at.mean(0))
        at = at @ axes.T @ np.array([[1, 1], [1, -1]])
    low, high = at.min(0), at.max(0)
    return 0.5 + 0.84 * (at - (low + high) / 2) / np.maximum(high - low, 1e-9)
