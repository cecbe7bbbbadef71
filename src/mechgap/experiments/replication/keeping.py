"""From a run to what is kept of it: measure what is finished, join it to what is kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mechgap.experiments.gap import measured_run
from mechgap.experiments.replication.joining import joined, with_solutions
from mechgap.experiments.replication.numbers import load_numbers, numbers_of, save_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.snapshots import keep_snapshots, kept_fingerprints
from mechgap.measures.data import make_data
from mechgap.measures.elsewhere import other_graphs
from mechgap.measures.snapshot import Seen, see_on
from mechgap.training.store import Store
from mechgap.training.train import Tell


def keep_numbers(population: Population, runs: Path, results: Path, tell: Tell) -> None:
    """Write the numbers of a population's finished seeds, with those that are kept of others."""
    folder = runs / population.name
    if numbers_of(folder) is None:
        return
    measured_run(folder, tell)
    keep_snapshots(results, population, folder)
    numbers = numbers_of(folder)
    assert numbers is not None
    numbers = replace(numbers, elsewhere=_seen_elsewhere(population, folder, numbers.seed, tell))
    kept = load_numbers(results, population.name)
    prints = kept_fingerprints(results, population.name)["best"]
    save_numbers(
        results,
        population.name,
        with_solutions(joined(kept, numbers), population, prints),
    )


def _seen_elsewhere(
    population: Population, folder: Path, seeds: Sequence[int], tell: Tell
) -> dict[str, dict[str, Seen]]:
    """What the best networks of a run do on the other graphs of their population."""
    recipe, found = population.recipe, {}
    with Store.reading(folder) as store:
        for graphs, nodes in population.elsewhere:
            other = other_graphs(recipe, graphs, nodes)
            data = make_data(other.name, other.batch, recipe.mechanisms)
            found[other.name] = {}
            for i, seed in enumerate(seeds, start=1):
                found[other.name][str(seed)] = see_on(store.network(seed, "best"), data)
                tell(f"{population.name} on {other.name}", i, len(seeds))
    return found
