"""Accuracy and both gaps along training: at snapshots, or at a seed's best and last parameters."""

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
ENDS = "ends.json"


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
    top1_tied_active: float | None = None
    """As `top1_active`, where any sender counts that a correct run could have chosen; with the
    mechanism for which this is most."""


def measure_trajectory(folder: Path, tell: Tell) -> list[Standpoint]:
    """Every snapshot of a run, and its start. What was measured before is not measured again."""
    known = _known(folder, FILE)
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
    return _kept([known[place] for place in places], folder, FILE)


def measure_ends(folder: Path, tell: Tell) -> list[Standpoint]:
    """Every finished seed twice: at the best validation score, which is the first that is reached
    and can be early, and at the last step."""
    known = _known(folder, ENDS)
    with Store.reading(folder) as store:
        finished = [row for row in store.seeds() if row.state == "finished"]
        places = [
            (row.seed, step, which)
            for row in finished
            for step, which in ((row.best_step, "best"), (row.step, "last"))
        ]
        data = make_data("test", test_graphs(store.recipe))
        rows = []
        for count, (seed, step, which) in enumerate(places):
            tell("best and last parameters", count, len(places))
            assert step is not None  # of a finished seed
            found = known.get((seed, step))
            rows.append(found or _standpoint(seed, step, store.network(seed, which), data))
    return _kept(rows, folder, ENDS)


def load_trajectory(folder: Path, file: str = FILE) -> list[Standpoint]:
    """The measured trajectory of a run, or its ends."""
    try:
        return [Standpoint(**row) for row in json.loads((folder / file).read_text())]
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"there is no measured trajectory in '{folder}': {error}") from error


def _known(folder: Path, file: str) -> dict[tuple[int, int], Standpoint]:
    """What was measured before."""
    try:
        return {(row.seed, row.step): row for row in load_trajectory(folder, file)}
    except InvalidInput:
        return {}


def _kept(rows: list[Standpoint], folder: Path, file: str) -> list[Standpoint]:
    text = json.dumps([asdict(row) for row in rows], indent=0)
    write_file(folder / file, (text + "\n").encode())
    return rows


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
        top1_tied_active=max((float(gap.top1_tied_active) for gap in gaps), default=None),
    )
