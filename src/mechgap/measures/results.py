"""Measures as files in the run folder: numbers as JSON, series as safetensors.

What is not a number (no active row, one seed only) is null. Figures and pages are made from these
files; nothing is measured again.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from mechgap.display import html_table
from mechgap.errors import InvalidInput
from mechgap.measures.causal import Causal
from mechgap.measures.plain import without_nan
from mechgap.measures.population import NetworkMeasures, PopulationMeasures
from mechgap.measures.solutions import Solutions
from mechgap.network.files import packed
from mechgap.training.provenance import made_with
from mechgap.training.store import write_file

NUMBERS, SERIES = "measures.json", "measures.safetensors"
FORMAT = 3
"""Of the numbers; files of another format are to be made again."""
FORMS = ("paper", "l1", "tv")
"""The three normalisations of the internal gap."""
PAPER_SAYS = {"mean_between": 0.009, "closest_to_compiled": 0.37}


@dataclass(frozen=True)
class Results:
    """A run's measures, as they are in its files."""

    numbers: Mapping[str, Any]
    series: Mapping[str, np.ndarray]

    @property
    def mechanisms(self) -> list[str]:
        """The exact mechanisms that attention was compared with, the compiled one first."""
        return list(self.numbers["seeds"][0]["gaps"]["test"])

    def _repr_html_(self) -> str:
        named = [(f"seed {row['seed']}", row) for row in self.numbers["seeds"]]
        named += list(self.numbers["yardsticks"].items())
        measures = ("agreement", "misplaced", "tv")
        rows = [
            (
                name,
                *(_shown(row[c]) for c in ("accuracy", "graph_accuracy", "external")),
                *(_shown(gap[m]) for gap in row["gaps"]["test"].values() for m in measures),
            )
            for name, row in named
        ]
        head = [f"{m} ({name})" for name in self.mechanisms for m in measures]
        columns = ["", "accuracy", "graph accuracy", "external", *head]
        return html_table(columns, rows, f"{self.numbers['task']}, test graphs")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def results_of(
    measured: PopulationMeasures, which: str, diverged: Sequence[int] = (), graphs: str = "test"
) -> Results:
    """Numbers and series of a population; `diverged` seeds were left out.

    `graphs` is what those are called that it was measured on.
    """
    seeds = [{"seed": seed, **_network(m)} for seed, m in measured.seeds.items()]
    series = {f"seeds/{s}/{k}": v for s, m in measured.seeds.items() for k, v in _series(m).items()}
    series |= {f"{n}/{k}": v for n, m in measured.yardsticks.items() for k, v in _series(m).items()}
    found = measured.solutions
    if len(measured.seeds) > 1:
        series |= {
            "solutions/distances": found.distances.astype(np.float32),
            "solutions/linkage": found.linkage,
            "solutions/order": found.order.astype(np.int32),
            "solutions/labels": found.labels.astype(np.int32),
        }
    series |= {f"examples/{name}": values for name, values in measured.examples.items()}
    numbers = {
        "format": FORMAT,
        "task": measured.recipe.task,
        "parameters": which,
        "diverged": list(diverged),
        "graphs": {
            "name": graphs,
            "count": measured.test_count,
            "nodes": measured.test_nodes,
            "outside_certificate": measured.outside_certificate,
        },
        "recipe": measured.recipe.data(),
        **made_with(),
        "seeds": seeds,
        "yardsticks": {name: _network(m) for name, m in measured.yardsticks.items()},
        "reference": measured.reference,
        "correlation": asdict(measured.correlations),
        "solutions": _solutions(measured),
    }
    return Results(without_nan(numbers), series)


def save_results(folder: Path, results: Results) -> None:
    """Write both files, each whole or not at all."""
    try:
        write_file(folder / SERIES, packed(results.series, {"format": "mechgap measures 1"}))
        text = json.dumps(results.numbers, indent=1, allow_nan=False)
        write_file(folder / NUMBERS, (text + "\n").encode())
    except OSError as error:
        raise InvalidInput(f"cannot write to '{folder}': {error}") from error


def load_results(folder: Path) -> Results:
    """The measures of a run; an error says how to make them."""
    try:
        numbers = json.loads((folder / NUMBERS).read_text())
        series = load_tensors((folder / SERIES).read_bytes())
    except FileNotFoundError as error:
        raise InvalidInput(
            f"'{folder}' has not been measured. Run: mechgap measure {folder}"
        ) from error
    except (OSError, ValueError, SafetensorError) as error:
        raise InvalidInput(
            f"the measures in '{folder}' cannot be read ({error}). Run: mechgap measure {folder}"
        ) from error
    if numbers.get("format") != FORMAT:
        raise InvalidInput(
            f"the measures in '{folder}' are of an earlier version. Run: mechgap measure {folder}"
        )
    return Results(numbers, series)


