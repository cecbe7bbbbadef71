"""Train a population in a run folder: what `mechgap train` does."""

from collections.abc import Sequence
from pathlib import Path

from mechgap.errors import unknown
from mechgap.measures.snapshot import STEPS, Observer
from mechgap.training.engines import make_engine
from mechgap.training.recipe import Recipe
from mechgap.training.run import Run
from mechgap.training.train import Watcher, snapshots_at, train


def train_recipe(
    recipe: Recipe,
    seeds: Sequence[int],
    out: Path,
    *,
    snapshots: Sequence[int] | str = "auto",
    engine: str = "local",
    devices: int | None = None,
    ray_address: str | None = None,
    chunk: int | None = None,
    checkpoint_seconds: float = 20.0,
    watcher: Watcher | None = None,
) -> Run:
    """Train these seeds, or resume the folder.

    Args:
        recipe: How to train; see `make_recipe`.
        seeds: Which seeds.
        out: The run folder; an existing run of the same recipe is resumed.
        snapshots: Steps at which networks are measured; `auto` or `none`.
        engine: `local`, or `ray` for a cluster.
        devices: Devices (CPU cores) to use; all if not given.
        ray_address: An existing Ray cluster; a local one if not given.
        chunk: Seeds per vectorised program; chosen if not given.
        checkpoint_seconds: How often it is recorded where it stands.
        watcher: Is told how it goes, and can stop it.

    Raises:
        InvalidInput: the folder holds another run, or what is asked for cannot be.
        Stopped: the watcher asked for it; everything done so far is recorded.
    """
    if isinstance(snapshots, str) and snapshots not in {"auto", "none"}:
        raise unknown("choice of snapshots", snapshots, ["auto", "none"])
    where = make_engine(engine, devices=devices, ray_address=ray_address)
    steps = snapshots
    if isinstance(steps, str):
        fitting = [step for step in STEPS if step % recipe.eval_every == 0]
        steps = fitting if steps == "auto" else None
    looked = None if steps is None else snapshots_at(recipe, steps, Observer)
    train(
        recipe,
        seeds,
        out,
        where,
        chunk=chunk,
        checkpoint_seconds=checkpoint_seconds,
        snapshots=looked,
        watcher=watcher,
    )
    return Run.open(out)
