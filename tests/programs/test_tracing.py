"""A program as a task: traced on device as the interpreter runs it, sampled, and kept as data."""

import jax
import numpy as np
import pytest

from mechgap.errors import InvalidInput
from mechgap.lang import Bool, Float, GraphProgram, Pointer, init, minimum, other, self
from mechgap.programs.interpreter import execution_batch
from mechgap.programs.library import LIBRARY, mechanisms
from mechgap.programs.load import find_task
from mechgap.programs.posing import posed
from mechgap.tasks.official import official
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import get_task
from random_programs import random_program

OWN = ["reachability", "smallest_label", "strongest_neighbour"]


def assert_traced_alike(program, batch):
    """The trace made on device is the interpreter's, up to what float32 can hold."""
    reference = execution_batch(program, {n: np.asarray(v) for n, v in batch.inputs.items()})
    found = batch.trim()
    assert np.array_equal(found.lengths, reference.lengths)
    times = max(1, int(np.max(np.asarray(found.lengths))))
    for name in found.hints:
        ours, theirs = (np.asarray(b.hints[name])[:times] for b in (found, reference))
        assert np.allclose(ours, theirs, atol=1e-5), name
    for name in found.outputs:
        assert np.allclose(found.outputs[name], reference.outputs[name], atol=1e-5), name


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("nodes", [1, 2, 9])
def test_a_programs_own_task_is_traced_as_the_interpreter_runs_it(name, nodes):
    program = LIBRARY[name]
    assert_traced_alike(program, sample(posed(program), jax.random.key(1), nodes=nodes))


def test_random_programs_are_tasks():
    for seed in range(12):
        program = random_program(np.random.default_rng(seed), f"random_{seed}")
        batch = sample(posed(program), jax.random.key(seed), batch_size=8, nodes=6)
        assert_traced_alike(program, batch)


def test_programs_that_answer_for_clrs_have_clrs_task():
    for name in ("bfs", "bfs_parent", "bellman_ford", "dfs", "dijkstra"):
        assert posed(LIBRARY[name]) == get_task(LIBRARY[name].task)
    task = posed(LIBRARY["reachability"])
    assert task.tracer is not None
    assert mechanisms(task) == (LIBRARY["reachability"],)


@pytest.mark.parametrize("name", OWN)
def test_own_tasks_have_the_official_graphs(name):
    program = LIBRARY[name]
    for split in ("test", "validation"):
        batch, clrs = official(posed(program), split), official(program.task, split)
        assert all(np.array_equal(batch.inputs[n], clrs.inputs[n]) for n in clrs.inputs)
        assert_traced_alike(program, batch)


seen, count, pi = Bool("seen"), Float("count"), Pointer("pi")


def program(**parts):
    return GraphProgram(
        **{
            "name": "mine", "task": "bfs", "inputs": {"idx": "pos", "start": "s"},
            "hidden": (seen,), "init": dict(seen=init.start), "select": minimum(other.idx),
            "update": dict(seen=self.seen | other.seen), "hints": {"seen_h": seen},
            "output": {"seen_o": seen}, **parts,
        }
    )  # fmt: skip


def test_a_program_that_never_ends_is_no_task(tmp_path):
    toggling = program(update=dict(seen=~self.seen))
    with pytest.raises(InvalidInput, match=r"mine still changes after 256 steps .* no fixpoint"):
        posed(toggling).max_hints(16)
    path = tmp_path / "mine.py"
    path.write_text(
        "from mechgap.lang import *\n"
        "seen = Bool('seen')\n"
        "mine = GraphProgram(name='mine', task='bfs', inputs={'idx': 'pos'}, hidden=(seen,),\n"
        "    init={}, select=minimum(other.idx), update=dict(seen=~self.seen),\n"
        "    hints={'seen_h': seen}, output={'seen_o': seen})\n"
    )
    with pytest.raises(InvalidInput, match="no fixpoint"):
        find_task(f"{path}:mine")


def test_what_makes_no_sense_is_no_task(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from mechgap.lang import *\n"
        "seen = Bool('seen')\n"
        "mine = GraphProgram(name='mine', task='bfs', inputs={'idx': 'pos'}, hidden=(seen,),\n"
        "    init={}, select=minimum(other.idx), update=dict(seen=other.sene),\n"
        "    hints={'seen_h': seen}, output={'seen_o': seen})\n"
    )
    with pytest.raises(InvalidInput, match=r"mine is no task: \(1\) unknown-name"):
        find_task(f"{path}:mine")
    with pytest.raises(InvalidInput, match=r"unknown task 'reachabilty'\. Did you mean 'reach"):
        find_task("reachabilty")


def test_lengths_are_where_the_state_changes_for_the_last_time():
    counting = program(
        hidden=(seen, count), update=dict(seen=self.seen | other.seen, count=self.count + 0.5),
        hints={"seen_h": seen, "count_h": count}, output={"count_o": count}, steps=4,
    )  # fmt: skip
    batch = sample(posed(counting), jax.random.key(0), batch_size=3, nodes=5)
    assert batch.lengths.tolist() == [5, 5, 5]
    assert np.all(np.asarray(batch.outputs["count_o"]) == 2.0)
    assert np.asarray(batch.hints["count_h"])[:, 0, 0].tolist() == [0, 0.5, 1, 1.5, 2]
