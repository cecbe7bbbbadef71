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
from mechgap.measures.elsewhere import in_blocks, name_of
from mechgap.measures.snapshot import SeenBlock, SeenRun, see_block, seen_together
from mechgap.tasks.official import NODES, SAMPLES, Split
from mechgap.training.population import graphs_to_test
from mechgap.training.store import Store
from mechgap.training.train import OnProgress

_OWN_STATE_UP_TO = NODES[Split.TEST]
"""On larger graphs nobody asks what a program would do from a network's own state: it takes
minutes a network."""


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
    found: dict[str, dict[str, SeenRun]] = {}
    with Store.reading(folder) as store:
        for kind, nodes in population.elsewhere:
            name = name_of(kind, nodes)
            seen = found[name] = dict(known.get(name, {}))
            own = nodes <= _OWN_STATE_UP_TO
            missing = [s for s in map(str, numbers.seed) if not _whole(seen.get(s), own)]
            if not missing:
                continue
            networks = {seed: store.network(int(seed), "best") for seed in missing}
            blocks: dict[str, list[SeenBlock]] = {seed: [] for seed in networks}
            batch, done = graphs_to_test(recipe.posed, kind, nodes, SAMPLES), 0
            for block in in_blocks(recipe, batch):
                data = make_data(name, block, recipe.mechanisms)
                for seed, network in networks.items():
                    blocks[seed].append(see_block(network, data, own_state=own))
                done += block.size
                on_progress(f"{population.name} on {name}, graphs", done, batch.size)
            seen |= {seed: seen_together(each) for seed, each in blocks.items()}
    return found


def _whole(seen: SeenRun | None, own_state: bool) -> bool:
    """Whether a network was looked at, and nothing was asked since that older numbers lack."""
    if seen is None or not seen.by_phase:
        return False
    return bool(seen.from_own_state) or not own_state or seen.breaking is None
