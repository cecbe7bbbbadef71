"""What is kept of all seeds ever trained: their snapshots, and fingerprints of their attention.

results/snapshots/POPULATION.jsonl      one line a seed and step
results/fingerprints/POPULATION.npz     the best parameters' and the last ones', a row a seed
"""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mechgap.disk import write_file
from mechgap.errors import InvalidInput
from mechgap.experiments.replication.populations import Population
from mechgap.measures.data import make_data
from mechgap.measures.fingerprint import Places
from mechgap.measures.snapshot import Snapshot, load_fingerprints, load_snapshots
from mechgap.measures.solutions import Solutions, solutions
from mechgap.training.population import test_graphs

Prints = Mapping[int, np.ndarray]
"""Fingerprints by seed."""


def kept_snapshots(results: Path, name: str) -> list[Snapshot]:
    """A population's snapshots; none where it has none yet."""
    path = results / "snapshots" / f"{name}.jsonl"
    try:
        return [Snapshot.of(json.loads(line)) for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, InvalidInput) as error:
        raise InvalidInput(f"'{path}' cannot be read ({error}). Remove it and run again") from error


def kept_fingerprints(results: Path, name: str) -> dict[str, Prints]:
    """The fingerprints of a population's `best` and `last` parameters."""
    path = results / "fingerprints" / f"{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {
                which: dict(zip(stored["seed"].tolist(), stored[which], strict=True))
                for which in ("best", "last")
            }
    except FileNotFoundError:
        return {"best": {}, "last": {}}
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(f"'{path}' cannot be read ({error}). Remove it and run again") from error


def keep_snapshots(results: Path, population: Population, run: Path) -> None:
    """Join what was seen of a run's finished seeds to what is kept of others."""
    last = population.recipe.train_steps
    seen = load_snapshots(run)
    whole = {s.seed for s in seen if s.which == "best"}
    if not whole:
        return
    others = [s for s in kept_snapshots(results, population.name) if s.seed not in whole]
    rows = sorted(
        [*others, *(s for s in seen if s.seed in whole)], key=lambda s: (s.seed, s.which, s.step)
    )
    text = "".join(json.dumps(row.data(), allow_nan=False) + "\n" for row in rows)
    _write(results / "snapshots" / f"{population.name}.jsonl", text.encode())
    prints = kept_fingerprints(results, population.name)
    joined = {
        "best": {**prints["best"], **load_fingerprints(run, "best")},
        "last": {**prints["last"], **load_fingerprints(run, "step", last)},
    }
    seeds = sorted(joined["best"].keys() & joined["last"].keys())
    file = io.BytesIO()
    stacks = {which: np.stack([each[seed] for seed in seeds]) for which, each in joined.items()}
    np.savez_compressed(file, allow_pickle=False, seed=np.array(seeds), **stacks)
    _write(results / "fingerprints" / f"{population.name}.npz", file.getvalue())


def solutions_of(
    population: Population, prints: Prints, closest: tuple[int, float] | None
) -> Solutions:
    """Distances and clusters of all seeds that a population has fingerprints of.

    `closest` is the one nearest to the compiled mechanism, with its gap (tv).
    """
    recipe = population.recipe
    data = make_data("test", test_graphs(recipe), ())
    places = Places.of(
        data,
        recipe.nb_msg_passing_steps,
        recipe.network_config.attends_to_all,
    )
    rows: Sequence[np.ndarray] = [prints[seed] for seed in sorted(prints)]
    apart = places.distances(np.stack(rows))
    return solutions(apart, len(rows), nodes=data.batch.nodes, closest=closest)


def _write(path: Path, data: bytes) -> None:
    try:
        write_file(path, data)
    except OSError as error:
        raise InvalidInput(f"cannot write '{path}': {error}") from error
