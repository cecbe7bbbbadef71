"""What the page's player shows: a few graphs, every network's run over them, the exact one; and
the smallest graphs on which networks are wrong, with the run of the one that is.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.sparse.csgraph import shortest_path

from mechgap.measures.counterexample import Counterexample
from mechgap.measures.counterexamples import SearchedRun
from mechgap.measures.results import NetworkMeasures, Results
from mechgap.report.answer import nearest
from mechgap.tasks.specs import Task, Type
from mechgap.typed import Arrays

MOST_SEEDS = 24
"""More would make the page heavy; the closest and the most and least accurate are kept."""


def player(results: Results, searched: SearchedRun | None = None) -> dict[str, Any] | None:
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
    chosen, wrong = _chosen(results), _wrong(searched)
    runs: dict[int, list[dict[str, Any] | None]] = {
        seed: [_run(task, network.examples, s, phases, k) for k, s in enumerate(samples)]
        for seed, network in chosen.items()
    }
    for seed in chosen.keys() & wrong.keys():
        found = wrong[seed]
        support = _support(found.graph["inputs/adj"][0], [found.run["attention"][:, 0]])
        one = _sample(task, found.graph, support, mechanisms, phases, 0)
        samples.append({**one, "wrongOf": seed, "told": found.sentence})
        for other, each in runs.items():
            each.append(_run(task, found.run, one, phases, 0) if other == seed else None)
    flags = [f.name for f in task.hints if f.type is Type.MASK]
    pointers = [f.name for f in task.hints if f.type is Type.POINTER]
    return {
        "samples": samples,
        "seeds": [
            {
                "name": f"seed {seed} ({100 * network.accuracy:.1f} % accurate)",
                "samples": runs[seed],
            }
            for seed, network in chosen.items()
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


def openable(player: dict[str, Any] | None) -> set[int]:
    """The seeds whose wrong graph the player has."""
    samples = [] if player is None else player["samples"]
    return {sample["wrongOf"] for sample in samples if "wrongOf" in sample}


def _wrong(searched: SearchedRun | None) -> dict[int, Counterexample]:
    """The wrong graphs that were kept to be looked at, by seed."""
    seeds = {} if searched is None else searched.seeds
    return {seed: s.found for seed, s in seeds.items() if s.found is not None and s.found.graph}


def _supports(results: Results, series: Arrays) -> list[Bool[np.ndarray, "n n"]]:
    """For every example, the pairs worth a number."""
    networks = _chosen(results).values()
    return [
        _support(adjacent, [network.examples["attention"][:, k] for network in networks])
        for k, adjacent in enumerate(series["inputs/adj"])
    ]


def _support(
    adj: Float[np.ndarray, "n n"], attention: Iterable[Float[np.ndarray, "time n n"]]
) -> Bool[np.ndarray, "n n"]:
    """Pairs worth a number: neighbours, oneself, and wherever some network attends."""
    adjacent = adj > 0
    support = adjacent | adjacent.T | np.eye(len(adjacent), dtype=bool)
    for each in attention:
        support = support | (each.max(0) > 5e-4)
    return support


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


def _run(task: Task, series: Arrays, sample: dict[str, Any], phases: int, k: int) -> dict[str, Any]:
    """What a network did on one of the graphs of some series."""
    to, sender = np.array(sample["pairs"]).T
    steps = sample["steps"]
    seen = series["attention"][: phases * steps, k, to, sender].astype(np.float32)
    return {
        "attention": np.rint(1000 * seen).astype(int).tolist(),
        "hints": {
            f.name: _listed(series[f"hints/{f.name}"][:steps, k])
            for f in _shown(task)
            if f.name in sample["hints"] and f"hints/{f.name}" in series
        },
    }


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
