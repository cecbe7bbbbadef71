"""Take a run's numbers out, put runs together, make a run of networks trained elsewhere."""

import csv
import io
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path

import equinox as eqx
import numpy as np

from mechgap.disk import write_file
from mechgap.errors import InvalidInput, unknown
from mechgap.interop.dm_clrs import config_of, from_haiku
from mechgap.network.config import NetworkConfig
from mechgap.network.files import read_tensors
from mechgap.network.network import Network
from mechgap.training.population import held_out, score
from mechgap.training.presets import recipe_from
from mechgap.training.recipe import Recipe
from mechgap.training.rows import MetricRow
from mechgap.training.store import Store
from mechgap.training.trackers import to_tensorboard, to_wandb

FORMATS = ("csv", "parquet", "tensorboard", "wandb")
"""That metrics are written in."""


def export_metrics(folder: Path, out: Path | None, file_format: str) -> Path:
    """Write every report of every seed: as one table, or for a program that draws curves.

    Args:
        folder: A run.
        out: The file, or for `tensorboard` and `wandb` the folder; beside the run if not given.
        file_format: csv, parquet, tensorboard or wandb.
    """
    if file_format not in FORMATS:
        raise unknown("format", file_format, FORMATS)
    with Store.reading(folder) as store:
        rows, recipe = store.metrics(), store.recipe
    is_table = file_format in {"csv", "parquet"}
    path = out or folder / (f"metrics.{file_format}" if is_table else file_format)
    try:
        if file_format == "tensorboard":
            return to_tensorboard(rows, path)
        if file_format == "wandb":
            return to_wandb(rows, recipe.data(), path)
        write_file(path, _csv(rows) if file_format == "csv" else _parquet(rows))
    except OSError as error:
        raise InvalidInput(f"cannot write '{path}': {error}") from error
    return path


def _csv(rows: Sequence[MetricRow]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(MetricRow)])
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue().encode()


def _parquet(rows: Sequence[MetricRow]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InvalidInput("Parquet needs pyarrow: pip install 'mechgap[parquet]'") from error
    columns = {f.name: [getattr(row, f.name) for row in rows] for f in fields(MetricRow)}
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


def merge_runs(folders: Sequence[Path], out: Path) -> int:
    """A run with the finished seeds of several others; how many it has.

    Everything is checked before anything is written.
    """
    if not folders:
        raise InvalidInput("there must be at least one run to merge; got none")
    with ExitStack() as opened:
        sources = [opened.enter_context(Store.reading(folder)) for folder in folders]
        recipe, chunk = sources[0].recipe, sources[0].about["chunk"]
        taken: dict[int, Store] = {}
        for source in sources:
            if changes := recipe.differences(source.recipe):
                raise InvalidInput(
                    f"'{source.folder}' has another recipe than '{folders[0]}' "
                    f"({'; '.join(changes)}); only runs with one recipe can be merged"
                )
            finished = [r.seed for r in source.seeds() if r.state in {"finished", "diverged"}]
            if again := sorted(taken.keys() & set(finished)):
                raise InvalidInput(
                    f"'{source.folder}' has seeds that another run has too: {again}. Seeds of one "
                    "population must differ"
                )
            taken |= dict.fromkeys(finished, source)
        with Store.writing(out, recipe, chunk) as merged:
            for seed, source in taken.items():
                merged.adopt(source, seed)
            return len(merged.seeds())


def import_networks(
    files: Sequence[Path],
    task: str,
    out: Path,
    nb_msg_passing_steps: int = 1,
    processor_type: str = "gatv2",
) -> int:
    """A run whose seeds are dm-clrs's parameters, one file each; how many it has.

    Everything is checked before anything is written.
    """
    if not files:
        raise InvalidInput("there must be at least one file to import; got none")
    networks: list[Network] = []
    for file in files:
        parameters = _haiku_parameters(file)
        try:
            config = config_of(task, parameters, nb_msg_passing_steps, processor_type)
            networks.append(from_haiku(task, config, parameters))
        except InvalidInput as error:
            raise InvalidInput(f"'{file}': {error}") from error
        if networks[-1].config != networks[0].config:
            raise InvalidInput(
                f"'{file}' has another architecture than '{files[0]}'; the seeds of one run must "
                "have the same"
            )
    if out.exists():
        raise InvalidInput(f"'{out}' exists already. Choose a new folder")
    recipe = _recipe_of(task, networks[0].config)
    validation, test = held_out(recipe)
    scored = eqx.filter_jit(score)
    with Store.writing(out, recipe, 1) as store:
        for seed, (network, file) in enumerate(zip(networks, files, strict=True)):
            found = float(scored(network, validation)), float(scored(network, test))
            store.put(seed, network, *found, f"imported from {file.name}")
    return len(networks)


def _haiku_parameters(file: Path) -> dict[str, dict[str, np.ndarray]]:
    parameters: dict[str, dict[str, np.ndarray]] = {}
    for name, value in read_tensors(file)[0].items():
        module, _, kind = name.rpartition("/")
        parameters.setdefault(module, {})[kind] = value
    return parameters


def _recipe_of(task: str, config: NetworkConfig) -> Recipe:
    """The recipe of a network of that shape; how it was trained is not known."""
    names = {f.name for f in fields(Recipe)}
    shape = {name: value for name, value in asdict(config).items() if name in names}
    return recipe_from(shape, task=task)
