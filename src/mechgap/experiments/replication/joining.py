"""Numbers of one population from two places: those that are kept, and those of a run.

A run folder can be gone while its numbers are kept (`results/` is in the repository, weights are
not). Its seeds are not trained again: further ones are, and their numbers join the others.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.snapshots import Prints, solutions_of
from mechgap.measures.plain import without_nan
from mechgap.measures.population import correlations
from mechgap.measures.results import in_all_forms, solution_numbers

Numbers = Mapping[str, Any]

_OF_SEEDS = ("seed", "accuracy", "accuracy_last", "best_step")


def joined(kept: Numbers | None, new: Numbers) -> Numbers:
    """The numbers of all seeds; of those that both have, the new ones."""
    if kept is None or set(kept["seed"]) <= set(new["seed"]):
        return new
    if kept["recipe"] != new["recipe"]:
        other = sorted(k for k, v in new["recipe"].items() if kept["recipe"].get(k) != v)
        raise InvalidInput(
            f"the numbers that are kept were made by another recipe (it differs in "
            f"{', '.join(other)}). Move their file away, or give another folder for results"
        )
    both = {
        **new,
        **_rows(kept, new, _OF_SEEDS),
        "diverged": {**kept["diverged"], **new["diverged"]},
        "earlier": _earlier(kept, new["seed"]),
    }
    if "measures" in kept:
        both["measures"] = _measures(kept["measures"], new.get("measures"))
    return both


def _earlier(kept: Numbers, new: list[int]) -> list[Numbers]:
    """With what the seeds were made that are not new."""
    before = kept.get("earlier", [])
    own = {*kept["seed"]} - {seed for each in before for seed in each["seed"]}
    last = {"seed": sorted(own), "versions": kept["versions"], "commit": kept["commit"]}
    left = ({**each, "seed": [s for s in each["seed"] if s not in new]} for each in (*before, last))
    return [each for each in left if each["seed"]]


def _measures(kept: Numbers, new: Numbers | None) -> Numbers:
    if new is None:
        return kept
    mine = {row["seed"] for row in new["seeds"]}
    others = [row for row in kept["seeds"] if row["seed"] not in mine]
    rows = sorted([*others, *new["seeds"]], key=lambda row: row["seed"])
    names = list(rows[-1]["gaps"])

    def column(measure: str) -> dict[str, list[float | None]]:
        return {name: [row["gaps"].get(name, {}).get(measure) for row in rows] for name in names}

    found = correlations(
        [row["accuracy"] for row in rows],
        [row["external"] for row in rows],
        column("agreement"),
        column("tv"),
    )
    return {**new, "seeds": rows, "correlation": without_nan(asdict(found))}


def with_solutions(numbers: Numbers, population: Population, prints: Prints) -> Numbers:
    """The numbers with distances between all seeds that have fingerprints, if they are more."""
    measures = numbers.get("measures")
    if measures is None or len(prints) <= measures["solutions"]["seeds"]:
        return numbers
    found = solutions_of(population, prints)
    nodes = 64 if population.recipe.length_generalize else population.recipe.validation_nodes
    rows, reference = measures["seeds"], measures["reference"]
    gaps = {row["seed"]: row["gaps"][reference]["tv"] for row in rows if reference in row["gaps"]}
    closest = min(gaps, key=gaps.__getitem__, default=None)
    to_compiled = None if closest is None else in_all_forms(2 * gaps[closest], nodes)
    told = solution_numbers(found, len(prints), nodes, closest, to_compiled)
    return {**numbers, "measures": {**measures, "solutions": without_nan(told)}}


def _rows(kept: Numbers, new: Numbers, columns: tuple[str, ...]) -> dict[str, list[Any]]:
    """Columns of both, each seed once, in the order of seeds."""
    old = [i for i, seed in enumerate(kept["seed"]) if seed not in new["seed"]]
    seeds = [kept["seed"][i] for i in old] + list(new["seed"])
    order = sorted(range(len(seeds)), key=seeds.__getitem__)

    def column(name: str) -> list[Any]:
        values = [kept[name][i] for i in old] + list(new[name])
        return [values[i] for i in order]

    return {name: column(name) for name in columns}
