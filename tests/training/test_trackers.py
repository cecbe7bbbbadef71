"""Metrics as TensorBoard and Weights & Biases read them, with the programs' own readers."""

import json
import sys

import pytest
from wandb.proto import wandb_internal_pb2

from command_line import call
from mechgap import InvalidInput
from mechgap.training.exchange import export_metrics
from mechgap.training.rows import MetricRow
from mechgap.training.trackers import to_tensorboard, to_wandb
from untrained_runs import untrained_run

CURVES = ("loss", "validation", "test", "test_of_best")
ROWS = [
    MetricRow(0, 10, 1.5, 0.25, None, None),
    MetricRow(2, 10, 2.5, 0.125, None, None),
    MetricRow(0, 20, None, 0.5, 0.75, 0.75),
]


def expected(rows, seed, curve):
    mine = sorted((r.step, getattr(r, curve)) for r in rows if r.seed == seed)
    return [(step, value) for step, value in mine if value is not None]


def test_tensorboard_reads_every_curve(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = to_tensorboard(ROWS, tmp_path / "board")
    assert sorted(path.name for path in out.iterdir()) == ["seed-0", "seed-2"]
    for seed in (0, 2):
        events = EventAccumulator(str(out / f"seed-{seed}")).Reload()
        found = {tag: [(e.step, e.value) for e in events.Scalars(tag)]
                 for tag in events.Tags()["scalars"]}  # fmt: skip
        assert found == {c: expected(ROWS, seed, c) for c in CURVES if expected(ROWS, seed, c)}


def records(path):
    """What a file of wandb's holds: pieces in blocks of 32 KiB, as in LevelDB's logs."""
    data, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # all of it, or its last piece
            record = wandb_internal_pb2.Record()  # pyright: ignore[reportAttributeAccessIssue]
            record.ParseFromString(whole)
            yield record
            whole = b""


def _key(item):
    """W&B writes a name in either of two places."""
    return item.key or item.nested_key[0]


def test_wandb_holds_every_report_offline(tmp_path):
    out = to_wandb(ROWS, {"task": "bfs", "train_steps": 20}, tmp_path / "curves")
    found = {}
    for path in out.glob("wandb/offline-run-*/run-*.wandb"):
        name, history, config = "", [], {}
        for record in records(path):
            if record.WhichOneof("record_type") == "run":
                name = record.run.display_name
                config |= {_key(u): json.loads(u.value_json) for u in record.run.config.update}
            if record.WhichOneof("record_type") == "config":
                config |= {_key(u): json.loads(u.value_json) for u in record.config.update}
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                history.append({_key(i): json.loads(i.value_json) for i in items})
        assert config["train_steps"] == 20
        curves = {c: [(h["_step"], h[c]) for h in history if c in h] for c in CURVES}
        found[name] = {c: values for c, values in curves.items() if values}
    assert found == {
        f"seed-{s}": {c: expected(ROWS, s, c) for c in CURVES if expected(ROWS, s, c)}
        for s in (0, 2)
    }


def test_from_the_command_line(monkeypatch, capsys, tmp_path):
    run = tmp_path / "run"
    small = ["--train-steps", 4, "--train-lengths", 4, "--hidden-size", 4, "--eval-every", 2,
             "--test-every", 4, "--no-length-generalize", "--snapshots", "none"]  # fmt: skip
    assert call(monkeypatch, capsys, "train", "bfs", "--out", run, *small).returncode == 0
    done = call(monkeypatch, capsys, "runs", "export", run, "--format", "tensorboard")
    assert done.returncode == 0
    assert done.stdout.strip().endswith(f"{run}/tensorboard")
    assert [path.name for path in (run / "tensorboard").iterdir()] == ["seed-0"]


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_place_that_is_a_file_is_one_line(tmp_path, name):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InvalidInput, match="cannot write"):
        export_metrics(untrained_run(tmp_path / "run"), tmp_path / "file", name)


@pytest.mark.parametrize(
    ("extra", "module"), [("tensorboard", "tensorboard.compat.proto.event_pb2"), ("wandb", "wandb")]
)
def test_what_is_not_installed_has_a_remedy(monkeypatch, tmp_path, extra, module):
    monkeypatch.setitem(sys.modules, module, None)
    run = untrained_run(tmp_path / "run")
    with pytest.raises(InvalidInput, match=rf"pip install 'mechgap\[{extra}\]'"):
        export_metrics(run, tmp_path / "out", extra)
