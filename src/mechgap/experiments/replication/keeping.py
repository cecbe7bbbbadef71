"""From a run to what is kept of it: measure what is finished, join it to what is kept."""

from dataclasses import replace
from pathlib import Path

from mechgap.experiments.gap import measured_run
from mechgap.experiments.replication.joining import joined, with_solutions
from mechgap.experiments.replication.numbers import (
    Numbers,
    SeenElsewhere,
    load_numbers,
    numbers_of,
    save_numbers,
)
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.snapshots import keep_snapshots, kept_fingerprints
from mechgap.measures.data import make_data
from mechgap.measures.elsewhere import name_of, other_graphs
from mechgap.measures.snapshot import see_on
from mechgap.training.store import Store
from mechgap.training.train import OnProgress


def keep_numbers(
    population: Population, runs: Path, results: Path, on_progress: OnProgress
) -> None:
    """Write the numbers of a population's finished seeds, with those that are kept of others."""
    folder = runs / population.name
    if numbers_of(folder) is None:
        return
    if population.in_full:
        measured_run(folder, on_progress)
    keep_snapshots(results, population, folder)
    numbers = numbers_of(folder)
    assert numbers is not None
    kept = load_numbers(results, population.name)
    known = {} if kept is None else kept.elsewhere
    numbers = replace(
        numbers, elsewhere=_seen_elsewhere(population, folder, numbers, known, on_progress)
    )
    prints = kept_fingerprints(results, population.name)["best"]
    save_numbers(
        results,
        population.name,
        with_solutions(joined(kept, numbers), population, prints),
    )


def _seen_elsewhere(
    population: Population,
    folder: Path,
    numbers: Numbers,
    known: SeenElsewhere,
    on_progress: OnProgress,
) -> SeenElsewhere:
    """What a run's best networks do on the other graphs of their population, if not yet known."""
    recipe = population.recipe
    names = [name_of(*graphs) for graphs in population.elsewhere]
    found = {name: dict(known.get(name, {})) for name in names}
    with Store.reading(folder) as store:
        for graphs, nodes in population.elsewhere:
            seen = found[name_of(graphs, nodes)]
            missing = [s for s in numbers.seed if str(s) not in seen or not seen[str(s)].by_phase]
            if not missing:
                continue
            other = other_graphs(recipe, graphs, nodes)
            data = make_data(other.name, other.batch, recipe.mechanisms)
            for i, seed in enumerate(missing, start=1):
                seen[str(seed)] = see_on(store.network(seed, "best"), data)
                on_progress(f"{population.name} on {other.name}", i, len(missing))
    return found
