"""The Ray engine against a real local Ray: two workers, one of them killed in the middle."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mechgap.training.store import Store

OPTIONS = ["--hidden-size", "4", "--train-lengths", "4", "--batch-size", "4", "--steps", "200",
           "--eval-every", "5", "--test-every", "100", "--no-length-generalize",
           "--seeds", "4", "--chunk", "2", "--snapshots", "50,100"]  # fmt: skip


def content(folder: Path):
    files = {p.name: p.read_bytes() for p in sorted((folder / "seeds").iterdir())}
    with Store.reading(folder) as store:
        return files, store.metrics(), store.seeds(), store.observations()


def train(folder: Path, *more: str) -> list[str]:
    words = [sys.executable, "-m", "mechgap.cli", "train", "bfs", "--out", str(folder)]
    return [*words, *OPTIONS, *more]


def workers() -> list[int]:
    """Ray's processes that are training; their title names the task."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            title = (path / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if title.startswith("ray::_advance"):
            found.append(int(path.name))
    return sorted(found)


@pytest.mark.slow
def test_a_worker_that_dies_costs_nothing_but_time(tmp_path):
    local, cluster = tmp_path / "local", tmp_path / "ray"
    subprocess.run(train(local, "--devices", "1"), check=True, capture_output=True)
    killed = False
    on_ray = train(cluster, "--engine", "ray", "--checkpoint-seconds", "0")
    with subprocess.Popen(on_ray, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if "step" in line and not killed and (busy := workers()):  # in the middle: one dies
                os.kill(busy[0], signal.SIGKILL)
                killed = True
    assert process.returncode == 0
    assert killed
    assert content(cluster) == content(local)
