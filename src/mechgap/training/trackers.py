"""A run's metrics for programs that draw training curves; nothing is sent anywhere.

Each seed is a run of its own there: `loss`, `validation`, `test` and `test_of_best` by step.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.training.rows import MetricRow

_CURVES = ("loss", "validation", "test", "test_of_best")


def to_tensorboard(rows: Sequence[MetricRow], out: Path) -> Path:
    """Write a folder of event files: `tensorboard --logdir OUT`.

    Raises:
        InvalidInput: TensorBoard is not installed.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise _needed("TensorBoard", "tensorboard") from error
    out.mkdir(parents=True, exist_ok=True)
    for seed, reports in _by_seed(rows):
        writer = EventFileWriter(str(out / f"seed-{seed}"))
        for row in reports:
            values = [Summary.Value(tag=k, simple_value=v) for k, v in _known(row).items()]
            writer.add_event(Event(step=row.step, summary=Summary(value=values)))
        writer.close()
    return out


def to_wandb(rows: Sequence[MetricRow], recipe: Mapping[str, Any], out: Path) -> Path:
    """Write a folder of Weights & Biases' offline runs: `wandb sync OUT/wandb/offline-run-*`.

    A run of Weights & Biases that is open in this process is finished first.

    Raises:
        InvalidInput: wandb is not installed.
    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # it would send its own errors home
    try:
        import wandb
    except ImportError as error:
        raise _needed("Weights & Biases", "wandb") from error
    out.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(console="off", silent=True)
    for seed, reports in _by_seed(rows):
        run = wandb.init(
            mode="offline",
            dir=str(out),
            project=f"mechgap-{recipe['task']}",
            name=f"seed-{seed}",
            config={**recipe, "seed": seed},
            settings=settings,
            reinit="finish_previous",
        )
        for row in reports:
            run.log(_known(row), step=row.step)
        run.finish()
    wandb.teardown()  # a process of its own writes the files; only when it has ended they are whole
    return out


def _by_seed(rows: Sequence[MetricRow]) -> Iterator[tuple[int, list[MetricRow]]]:
    ordered = sorted(rows, key=lambda row: (row.seed, row.step))
    for seed, reports in groupby(ordered, key=lambda row: row.seed):
        yield seed, list(reports)


def _known(row: MetricRow) -> dict[str, float]:
    values = {name: getattr(row, name) for name in _CURVES}
    return {name: value for name, value in values.items() if value is not None}


def _needed(what: str, extra: str) -> InvalidInput:
    return InvalidInput(f"{what} is not installed: pip install 'mechgap[{extra}]'")
