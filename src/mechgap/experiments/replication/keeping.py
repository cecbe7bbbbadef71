"""From a run to what is kept of it: measure what is finished, join it to what is kept."""

from pathlib import Path

from mechgap.experiments.gap import measured_run
from mechgap.experiments.replication.joining import joined, with_solutions
from mechgap.experiments.replication.numbers import load_numbers, numbers_of, save_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.snapshots import keep_snapshots, kept_fingerprints
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
    kept = load_numbers(results, population.name)
    prints = kept_fingerprints(results, population.name)["best"]
    save_numbers(
        results,
        population.name,
        with_solutions(joined(kept, numbers), population, prints),
    )
