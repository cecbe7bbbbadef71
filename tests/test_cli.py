"""The command line as a user meets it; one of each kind in a process of its own."""

import json
import re
import subprocess
import sys
from functools import partial

import pytest

from command_line import Done, call
from mechgap import __version__
from mechgap.tasks.specs import TASKS


@pytest.fixture
def mechgap(monkeypatch, capsys):
    return partial(call, monkeypatch, capsys)


def in_a_process(*arguments: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "mechgap.cli", *arguments], capture_output=True, text=True
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_help_does_not_import_jax():
    program = (
        "import sys; sys.argv = ['mechgap', '--help']\n"
        "from mechgap.cli import main\n"
        "try: main()\n"
        "finally: print('jax' in sys.modules or 'numpy' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "sample" in done.stdout
    assert done.stderr.strip() == "False"


def test_without_a_command_help_is_shown(mechgap):
    done = mechgap()
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_version(mechgap):
    assert mechgap("--version").stdout.strip() == __version__


def test_tasks_are_listed(mechgap):
    shown = mechgap("tasks").stdout
    assert all(task in shown for task in TASKS)
    listed = json.loads(mechgap("tasks", "--json").stdout)
    assert listed["dfs"]["directed"]
    assert {"name": "pi", "stage": "output", "location": "node", "type": "pointer"} in listed[
        "bfs"
    ]["features"]


def test_sample_prints_the_trace_of_the_graph(mechgap):
    done = mechgap("sample", "bfs", "--nodes", "8", "--seed", "0")
    assert done.returncode == 0
    assert re.search(r"bfs: 8 nodes, \d+ edges, source \d, \d hints", done.stdout)
    assert "reach_h" in done.stdout


@pytest.mark.parametrize("task", TASKS)
def test_sample_json_is_the_whole_trace(mechgap, task):
    data = json.loads(mechgap("sample", task, "--nodes", "4", "--seed", "3", "--json").stdout)
    assert data["task"] == task
    assert len(data["pos"]) == 4
    assert all(len(hint) == data["length"] for hint in data["hints"].values())
    assert {f.name for f in TASKS[task].outputs} == data["outputs"].keys()
    for name, output in data["outputs"].items():
        assert len(output) == 4
        assert output == data["hints"][f"{name}_h"][-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample", "bsf"], "unknown task 'bsf'. Did you mean 'bfs'?"),
        (["sample", "bfs", "--nodes", "0"], "a graph needs at least 1 node; got 0"),
        (["sample", "bfs", "--p", "1.5"], "p is a probability and must lie in [0, 1]; got 1.5"),
        (["sample", "bfs", "--p", "nan"], "must lie in [0, 1]; got nan"),
        (["sample", "bfs", "--nodes", "many"], "--nodes"),
        (["sample", "bfs", "--frob"], "--frob"),
        (["sample"], "task"),
        (["smaple"], "smaple"),
        (["compile", "bsf"], "unknown program 'bsf'. Did you mean 'bfs'?"),
        (["compile", "none.py:bfs"], "there is no program file 'none.py'"),
        (["compile", "bfs", "--target", "stok"], "unknown target 'stok'. Did you mean 'stock'?"),
        (["compile", "bfs", "--format", "onnx"], "unknown format 'onnx'"),
        (["compile", "bfs", "--hidden-size", "2"], "needs hidden_size of at least 3"),
        (["sample", "bfs", "--seed", "99999999999999999999"], "seed must lie between 0 and"),
        (["verify", "bfs", "--seed", "-1"], "seed must lie between 0 and 4294967295; got -1"),
        (["verify", "bfs", "--official", "validation", "--nodes", "8"], "have 16 nodes; got"),
        (["sample", "none.py:bfs"], "there is no program file 'none.py'"),
        (["gap", "hops"], "unknown task 'hops'"),
        (["compile", "bfs", "--dtype", "float16"], "dtype must be float32 or float64"),
        (["compile", "bfs", "--out", "no/where.safetensors"], "there is no folder 'no'"),
        (["compile", "bellman_ford", "--target", "stock"], "edge-information-needed"),
        (["show", "bfs", "--out", "bfs.jpgg"], "must end in one of"),
        (["show", "bfs", "--out", "no/bfs.png"], "there is no folder 'no'"),
        (["show", "bfs"], "--out"),
        (["gap", "dfs_simplified"], "there is no exact program of dfs_simplified"),
        (["compile", "dijkstra"], "full-attention-needed"),
        (["verify", "bfs", "--graphs", "0"], "graphs must be at least 1; got 0"),
        (["verify", "bfs", "--official", "train"], "unknown official set 'train'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(mechgap, arguments, message):
    done = mechgap(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert message in done.stderr


def test_a_mistake_in_a_process_of_its_own():
    done = in_a_process("sample", "bsf")
    assert done[:2] == (2, "")
    assert done.stderr.startswith("mechgap: unknown task 'bsf'. Did you mean 'bfs'?")


def test_programs_are_listed_and_printed(mechgap):
    assert "smallest_label" in mechgap("programs").stdout
    assert mechgap("programs", "bfs").stdout.startswith('visit = Bool("visit")')
    assert set(json.loads(mechgap("programs", "--json").stdout)) >= {"bfs", "bellman_ford"}


def test_compile_writes_a_file_and_says_what_is_guaranteed(mechgap, tmp_path):
    out = tmp_path / "bfs.safetensors"
    done = mechgap("compile", "bfs", "--target", "stock-ln", "--out", str(out))
    assert done.returncode == 0
    assert "397,316 parameters" in done.stdout
    assert "certified for" in done.stdout
    assert out.exists()
    data = json.loads(mechgap("compile", "bfs", "--hidden-size", "4", "--json").stdout)
    assert data["target"] == "general"
    assert data["parameters"] == 524


def test_verify_says_exact_and_exits_with_0(mechgap):
    done = mechgap(
        "verify", "bfs", "--target", "stock", "--nodes", "16", "--graphs", "32", "--json"
    )
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["exact"] is True
    assert found["outputs"] == {"pi": 1.0}
    assert found["hints"] == {"reach_h": 1.0, "pi_h": 1.0}
    assert found["graphs"] == 32
    assert found["outside_certificate"] == 0
    assert "exact" in in_a_process("verify", "bfs", "--nodes", "8", "--graphs", "8").stdout


def test_verify_says_what_is_not_claimed_and_why(mechgap):
    done = mechgap("verify", "dfs", "--target", "stock", "--nodes", "5", "--graphs", "4")
    assert done.returncode == 0
    assert "exact on 4 graphs of 5 nodes, all inside" in done.stdout
    assert "hint d, not claimed" in done.stdout
    assert "count the" in done.stdout


def test_show_draws_parameters_and_a_run(mechgap, tmp_path):
    done = mechgap("show", "bellman_ford", "--out", str(tmp_path / "bf.png"))
    assert done.returncode == 0, done.stderr
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["bf-auxiliary.png", "bf-run.png", "bf.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())


def test_the_command_line_tells_the_verdicts_apart(mechgap, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from mechgap.lang import *\n"
        "visit, pi = Bool('visit'), Pointer('pi')\n"
        "mine = GraphProgram(name='mine', task='bfs', inputs={'idx': 'pos', 'start': 's'},\n"
        "    hidden=(visit, pi), init=dict(visit=init.start, pi=init.idx),\n"
        "    select=maximum(other.idx), mask=other.visit & ~self.visit,\n"
        "    update=dict(visit=self.visit | other.visit, pi=other.idx),\n"
        "    hints={'reach_h': visit, 'pi_h': pi}, output={'pi': pi})\n"
    )
    done = mechgap("verify", f"{path}:mine", "--nodes", "8", "--graphs", "8")
    assert done.returncode == 1
    assert "the program is not the task's algorithm" in " ".join(done.stdout.split())


def test_quiet_says_nothing_and_verbose_says_when(mechgap, tmp_path):
    """Of training; the results are there all the same."""
    small = ["--train-steps", 4, "--train-lengths", 4, "--hidden-size", 4, "--eval-every", 2,
             "--test-every", 4, "--no-length-generalize", "--snapshots", "none"]  # fmt: skip
    for loudness in ("--quiet", "--verbose"):
        done = mechgap(loudness, "train", "bfs", "--out", tmp_path / loudness, *small)
        assert done.returncode == 0
        lines = [line for line in done.stderr.splitlines() if "compiling narrow" not in line]
        if loudness == "--quiet":
            assert lines == []
        else:
            reports = [line for line in lines if "seed-steps/s" in line]
            assert len(reports) == 2
            assert all(re.match(r"\d\d:\d\d:\d\d  seeds", line) for line in reports)
    refused = mechgap("--quiet", "--verbose", "tasks")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
