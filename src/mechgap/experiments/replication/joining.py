"""Numbers of one population from two places: those that are kept, and those of a run.

A run folder can be gone while its numbers are kept (`results/` is in the repository, weights are
not). Its seeds are not trained again: further ones are, and their numbers join the others.
"""

from dataclasses import fields, replace
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.experiments.replication.numbers import (
    KeptMeasures,
    KeptNetwork,
    KeptSeed,
    Made,
    Numbers,
)
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.snapshots import Prints, solutions_of
from mechgap.measures.correlation import correlations
from mechgap.measures.solutions import Between, closest

_OF_SEEDS = ("seed", "accuracy", "accuracy_last", "best_step")


def joined(kept: Numbers | None, new: Numbers) -> Numbers:
    """The numbers of all seeds; of those that both have, the new ones."""
    if kept is None or set(kept.seed) <= set(new.seed):
        return new
    if kept.recipe != new.recipe:
        then = kept.recipe.data()
        other = sorted(name for name, value in new.recipe.data().items() if then[name] != value)
        raise InvalidInput(
            f"the numbers that are kept were made by another recipe (it differs in "
            f"{', '.join(other)}). Move their file away, or give another folder for results"
        )
    return replace(
        new,
        **_columns(kept, new),
        diverged={**kept.diverged, **new.diverged},
        earlier=_earlier(kept, new.seed),
        measures=_measures(kept.measures, new.measures),
    )


def _earlier(kept: Numbers, new: tuple[int, ...]) -> tuple[Made, ...]:
    """With what the seeds were made that are not new."""
    own = {*kept.seed} - {seed for each in kept.earlier for seed in each.seed}
    last = Made(tuple(sorted(own)), kept.versions, kept.commit)
    left = (
        replace(each, seed=tuple(s for s in each.seed if s not in new))
        for each in (*kept.earlier, last)
    )
    return tuple(each for each in left if each.seed)


def _measures(kept: KeptMeasures | None, new: KeptMeasures | None) -> KeptMeasures | None:
    if kept is None or new is None:
        return kept or new
    mine = {row.seed for row in new.seeds}
    others = [row for row in kept.seeds if row.seed not in mine]
    rows = sorted([*others, *new.seeds], key=lambda row: row.seed)
    names = list(rows[-1].gaps)
    found = correlations(
        [row.accuracy for row in rows],
        [row.external for row in rows],
        {name: [_of(row, name, "agreement") for row in rows] for name in names},
        {name: [_of(row, name, "tv") for row in rows] for name in names},
    )
    baselines = {
        name: _richer(row, kept.baselines.get(name)) for name, row in new.baselines.items()
    }
    return replace(new, seeds=tuple(rows), baselines=baselines, correlation=found)


def _richer(new: KeptNetwork, kept: KeptNetwork | None) -> KeptNetwork:
    """A baseline with what was asked for when it was measured before, and not this time."""
    if kept is None:
        return new
    return replace(
        new,
        interchange=new.interchange or kept.interchange,
        channels=new.channels or kept.channels,
    )


def _of(row: KeptSeed, mechanism: str, measure: str) -> float:
    return getattr(row.gaps[mechanism], measure) if mechanism in row.gaps else float("nan")


def with_solutions(numbers: Numbers, population: Population, prints: Prints) -> Numbers:
    """The numbers with distances between all seeds that have fingerprints, if they are more."""
    measures = numbers.measures
    if measures is None or len(prints) <= measures.solutions.seeds:
        return numbers
    known = [row for row in measures.seeds if measures.reference in row.gaps]
    gaps = {row.seed: _of(row, measures.reference or "", "tv") for row in known}
    found = solutions_of(population, prints, closest(gaps))
    between = Between(**{f.name: getattr(found, f.name) for f in fields(Between)})
    return replace(numbers, measures=replace(measures, solutions=between))


def _columns(kept: Numbers, new: Numbers) -> dict[str, tuple[Any, ...]]:
    """Columns of both, each seed once, in the order of seeds."""
    old = [i for i, seed in enumerate(kept.seed) if seed not in new.seed]
    seeds = [*(kept.seed[i] for i in old), *new.seed]
    order = sorted(range(len(seeds)), key=seeds.__getitem__)

    def column(name: str) -> tuple[Any, ...]:
        values = [*(getattr(kept, name)[i] for i in old), *getattr(new, name)]
        return tuple(values[i] for i in order)

    return {name: column(name) for name in _OF_SEEDS}
