"""Train what tables need, or what narrows most intervals in a given time; numbers are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechgap.errors import InvalidInput
from mechgap.experiments.replication import tables
from mechgap.experiments.replication.budget import Candidate, plan
from mechgap.experiments.replication.figures import figure_populations
from mechgap.experiments.replication.keeping import keep_numbers
from mechgap.experiments.replication.kinds import duration
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.status import status_of
from mechgap.measures.snapshot import Observer
from mechgap.report.paper import paper_number
from mechgap.training.local import forget_programs
from mechgap.training.train import Engine, Stopped, Watcher, snapshots_at, train


@dataclass(frozen=True)
class Places:
    """Where training happens, where its numbers go, and who is told."""

    runs: Path
    results: Path
    engine: Engine
    watcher: Watcher


def needed(what: str, steps: int | None) -> list[Population]:
    """The populations of a table, of the `figures`, or of `all`, with so many steps."""
    found: Iterable[Population] = ()
    if what in tables.TABLES:
        found = tables.TABLES[what].populations
    elif what == "all":
        found = tables.all_populations().values()
    elif what == "figures":
        found = figure_populations().values()
    return [p if steps is None else p.shortened(steps) for p in found]


def train_all(populations: Iterable[Population], seeds: int | None, places: Places) -> None:
    """Train what is missing of some populations, and keep the numbers of all of them."""
    found = [status_of(p, seeds, places.runs, places.results) for p in populations]
    missing = [s for s in found if s.finished < s.wanted and s.to_train]
    if missing:
        names = ", ".join(f"{s.population.name} ({s.wanted} seeds)" for s in missing)
        time = duration(sum(s.seconds for s in missing))
        places.watcher.say(f"to train: {names}; about {time} here")
    for s in missing:
        train_population(s.population, s.to_train, places)
    for s in found:
        if s not in missing:  # what was trained is kept already
            keep_numbers(s.population, places.runs, places.results, places.watcher.tell)


def study_all(wanted: Iterable[tables.Table], places: Places) -> None:
    """Find out what some tables need of trained networks beside measures, and keep it."""
    for table in wanted:
        if table.study is not None:
            for population in table.populations:
                table.study.keep(population, places.runs, places.results, places.watcher.tell)


def spend(seconds: float, places: Places) -> None:
    """Train for a given time what narrows most intervals. The watcher says when it is over."""
    populations = tables.all_populations()
    candidates = []
    for population in populations.values():
        s = status_of(population, None, places.runs, places.results)
        printed = paper_number(population.recipe)
        most = printed["n"] if printed else population.seeds
        candidates.append(
            Candidate.of(population, s.finished, most, tables.rows_served(population), s.rate)
        )
    planned = plan(candidates, seconds)
    if not planned.seeds:
        cheapest = min(candidates, key=lambda c: c.seconds)
        raise InvalidInput(
            f"{duration(seconds)} is too short for any more seeds. The cheapest, "
            f"{cheapest.lot} of {cheapest.name}, take {duration(cheapest.seconds)}"
        )
    names = ", ".join(f"{name} ({count} seeds)" for name, count in planned.seeds.items())
    places.watcher.say(f"to train, in this order: {names}; about {duration(planned.seconds)} here")
    for name, count in planned.seeds.items():
        s = status_of(populations[name], count, places.runs, places.results)
        if s.to_train and not train_population(s.population, s.to_train, places):
            places.watcher.say("the time is spent; the same command resumes from here")
            break
    for population in populations.values():
        keep_numbers(population, places.runs, places.results, places.watcher.tell)
    if planned.without:
        places.watcher.say(f"without any number still: {', '.join(planned.without)}")


def train_population(population: Population, seeds: Sequence[int], places: Places) -> bool:
    """Train some seeds and keep their numbers; whether it was finished before the deadline."""
    steps = population.recipe.train_steps
    places.watcher.say(f"{population.name}: {len(seeds)} seeds, {steps:,} steps")
    folder = places.runs / population.name
    looked = snapshots_at(population.recipe, population.snapshots, Observer)
    watcher = places.watcher
    try:
        train(population.recipe, seeds, folder, places.engine, snapshots=looked, watcher=watcher)
    except Stopped:
        if not watcher.is_late:
            raise
        return False
    else:
        return True
    finally:
        forget_programs()
        keep_numbers(population, places.runs, places.results, places.watcher.tell)
