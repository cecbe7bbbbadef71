"""Rules that are read off a program's own run: the same selection on graphs that were not seen."""

import numpy as np
import pytest

from mechgap.decompiler.kinds import Kinds, condition
from mechgap.decompiler.search import search
from mechgap.programs.library import LIBRARY
from seen_programs import seen

SHORT = ["bfs", "bfs_parent", "bellman_ford", "reachability", "smallest_label"]
PHASED = ["strongest_neighbour", "mst_prim", "dijkstra", "dfs", "dfs_parent", "topological_sort"]


@pytest.mark.parametrize("name", [*SHORT, *PHASED])
def test_every_selection_of_the_library_comes_back(name):
    program = LIBRARY[name]
    graphs = 8 if program.selections == 3 else 24
    scenes, attended = seen(program, 11, graphs, 16)
    others, expected = seen(program, 12, 8, 24)
    for phase in range(program.selections):
        best = search(scenes, attended[:, phase])[0]
        assert best.agreement == 1.0
        assert (best.rule.senders(others) == expected[:, phase]).all(), str(best.rule)
        scenes = scenes.after_phase(phase, attended[:, phase])
        others = others.after_phase(phase, expected[:, phase])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bfs", "select=minimum(other.idx), mask=other.visit & ~self.visit"),
        ("strongest_neighbour", "select=maximum(edge.weight), mask=~edge.loop"),
        (
            "bellman_ford",
            "select=minimum(other.dist + edge.weight), mask=other.visit & ~edge.loop & ~self.start",
        ),
    ],
)
def test_it_reads_as_it_was_written(name, text):
    scenes, attended = seen(LIBRARY[name], 11, 24, 16)
    assert str(search(scenes, attended[:, 0])[0].rule) == text


def test_nothing_explains_what_is_random():
    scenes, attended = seen(LIBRARY["bfs"], 11, 24, 16)
    rng = np.random.default_rng(0)
    anybody = np.where(scenes.support, rng.random(scenes.support.shape), -1).argmax(-1)
    assert search(scenes, anybody)[0].agreement < 0.4
    assert search(scenes, attended[:, 0])[0].agreement == 1.0


def test_a_condition_holds_and_fails_where_it_must():
    scenes, _ = seen(LIBRARY["dfs"], 11, 8, 16)
    kinds = Kinds.of(scenes)
    rng = np.random.default_rng(1)
    for _ in range(20):
        must = rng.integers(0, 3, len(kinds.table))  # hold, fail, either
        said = condition(kinds, must == 0, must == 1)
        assert said is not None
        value = scenes.values(said)[..., 0] > 0.5
        assert value[(must == 0)[kinds.of_node]].all()
        assert not value[(must == 1)[kinds.of_node]].any()
