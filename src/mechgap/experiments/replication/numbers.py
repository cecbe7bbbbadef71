"""`results/`: one small file of numbers per population. Tables are made from these alone.

A file holds the recipe, versions, scores and measures of finished seeds. No weights.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.measures.plain import rounded
from mechgap.measures.results import load_results
from mechgap.training.store import DATABASE, Store, write_file

FORMAT = 3
_KEPT = ("accuracy", "graph_accuracy", "external", "nearest", "deep", "causal",
         "compiled_with_its_attention")  # fmt: skip
_KEPT_OF_GAPS = ("agreement", "agreement_strict", "misplaced", "tv", "sharpness", "parts")


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
        "best_step": [row.best_step for row in finished],
    }
    try:
        measured = load_results(folder).numbers
    except InvalidInput:
        return numbers
    numbers["measures"] = {
        "parameters": measured["parameters"],
        "reference": measured["reference"],
        "seeds": [{"seed": row["seed"], **_kept(row)} for row in measured["seeds"]],
        "yardsticks": {name: _kept(row) for name, row in measured["yardsticks"].items()},
        "correlation": measured["correlation"],
        "solutions": measured["solutions"],
    }
    return numbers


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    """Of everything that was measured of a network, what is kept when it is gone."""
    gaps = {
        mechanism: {key: gap[key] for key in _KEPT_OF_GAPS}
        for mechanism, gap in row["gaps"]["test"].items()
    }
    return {**{key: row[key] for key in _KEPT}, "gaps": gaps}


def save_numbers(results: Path, name: str, numbers: Mapping[str, Any]) -> None:
    """Write a population's file, whole or not at all."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        text = _text({"format": FORMAT, **numbers})
        write_file(results / f"{name}.json", (text + "\n").encode())
    except OSError as error:
        raise InvalidInput(f"cannot write to '{results}': {error}") from error


def load_numbers(results: Path, name: str) -> dict[str, Any] | None:
    """A population's numbers; None where there are none yet."""
    path = results / f"{name}.json"
    try:
        numbers = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"'{path}' cannot be read ({error}). Remove it and run again") from error
    if numbers.get("format") != FORMAT:
        raise InvalidInput(f"'{path}' is of another version of mechgap. Remove it and run again")
    return numbers


def _text(value: Any, indent: str = "") -> str:
    """JSON in which mappings and lists of them take several lines; numbers have six digits."""
    if isinstance(value, Mapping):
        inner = indent + " "
        lines = [f"{inner}{json.dumps(k)}: {_text(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        inner = indent + " "
        rows = (inner + json.dumps(rounded(v), allow_nan=False) for v in value)
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(rounded(value), allow_nan=False)
