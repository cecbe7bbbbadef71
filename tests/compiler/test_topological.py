"""Topological sort, compiled: exact in dm-clrs's unmodified network but for one hint."""

from dataclasses import replace

import numpy as np
import pytest

from dm_clrs_peer import peer_scores
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.programs.conclusions import linked
from mechgap.programs.expressions import edge, other, self, where
from mechgap.programs.topological import topological_sort
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official

CLAIMED = {"topo_h", "topo_head_h", "color", "s_prev", "s", "u", "s_last"}
HIDDEN = {"stock": 32, "stock-ln": 128}
TARGET = pytest.mark.parametrize("target", HIDDEN)


def compiled(target, nodes=64):
    domain = Domain.regular(topological_sort, nodes)
    return compile_program(topological_sort, TARGETS[target], domain, hidden_size=HIDDEN[target])


def assert_exact(found):
    assert found.outputs == {"topo": 1.0, "topo_head": 1.0}
    assert found.hints == dict.fromkeys(CLAIMED, 1.0)
    assert found.missed_graphs_inside == found.missed_graphs_outside == 0, found.first
    assert found.outside_certificate == 0
    assert set(found.unclaimed) == {"v"}


@TARGET
@pytest.mark.parametrize(
    ("split", "nodes"), [pytest.param("validation", 16, marks=pytest.mark.slow), ("test", 64)]
)
def test_exact_on_the_official_sets(target, split, nodes):
    network = compiled(target, nodes)
    found = verify(network, official("topological_sort", split)[:8])
    assert_exact(found)
    assert found.attention <= network.certificate.attention_error


def acyclic(nodes):
    """Paths, trees, stars, each both ways; all edges and none; the nodes' order and its reverse."""
    path, tree = np.eye(nodes, k=1), np.zeros((nodes, nodes))
    for child in range(1, nodes):
        tree[(child - 1) // 2, child] = 1
    star = np.zeros((nodes, nodes))
    star[nodes // 2] = 1 - np.eye(nodes)[nodes // 2]
    forward = [path, tree, star, np.triu(np.ones_like(path), 1), np.zeros_like(path)]
    return np.stack([*forward, *(edges.T for edges in forward)])


@pytest.mark.slow
@TARGET
@pytest.mark.parametrize("nodes", [1, 2, 5, 33])
def test_paths_trees_and_stars(target, nodes):
    assert_exact(verify(compiled(target), from_graphs("topological_sort", acyclic(nodes))))


@TARGET
def test_the_real_dm_clrs_sorts_exactly(target):
    network = compiled(target).network
    output, scores = peer_scores(network, graphs=8, nodes=16, seed=3)
    assert output == 1.0
    assert {name: float(scores[name]) for name in CLAIMED} == dict.fromkeys(CLAIMED, 1.0)
    assert 0.4 < scores["v"] < 0.7  # all but the finishing steps


def test_the_hidden_size_is_what_it_needs():
    domain = Domain.regular(topological_sort, 8)
    with pytest.raises(InvalidInput, match=r"needs hidden_size of at least 30 here"):
        compile_program(topological_sort, TARGETS["stock"], domain, hidden_size=29)


@pytest.mark.parametrize("nodes", [3, 12, 40])
def test_exact_on_new_graphs(nodes):
    assert_exact(verify(compiled("stock"), fresh_graphs(topological_sort, nodes, 16, nodes)))


choose, enter = topological_sort.phases[1:]


def choosing(**change):
    phases = list(topological_sort.phases)
    phases[1] = replace(choose, **change)
    return {"phases": tuple(phases)}


def entering(**change):
    return {"phases": (*topological_sort.phases[:2], replace(enter, **change))}


def concluding(**change):
    return {"conclude": {**topological_sort.conclude, **change}}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (choosing(otherwise=where(self.black, self.topo, self.s_prev)), "default-elsewhere"),
        (
            entering(otherwise=where(self.black & self.s, self.topo, self.s_prev)),
            "default-elsewhere",
        ),
        (entering(otherwise=where(self.black, self.topo, self.target)), "default-not-a-hint"),
        (concluding(topo=linked(self.finished, self.tail, self.target)), "unknown-conclusion"),
        (concluding(topo=linked(~self.finished, self.tail, self.idx)), "unknown-conclusion"),
        (choosing(mask=self.active & edge.link & other.white | self.s), "mask-not-a-conjunction"),
    ],
)
def test_what_cannot_compile_is_refused_by_name(change, name):
    with pytest.raises(InvalidInput, match=name):
        compile_program(
            replace(topological_sort, **change),
            TARGETS["stock"],
            Domain.regular(topological_sort, 8),
        )