def _network(m: NetworkMeasures) -> dict[str, Any]:
    nearest = m.nearest()
    return {
        "accuracy": m.accuracy,
        "graph_accuracy": m.graph_accuracy,
        "external": m.external,
        "nearest": nearest.mechanism if nearest else None,
        "gaps": {
            data: {gap.mechanism: gap.numbers for gap in gaps} for data, gaps in m.gaps.items()
        },
        "traces": {
            data: {
                "accuracy": e.accuracy,
                "accuracy_fine": e.accuracy_fine,
                "hints": dict(e.hints),
                "dm_clrs": dict(e.dm_clrs),
            }
            for data, e in m.traces.items()
        },
        "deep": asdict(m.deep) if m.deep else None,
        "causal": _causal(m.causal) if m.causal else None,
        "compiled_with_its_attention": m.compiled_with_its_attention,
        "probes": {name: vars(probe) for name, probe in m.probes.items()},
    }


def _causal(found: Causal) -> dict[str, Any]:
    """By mechanism, each foil with its verdict."""
    mechanisms = {
        forced.mechanism: {
            "exact": forced.exact,
            "rows": dict(forced.rows),
            "foils": [{**asdict(foil), "verdict": foil.verdict} for foil in forced.foils],
        }
        for forced in found.mechanisms
    }
    return {**asdict(found), "mechanisms": mechanisms}


def _series(m: NetworkMeasures) -> dict[str, np.ndarray]:
    found = {"accuracy_by_sample": m.accuracy_by_sample.astype(np.float32)}
    for data, gaps in m.gaps.items():
        for gap in gaps:
            for name, values in gap.series.items():
                found[f"gaps/{data}/{gap.mechanism}/{name}"] = values.astype(np.float32)
    for data, e in m.traces.items():
        for name, values in e.over_time.items():
            found[f"traces/{data}/{name}"] = values.astype(np.float32)
    found |= {f"examples/{name}": values for name, values in m.examples.items()}
    return found


def _solutions(measured: PopulationMeasures) -> dict[str, Any]:
    closest = measured.closest_to(measured.reference) if measured.reference else None
    return solution_numbers(
        measured.solutions,
        len(measured.seeds),
        measured.test_nodes,
        closest[0] if closest else None,
        {form: getattr(closest[1], form) for form in FORMS} if closest else None,
    )


def solution_numbers(
    found: Solutions,
    seeds: int,
    nodes: int,
    closest_seed: int | None,
    to_compiled: Mapping[str, float] | None,
) -> dict[str, Any]:
    """How the solutions of a population lie to each other and to the compiled one, as numbers."""
    between = in_all_forms(found.mean_between, nodes)
    return {
        "seeds": seeds,
        "mean_between": between,
        "closest_to_compiled": to_compiled,
        "closest_seed": closest_seed,
        "clusters": found.clusters,
        "one_cluster_p": found.one_cluster_p,
        "silhouette": found.silhouette,
        "stability": found.stability,
        "clusters_at_default_cut": found.clusters_at_default_cut,
        "paper": {
            "mean_between": _beside_paper("mean_between", between),
            "closest_to_compiled": _beside_paper("closest_to_compiled", to_compiled),
        },
    }


def in_all_forms(l1: float, nodes: int) -> dict[str, float]:
    """An l1 distance in the three normalisations.

    >>> in_all_forms(0.5, 4)
    {'paper': 0.125, 'l1': 0.5, 'tv': 0.25}
    """
    return {"paper": l1 / nodes, "l1": l1, "tv": l1 / 2}


def _beside_paper(name: str, ours: Mapping[str, float] | None) -> dict[str, Any]:
    """The paper's number, and the normalisation in which ours comes nearest to it."""
    printed = PAPER_SAYS[name]
    usable = {f: v for f, v in (ours or {}).items() if v is not None and v > 0}
    nearest = min(usable, key=lambda f: abs(math.log(usable[f] / printed)), default=None)
    ratio = usable[nearest] / printed if nearest else None
    return {"printed": printed, "nearest_form": nearest, "ours_over_printed": ratio}
