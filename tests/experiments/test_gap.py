"""The main job at a small size, from the command line."""

import json
import re
import subprocess
from pathlib import Path

import pytest

import mechgap
from command_line import MECHGAP
from mechgap import InvalidInput
from mechgap.experiments import replication
from mechgap.experiments.gap import gap_recipe
from mechgap.experiments.size import CORES, step_seconds
from mechgap.measures.reference import compile_reference
from mechgap.training.presets import make_recipe

README = Path(__file__).parent.parent.parent / "README.md"
RATES = Path(replication.__file__).parent / "rates.json"
SMALL = ("--seeds", "2", "--steps", "20", "--hidden-size", "4")


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
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
    done = call(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 learned networks get ")
    assert "exact on 64 graphs of 64 nodes" in done.stderr
    assert "a full run is: mechgap gap bfs --seeds 128 --steps 10000" in done.stderr
    page = folder / "report" / "index.html"
    assert str(page) in done.stdout
    measured = (folder / "measures.json").stat().st_mtime_ns
    again = call(*arguments, "--json")
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["page"] == str(page)
    assert found["answer"] == done.stdout.splitlines()[0]
    assert (folder / "measures.json").stat().st_mtime_ns == measured
    other = call("gap", "dijkstra", *SMALL, "--out", str(folder))
    assert other.returncode == 2
    assert "was begun with another configuration (task: bfs → dijkstra" in other.stderr
    assert len(other.stderr.splitlines()) == 1, "said before anything is done"


@pytest.mark.parametrize("task", ["bfs", "bellman_ford", "dfs"])
def test_the_cost_of_a_step_is_near_what_was_measured(task):
    measured = CORES / json.loads(RATES.read_text())[task]
    assert step_seconds(make_recipe(task)) == pytest.approx(measured, rel=0.5)


def test_what_has_no_exact_program():
    with pytest.raises(InvalidInput, match="no exact program of dfs_simplified"):
        gap_recipe("dfs_simplified")


@pytest.mark.parametrize(
    ("task", "shape"),
    [
        ("bfs", ("gatv2", False, True, 1)),
        ("bellman_ford", ("gatv2", True, True, 1)),
        ("dfs", ("gatv2", False, True, 3)),
        ("dijkstra", ("gatv2_full", True, False, 2)),
    ],
)
def test_the_network_that_is_trained_has_the_shape_of_the_compiled_one(task, shape):
    recipe = gap_recipe(task)
    config = recipe.network_config
    assert shape == (
        config.processor_type,
        config.use_edge_info,
        config.use_ln,
        config.nb_msg_passing_steps,
    )
    assert compile_reference(recipe, 64).same_architecture


TOO_MUCH = """
from mechgap.lang import Bool, Float, GraphProgram, edge, init, minimum, other, self

seen, far = Bool("seen"), Float("far")
# Numbers that go down: no network holds them.
falling = GraphProgram(
    name="falling",
    task="bfs",
    inputs={"idx": "pos", "start": "s", "link": "adj"},
    hidden=(seen, far),
    init=dict(seen=init.start),
    select=minimum(other.idx),
    mask=other.seen & ~self.seen,
    update=dict(seen=self.seen | other.seen, far=other.far - 0.1),
    hints={"seen_h": seen},
    output={"seen": seen},
)
"""


@pytest.mark.slow
def test_a_program_that_no_architecture_takes_is_trained_and_compared_all_the_same(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(TOO_MUCH)
    told, folder = [], tmp_path / "run"
    found = mechgap.gap(
        f"{file}:falling",
        seeds=1,
        steps=2,
        hidden_size=4,
        out=folder,
        official=False,
        progress=lambda *what: told.append(what),
    )
    assert found.reference.compiled is None
    assert found.verification is None
    assert len(found.reference.refused) >= 5
    assert found.results.mechanisms[0] == "falling"
    assert found.results.networks[0].gaps["test"]["falling"].tv > 0
    assert found.page.exists()
    assert ("training", 2, 2) in told
    assert {what for what, _, _ in told} > {"seeds", "baselines"}
    assert found.to_json()["verification"] is None
    assert "learned network" in found._repr_html_()
