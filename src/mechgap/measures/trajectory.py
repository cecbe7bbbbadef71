"""Accuracy and both gaps along the training of a run that kept snapshots."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import jax.numpy as jnp

from mechgap.errors import InvalidInput
from mechgap.measures.data import Data, make_data
from mechgap.measures.external import external
from mechgap.measures.internal import internal_gap
from mechgap.measures.population import Tell
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.tasks.scores import output_scores
from mechgap.training.population import initial, test_graphs
from mechgap.training.store import Store, write_file

FILE = "trajectory.json"


@dataclass(frozen=True)
class Standpoint:
    """One seed at one step, measured on the test graphs."""

    seed: int
    step: int
    accuracy: float
    internal_tv: float | None
    """The gap to the nearest exact mechanism; None where none is known."""
    mechanism: str | None
    top1_active: float | None
    external: float | None
    """The share of the trace that is predicted; None where none is."""


def measure_trajectory(folder: Path, tell: Tell) -> list[Standpoint]:
    """Every snapshot of a run, and its start. What was measured before is not measured again."""
    try:
        known = {(row.seed, row.step): row for row in load_trajectory(folder)}
    except InvalidInput:
        known = {}
    with Store.reading(folder) as store:
        recipe, snapshots = store.recipe, store.snapshots()
        places = sorted({(seed, 0) for seed, _ in snapshots} | set(snapshots))
        if not places:
            raise InvalidInput(f"'{folder}' kept no snapshots. Train it by: mechgap stability")
        data = make_data("test", test_graphs(recipe))
        for count, (seed, step) in enumerate(places):
            tell("trajectory", count, len(places))
            if (seed, step) not in known:
                start = initial(recipe, jnp.int32(seed)).network
                network = store.snapshot(seed, step) if step else start
                known[seed, step] = _standpoint(seed, step, network, data)
    rows = [known[place] for place in places]
    text = json.dumps([asdict(row) for row in rows], indent=0)
    write_file(folder / FILE, (text + "\n").encode())
    return rows


def load_trajectory(folder: Path) -> list[Standpoint]:
    """The measured trajectory of a run."""
    try:
        return [Standpoint(**row) for row in json.loads((folder / FILE).read_text())]
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"there is no measured trajectory in '{folder}': {error}") from error


def _standpoint(seed: int, step: int, network: Network, data: Data) -> Standpoint:
    trace = run(network, data.batch)
    gaps = [internal_gap(trace.attention, truth, data) for truth in data.truths]
    nearest = min(gaps, key=lambda gap: gap.tv, default=None)
    predicted = external(data.batch, trace.hints) if network.config.decodes_hints else None
    return Standpoint(
        seed=seed,
        step=step,
        accuracy=float(output_scores(data.batch, trace.outputs)["score"]),
        internal_tv=None if nearest is None else float(nearest.tv),
        mechanism=None if nearest is None else nearest.mechanism,
        top1_active=None if nearest is None else float(nearest.top1_active),
        external=None if predicted is None else float(predicted.accuracy),
    )
