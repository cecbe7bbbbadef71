"""What `benchmarks/decompile.py` asks of a program that was found."""

from dataclasses import replace

import numpy as np
import pytest

from decompile import Found, shares
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.decompiler.rules import Rule
from mechgap.lang import edge, init, minimum, other, self, where
from mechgap.programs.library import LIBRARY
from mechgap.typed import plain, typed
from recovered import compared, held_out, lacking, rule_of, same_letters
from round_trips import RoundTrip, recompiled, round_trip
from spoiled import CONTROLLED, noisy, shuffled

BFS, BELLMAN_FORD = LIBRARY["bfs"], LIBRARY["bellman_ford"]
OWN = Rule(minimum(other.idx), (other.visit, ~self.visit))


@pytest.mark.parametrize(
    "rule",
    [
        OWN,
        Rule(minimum(other.idx)),
        Rule(minimum(other.dist + edge.weight), (other.visit | self.start,), self.pi),
        Rule(minimum(other.idx), (), where(self.visit, self.pi, self.met_0)),
    ],
    ids=str,
)
def test_a_rule_is_read_back_from_its_text(rule):
    assert rule_of(str(rule)) == rule


def test_to_the_letter_means_the_same_words_in_any_order():
    assert same_letters(BFS, [OWN])
    assert same_letters(BFS, [replace(OWN, mask=(~self.visit, other.visit))])
    assert not same_letters(BFS, [replace(OWN, mask=(other.visit,))])
    mask = (other.visit, ~edge.loop, ~self.start)  # the program says init.start
    assert same_letters(BELLMAN_FORD, [Rule(minimum(other.dist + edge.weight), mask)])


def test_rules_are_compared_in_every_row():
    assert compared(BFS, [OWN], 16, False, graphs=40).wrong == 0
    found = compared(BFS, [replace(OWN, mask=(other.visit,))], 16, False, graphs=40)
    assert found.graphs == 40
    assert 0 < found.wrong < found.rows


def test_what_no_word_says_is_named():
    assert lacking(BFS) == ()
    assert lacking(LIBRARY["bfs_parent"]) == ()  # a level follows from the trace
    secret = replace(BFS, hints={"pi_h": BFS.hints["pi_h"]})
    assert lacking(secret) == ("phase 0: 'visit' is no hint",)
    (phase,) = BELLMAN_FORD.phases
    three = replace(phase, select=minimum(other.dist + edge.weight + 0.1 * other.idx))
    assert lacking(replace(BELLMAN_FORD, phases=(three,))) == (
        "phase 0: a key of 3 numbers, other.dist + edge.weight + 0.1 * other.idx",
    )
    (phase,) = BFS.phases
    late = replace(phase, mask=other.visit & init.start, otherwise=self.pi, update={})
    assert lacking(replace(BFS, phases=(phase, late))) == (
        "phase 1: 'pi' has been set in phase 0 to other.idx",  # where nobody was selected it stays
    )


def test_shuffled_attention_stays_in_sight():
    batch = held_out(BFS, 8, 4, 1)
    adjacent = np.asarray(batch.inputs["adj"]) > 0
    support = (adjacent | adjacent.swapaxes(-1, -2) | np.eye(8, dtype=bool))[:, None]
    attention = np.random.default_rng(0).random((batch.steps, 4, 1, 8, 8)) * support
    changed = shuffled(batch, attention)
    assert not (changed * ~support).any()
    assert (changed != attention).any()
    np.testing.assert_array_equal(np.sort(changed, -1), np.sort(attention, -1))


def test_noise_leaves_no_parameter_as_it_was():
    network = compile_program(BFS, TARGETS["general"], Domain.regular(BFS, 16)).network
    assert noisy(network, 0.1, 3).parameters == network.parameters
    before, after = (n.processor.attention for n in (network, noisy(network, 0.1, 3)))
    assert 0 < float(np.abs(np.asarray(before) - np.asarray(after)).max()) < np.abs(before).max()


def test_rows_are_read_back_and_told():
    row = RoundTrip("bfs", "general", compared={16: compared(BFS, [OWN], 16, False, graphs=8)})
    found = Found(library=(row,), random=(replace(row, seed=1, lacks=("phase 0: x",)),))
    assert typed(Found, plain(found)) == found
    told = {share.what: share for share in shares(found)}
    assert told["library: recovered"].passes
    assert told["random: recovered where words suffice"].passes is None
    assert {*CONTROLLED} <= {*LIBRARY}


@pytest.mark.slow
def test_a_program_comes_back_from_its_network_and_compiles_again():
    row = round_trip(LIBRARY["reachability"], TARGETS["general"], graphs=64)
    assert row.recovered, row.why_not
    assert row.to_the_letter
    assert row.claim == "program"
    again = recompiled(row)
    assert again.refused is None
    assert (again.graphs, again.unlike) == (80, 0)
