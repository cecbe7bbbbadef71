"""`results/`: one small file of numbers per population. Tables are made from these alone.

A file holds the recipe, versions, scores and measures of finished seeds. No weights.
"""

import json
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.measures.results import load_results
from mechgap.measures.trajectory import ENDS, load_trajectory
from mechgap.measures.trajectory import FILE as TRAJECTORY
from mechgap.training.store import DATABASE, Store, write_file

_MEASURES = (
    *("accuracy", "internal_paper", "internal_l1", "internal_tv", "top1_active", "external"),
    "mechanism",
)


def numbers_of(folder: Path) -> dict[str, Any] | None:
    """What is kept of a run; None while no seed is finished."""
    if not (folder / DATABASE).exists():
        return None
    with Store.reading(folder) as store:
        rows, recipe, about = store.seeds(), store.recipe, store.about
    finished = [row for row in rows if row.state == "finished"]
    if not finished:
        return None
    numbers: dict[str, Any] = {
        "recipe": recipe.data(),
        "versions": about["versions"],
        "commit": about["commit"],
        "diverged": {str(row.seed): row.diverged_at for row in rows if row.state == "diverged"},
        "seed": [row.seed for row in finished],
        "accuracy": [row.test_of_best for row in finished],
        "accuracy_last": [row.test for row in finished],
    }
    for name, file in (("trajectory", TRAJECTORY), ("ends", ENDS)):
        if (folder / file).exists():
            numbers[name] = [list(astuple(row)) for row in load_trajectory(folder, file)]
    try:
        measured = load_results(folder).numbers
    except InvalidInput:
        return numbers
    numbers["measures"] = {
        "parameters": measured["parameters"],
        "seed": [row["seed"] for row in measured["seeds"]],
        **{key: [row[key] for row in measured["seeds"]] for key in _MEASURES},
        "yardsticks": {
            name: {key: row[key] for key in _MEASURES}
            for name, row in measured["yardsticks"].items()
        },
        "correlation": measured["correlation"],
        "solutions": measured["solutions"],
    }
    return numbers


def save_numbers(results: Path, name: str, numbers: Mapping[str, Any]) -> None:
    """Write a population's file, whole or not at all."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        write_file(results / f"{name}.json", (_text(numbers) + "\n").encode())
    except OSError as error:
        raise InvalidInput(f"cannot write to '{results}': {error}") from error


def load_numbers(results: Path, name: str) -> dict[str, Any] | None:
    """A population's numbers; None where there are none yet."""
    path = results / f"{name}.json"
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"'{path}' cannot be read ({error}). Remove it and run again") from error


def _text(value: Any, indent: str = "") -> str:
    """JSON in which mappings and lists of lists take several lines; numbers have six digits."""
    if isinstance(value, Mapping):
        inner = indent + " "
        lines = [f"{inner}{json.dumps(k)}: {_text(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"
    if isinstance(value, list) and value and isinstance(value[0], list):
        inner = indent + " "
        return "[\n" + ",\n".join(inner + _text(v, inner) for v in value) + f"\n{indent}]"
    return json.dumps(_rounded(value), allow_nan=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
