"""Programs of one phase: what it takes to keep, to follow, and not to select oneself."""

from dataclasses import replace

import numpy as np
import pytest

from changed_programs import changed, search
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.keeping import Keeping, keeping_of, own_flags, relaxes
from mechgap.compiler.reading import Reading
from mechgap.compiler.registers import Gated, registers
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs, posed_batch, verify
from mechgap.errors import InvalidInput
from mechgap.lang import (
    Bool,
    Float,
    GraphProgram,
    Phase,
    Pointer,
    Program,
    edge,
    equal,
    init,
    minimum,
    other,
    self,
    where,
)
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


@pytest.mark.parametrize("target", ["general", "paper"])
def test_the_certificate_of_bellman_ford_covers_the_benchmark(target):
    made = compile_program(bellman_ford, TARGETS[target], Domain.regular(bellman_ford, 64))
    found = verify(made, official("bellman_ford", "test"))
    assert found.exact, found.sentence
    assert found.outside_certificate == 0
    assert made.certificate.value_gap(8) < 1.3e-5


def test_pointers_that_nodes_copy_begin_at_the_node_itself():
    """Everyone takes over the lowest neighbour's pointer; without neighbours, its own."""
    root, near = Pointer("root"), Pointer("near")
    following_on = GraphProgram(
        name="following_on", task="bfs", inputs={"idx": "pos", "start": "s", "link": "adj"},
        hidden=(root, near), init={}, select=minimum(other.idx), mask=edge.link,
        update=dict(root=other.near, near=other.idx), steps=3,
        hints={"root_h": root, "near_h": near}, output={"root_o": root},
    )  # fmt: skip
    for target in ("stock", "stock-ln", "general", "paper"):
        made = compile_program(following_on, TARGETS[target], Domain.regular(following_on, 16))
        found = verify(made, fresh_graphs(following_on, 16, 16, 0))
        assert found.exact, (target, found.sentence)


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


def test_pointers_are_compared_from_the_start():
    """Before anyone has set its pointer it means the node itself: nobody else answers."""
    asked, seen = Bool("asked"), Pointer("seen")

    def answering(**change):
        parts = dict(
            name="answering", task="bfs", inputs={"idx": "pos", "start": "s"},
            hidden=(asked, seen), init=dict(asked=init.start), steps=3,
            phases=(
                Phase(
                    select=minimum(other.idx),
                    mask=other.asked & equal(other.seen, self.idx),
                    otherwise=self, update=dict(asked=init.start, seen=other.idx),
                ),
            ),
            hints={"asked_h": asked, "seen_h": seen}, output={"seen_o": seen},
        )  # fmt: skip
        return Program(**{**parts, **change})

    program = answering()
    for target in ("stock", "stock-ln", "general", "paper"):
        made = compile_program(program, TARGETS[target], Domain.regular(program, 8))
        found = verify(made, fresh_graphs(program, 8, 16, 0))
        assert found.exact, (target, found.sentence)
    (phase,) = program.phases
    asking = other.asked & equal(other.seen, self.idx) & ~edge.loop
    alone = answering(phases=(replace(phase, mask=asking),))
    with pytest.raises(InvalidInput, match="loop-and-comparison"):
        compile_program(alone, TARGETS["stock"], Domain.regular(program, 8))
    second = Phase(select=minimum(other.idx), update=dict(asked=init.start))
    first = replace(phase, update=dict(seen=other.idx))
    predicted = dict(output={"asked_o": asked}, hints={"asked_h": asked})
    early = answering(phases=(second, first), **predicted)
    with pytest.raises(InvalidInput, match="compared-too-early: phase 1 compares 'seen'"):
        compile_program(early, TARGETS["stock"], Domain.regular(program, 8))
    late = answering(phases=(first, second), **predicted)
    with pytest.raises(InvalidInput, match="mask-without-signal"):
        compile_program(late, TARGETS["stock"], Domain.regular(program, 8))


def test_a_blocked_number_is_zero_however_many_flags_it_has():
    """Where a node is blocked all units of its number are silent, whatever its other flags say."""
    flags, x = [Bool(name) for name in "abcde"], Float("x")
    asked = other.a & other.b & other.c & other.d & other.e & ~init.start
    program = GraphProgram(
        name="many", task="bfs", inputs={"idx": "pos", "start": "s"}, hidden=(*flags, x), init={},
        select=minimum(other.idx), steps=2,
        update={**{c.name: init.start for c in flags}, "x": where(asked, other.x + 0.25, 0)},
        hints={f"{c.name}_h": c for c in (*flags, x)}, output={"x_o": x},
    )  # fmt: skip
    (gated,) = (r for r in registers(Reading(program), 1 / 8) if isinstance(r, Gated))

    def blocked(name):
        return (1.0, 1.0) if name.name == "start" else (0.0, 1.0)

    assert len(gated.units) == 3
    assert all(unit.before_relu.range(blocked)[1] <= 0 for unit in gated.units)
