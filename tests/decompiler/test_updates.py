"""What a step makes of a state: found on some graphs, right on others."""

import numpy as np
import pytest

from mechgap.decompiler.updates import Rows, update_of
from mechgap.programs.conclusions import First
from mechgap.programs.expressions import Expression
from mechgap.programs.library import LIBRARY
from seen_programs import seen


def at_the_end(program, key, graphs, nodes):
    """Scenes in which all phases are over."""
    scenes, attended = seen(program, key, graphs, nodes)
    for phase in range(program.selections):
        scenes = scenes.after_phase(phase, attended[:, phase])
    return scenes


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        *((name, set()) for name in ("bfs", "bfs_parent", "bellman_ford", "smallest_label")),
        *((name, set()) for name in ("reachability", "strongest_neighbour")),
        *((name, set()) for name in ("dijkstra", "mst_prim")),
        ("dfs", {"d", "f"}),  # which the program does not claim either
        ("dfs_parent", {"d", "f"}),
    ],
)
def test_every_hint_follows_from_what_was_seen(name, unknown):
    program = LIBRARY[name]
    fit = at_the_end(program, 11, 8 if program.selections == 3 else 24, 16)
    others = at_the_end(program, 12, 8, 24)
    rows = Rows.of(fit)
    for component in dict.fromkeys(fit.words.hints.values()):
        found = update_of(component, rows)
        assert (found is None) == (component.name in unknown), component.name
        if not isinstance(found, Expression):
            continue
        given = others.seen(found, others.last_senders)[others.told]
        truth = others.after[component.name][others.told]
        np.testing.assert_allclose(given, truth, atol=1e-5, err_msg=f"{component.name} = {found}")


def test_the_node_that_is_taken_is_told():
    found = update_of(
        LIBRARY["dijkstra"].hints["u"], Rows.of(at_the_end(LIBRARY["dijkstra"], 11, 24, 16))
    )
    assert isinstance(found, First)
    assert str(found) == "first(equal(self.met_0, self.idx))"
