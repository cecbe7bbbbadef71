"""From whom nodes attend to, and the trace, back to a program that runs."""

import jax
import numpy as np
import pytest

from mechgap.decompiler.assembling import assembled
from mechgap.decompiler.search import search
from mechgap.decompiler.updates import updates_of
from mechgap.lang import Bool, Phase, Program, edge, minimum, other, self
from mechgap.programs.interpreter import interpret
from mechgap.programs.library import LIBRARY
from mechgap.programs.validate import problems
from seen_programs import graphs_of, seen


def found(program, graphs):
    """The program that is read off a program's run."""
    scenes, attended = seen(program, 11, graphs, 16)
    rules = []
    for phase in range(program.selections):
        rules.append(search(scenes, attended[:, phase])[0].rule)
        scenes = scenes.after_phase(phase, attended[:, phase])
    updates, keeps = updates_of(scenes, rules)
    batch = graphs_of(program, 11, graphs, 16)
    return assembled("found", batch, scenes, rules, updates, keeps=keeps)


STILL = Bool("still")
IDLE = Program(
    name="idle",
    task="bfs",
    inputs={"idx": "pos", "link": "adj"},
    hidden=(STILL,),
    phases=(
        Phase(
            select=minimum(other.idx),
            mask=edge.link,
            update=dict(still=self.still & other.still),
        ),
    ),
    hints={"still_h": STILL},
    output={"still_o": STILL},
)
"""Nothing ever changes: no trace has a second step, and none tells what an update is."""


@pytest.mark.parametrize(
    "program",
    [
        *map(LIBRARY.get, ("bfs", "bfs_parent", "bellman_ford", "reachability", "smallest_label")),
        *map(LIBRARY.get, ("strongest_neighbour", "dijkstra", "mst_prim", "dfs", "dfs_parent")),
        IDLE,
    ],
    ids=lambda program: program.name,
)
def test_it_runs_as_the_one_that_it_was_read_off(program):
    again = found(program, 8 if program.selections == 3 else 24)
    assert list(problems(again)) == []
    assert set(program.output) == set(again.output)
    batch = graphs_of(program, 5, 8, 24)
    inputs = jax.tree.map(np.asarray, batch.inputs)
    ours, theirs = (interpret(p, inputs, batch.steps) for p in (again, program))
    counted = np.arange(batch.steps)[:, None] < np.maximum(1, np.asarray(batch.lengths) - 1)
    of_phases = np.repeat(counted, program.selections, axis=0)
    assert (ours.senders == theirs.senders)[of_phases].all()
    for hint, component in again.hints.items():
        mine, truth = ours.states[component.name], theirs.states[program.hints[hint].name]
        np.testing.assert_allclose(mine[1:][counted], truth[1:][counted], atol=1e-5, err_msg=hint)
