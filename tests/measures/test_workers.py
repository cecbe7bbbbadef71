"""Measuring on a real local Ray: the numbers of this process, and workers that die."""

import os
import signal
from typing import Any

import pytest

from command_line import call
from mechgap import calls
from mechgap.errors import InvalidInput
from mechgap.measures.at_sizes import FILE
from mechgap.measures.workers import make_workers
from mechgap.training.cluster import connected
from untrained_runs import untrained_run

SIZES: dict[str, Any] = {"kinds": ["tree"], "sizes": [5], "count": 1}


@pytest.fixture(scope="module")
def cluster():
    """One Ray for all tests here: it takes seconds to start."""
    pytest.importorskip("ray")
    with connected(None):
        yield make_workers("ray")


def test_workers_that_die_or_refuse(cluster, tmp_path):
    """Work of one that died is done again; what is refused there is refused here."""
    mark, many = tmp_path / "died", range(6)

    def square(number: int) -> int:
        if number == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number < 0:
            raise InvalidInput(f"{number} is below 0")
        return number * number

    assert dict(cluster(square, many)) == {k: k * k for k in many}
    assert mark.exists()
    with pytest.raises(InvalidInput, match="-1 is below 0"):
        dict(cluster(square, [1, -1]))
    with pytest.raises(InvalidInput, match="died 4 times at the same work"):
        dict(cluster(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1]))


@pytest.mark.usefixtures("cluster")
def test_sizes_are_those_of_this_process(tmp_path):
    here, there = untrained_run(tmp_path / "here"), untrained_run(tmp_path / "there")
    calls.measure_sizes(here, **SIZES)
    calls.measure_sizes(there, **SIZES, engine="ray")
    assert (there / FILE).read_text() == (here / FILE).read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_measures_are_those_of_this_process(tmp_path):
    here, there = (untrained_run(tmp_path / name, seeds=(0,)) for name in ("here", "there"))
    for run, engine in ((here, "local"), (there, "ray")):
        calls.measure(run, engine=engine)
        calls.measure(run, engine=engine, causal=True, dimensions=[1])
    assert (there / "measures.json").read_bytes() == (here / "measures.json").read_bytes()


@pytest.mark.parametrize(("asked", "why"), [
    (["--engine", "cloud"], "unknown engine 'cloud'"),
    (["--engine", "ray", "--ray-address", "nowhere"], "HOST:PORT"),
    (["--engine", "ray", "--ray-address", "127.0.0.1:1"], "no Ray cluster at '127.0.0.1:1'"),
])  # fmt: skip
def test_a_cluster_that_is_none(asked, why, tmp_path, monkeypatch, capsys):
    run = untrained_run(tmp_path / "run")
    asked = ["measure", run, "--graphs", "tree", "--nodes", "4,5", *asked]
    said = call(monkeypatch, capsys, *asked)
    assert said.returncode == 2
    assert why in said.stderr
    assert said.stderr.strip().splitlines()[-1].startswith("mechgap: ")
    assert not (run / FILE).exists()
