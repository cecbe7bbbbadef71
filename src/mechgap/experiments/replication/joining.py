"""Numbers of one population from two places: those that are kept, and those of a run.

A run folder can be gone while its numbers are kept (`results/` is in the repository, weights are
not). Its seeds are not trained again: further ones are, and their numbers join the others.
"""

from collections.abc import Mapping
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.measures.correlation import correlation
from mechgap.measures.results import without_nan

Numbers = Mapping[str, Any]

_OF_SEEDS = ("seed", "accuracy", "accuracy_last")
_WITH_ACCURACY = {"internal": "internal_tv", "external": "external"}


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
    for name in ("trajectory", "ends"):
        others = [row for row in kept.get(name, ()) if row[0] not in new["seed"]]
        if rows := [*others, *new.get(name, ())]:
            both[name] = sorted(rows, key=lambda row: row[:2])
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
    columns = tuple(key for key, value in new.items() if isinstance(value, list))
    rows = _rows(kept, new, columns)
    return {
        **new,
        **rows,
        "correlation": {
            kind: kept["correlation"][kind]
            and without_nan(correlation(*_known(rows["accuracy"], rows[measure])).data())
            for kind, measure in _WITH_ACCURACY.items()
        },
        "solutions": _solutions(kept, new),
    }


def _solutions(kept: Numbers, new: Numbers) -> Numbers:
    """Distances are between networks that were side by side: those of the larger population."""
    more = max(new, kept, key=_compared)
    return {**more["solutions"], "seeds": _compared(more)}


def _compared(measures: Numbers) -> int:
    """Between how many networks distances were measured."""
    return measures["solutions"].get("seeds", len(measures["seed"]))


def _rows(kept: Numbers, new: Numbers, columns: tuple[str, ...]) -> dict[str, list[Any]]:
    """Columns of both, each seed once, in the order of seeds."""
    old = [i for i, seed in enumerate(kept["seed"]) if seed not in new["seed"]]
    seeds = [kept["seed"][i] for i in old] + list(new["seed"])
    order = sorted(range(len(seeds)), key=seeds.__getitem__)

    def column(name: str) -> list[Any]:
        values = [kept[name][i] for i in old] + list(new[name])
        return [values[i] for i in order]

    return {name: column(name) for name in columns}


def _known(x: list[Any], y: list[Any]) -> tuple[list[float], list[float]]:
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    return [a for a, _ in pairs], [b for _, b in pairs]
