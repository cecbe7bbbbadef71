"""Programs of one phase: what it takes to keep, to follow, and not to select oneself."""

import numpy as np
import pytest

from changed_programs import changed, search
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.phased.keeping import Keeping, keeping_of, own_flags, relaxes
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs, posed_batch, verify
from mechgap.lang import edge, init, minimum, other, self
from mechgap.programs.library import LIBRARY, bellman_ford, bfs
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official

following = search(self.pi)


def test_search_that_follows_its_parents_fits_three_hidden_units():
    made = compile_program(
        following, TARGETS["stock"], Domain.regular(following, 64), hidden_size=3
    )
    assert made.network.parameters == 310
    found = verify(made, official("bfs", "test"))
    assert found.exact, found.sentence
    assert found.outside_certificate == 0
    for target in ("stock-ln", "general", "paper"):
        network = compile_program(following, TARGETS[target], Domain.regular(following, 16))
        assert verify(network, fresh_graphs(following, 16, 16, 0)).exact


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("bfs", {"visit": Keeping.SAME, "pi": Keeping.ONCE}),
        ("bfs_parent", {"visit": Keeping.SAME, "level": Keeping.FIRST, "pi": Keeping.FIRST}),
        ("bellman_ford", {"visit": Keeping.SAME, "dist": Keeping.FIRST, "pi": Keeping.FIRST}),
        ("smallest_label", {"label": Keeping.NEVER}),
        ("strongest_neighbour", {"pi": Keeping.FIRST}),
    ],
)
def test_how_the_librarys_programs_keep(program, how):
    (phase,) = LIBRARY[program].phases
    assert {name: keeping_of(LIBRARY[program], phase, name) for name in phase.update} == how


@pytest.mark.parametrize(
    ("change", "unproven"),
    [
        (dict(update={"visit": self.visit | init.start, "pi": other.idx}), ["visit", "pi"]),
        (dict(mask=other.visit & ~self.visit, update={"visit": other.visit, "pi": other.pi}), []),
        (dict(mask=other.visit & self.start), []),  # who is asked is always the same
    ],
)
def test_what_is_not_proven_is_not_kept(change, unproven):
    program = changed(bfs, **change)
    (phase,) = program.phases
    missing = [n for n in phase.update if keeping_of(program, phase, n) is None]
    assert missing == unproven


def test_only_a_number_that_is_the_smallest_offer_relaxes():
    (phase,) = bellman_ford.phases
    assert relaxes(bellman_ford, phase)
    assert own_flags(phase) == [self.visit, ~init.start]
    for other_one in (
        changed(bellman_ford, select=minimum(other.dist)),
        changed(bellman_ford, mask=other.visit & ~edge.loop),  # the source has had no offer
        changed(bellman_ford, init={"visit": init.start, "dist": init.idx}),
    ):
        assert not relaxes(other_one, other_one.phases[0])


@pytest.mark.parametrize("name", ["bfs_parent", "smallest_label"])
def test_numbers_go_through_layer_norm(name):
    program = LIBRARY[name]
    made = compile_program(program, TARGETS["stock-ln"], Domain.regular(program, 64))
    found = verify(made, posed_batch(program, official(program.task, "test")))
    assert found.exact, found.sentence
    assert found.outside_certificate == 0


def test_the_certificate_of_bellman_ford_covers_the_benchmark_but_for_one_graph():
    made = compile_program(bellman_ford, TARGETS["general"], Domain.regular(bellman_ford, 64))
    found = verify(made, official("bellman_ford", "test"))
    assert found.exact, found.sentence
    assert found.inside_certificate >= 31
    assert made.certificate.value_gap(8) < 4e-5


def test_isolated_nodes_keep():
    for name in ("bfs", "bfs_parent", "bellman_ford", "strongest_neighbour"):
        program = LIBRARY[name]
        made = compile_program(program, TARGETS["general"], Domain.regular(program, 6))
        weights = np.zeros((6, 6))
        weights[0, 1] = weights[1, 0] = 0.25
        weights[4, 4] = 0.5
        for source in (0, 4, 5):
            batch = posed_batch(program, from_graphs(program.task, weights, source))
            found = verify(made, batch)
            assert found.exact, (name, source, found.sentence)
