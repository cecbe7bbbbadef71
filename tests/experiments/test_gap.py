"""The main job at a small size, from the command line."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from command_line import MECHGAP
from mechgap import InvalidInput
from mechgap.experiments.gap import compile_and_verify
from mechgap.training.recipe import make_recipe

README = Path(__file__).parent.parent.parent / "README.md"
SMALL = ("--seeds", "2", "--steps", "20", "--hidden-size", "4")


def mechgap(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MECHGAP, *arguments], capture_output=True, text=True)


def test_the_readmes_first_command_gives_the_page_and_does_nothing_twice(tmp_path):
    """The command itself, with small networks, few of them, and a folder that goes away."""
    commands = re.findall(r"```sh\n(.*?)\n```", README.read_text(), flags=re.DOTALL)[:2]
    assert commands[1] == "pip install '.[test]' && pytest"
    install, _, run = commands[0].partition(" && ")
    assert install == "pip install ."
    name, *arguments = run.split()
    assert name == "mechgap"
    folder = tmp_path / "gap"
    arguments += [*SMALL, "--out", str(folder)]
    done = mechgap(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 learned networks: ")
    assert "exact on 64 graphs of 64 nodes" in done.stderr
    assert "a full run is: mechgap gap bfs --seeds 128 --steps 10000" in done.stderr
    page = folder / "report" / "index.html"
    assert str(page) in done.stdout
    measured = (folder / "measures.json").stat().st_mtime_ns
    again = mechgap(*arguments, "--json")
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["page"] == str(page)
    assert found["answer"] == done.stdout.splitlines()[0]
    assert (folder / "measures.json").stat().st_mtime_ns == measured


def test_what_has_no_compiled_program():
    with pytest.raises(InvalidInput, match="no compiled program for dfs_simplified"):
        compile_and_verify(make_recipe("dfs_simplified"))
