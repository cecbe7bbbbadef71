"""Soft forms: weights that attention was made with come back, and shares mean what they say."""

import numpy as np
import pytest

from mechgap.decompiler.soft import SoftForm, Word, rule_softly, soft_forms, softened
from mechgap.decompiler.watched import Watched, spread, watched
from mechgap.programs.expressions import Name, Side, edge
from mechgap.programs.library import LIBRARY
from seen_programs import graphs_of, seen

VISIT, INDEX = Name(Side.OTHER, "visit"), Name(Side.OTHER, "idx")


@pytest.fixture(scope="module")
def scenes():
    return seen(LIBRARY["bfs"], 11, 24, 16)[0]


def attending(scenes, form):
    uniform = scenes.support / scenes.support.sum(-1, keepdims=True)
    return Watched(scenes, form.attention(Watched(scenes, uniform)))


def test_the_weights_come_back(scenes):
    made = SoftForm((Word(VISIT), Word(edge.loop), Word(INDEX, "reached")), (2.0, 1.0, -3.0))
    given = attending(scenes, made)
    path = soft_forms(given)
    shares = [given.explained(form.attention(given)) for form in path]
    assert shares[0] < 0.9
    assert shares[2] > 0.999
    found = dict(zip(path[2].words, path[2].weights, strict=True))
    assert found == pytest.approx(dict(zip(made.words, made.weights, strict=True)), abs=0.1)


def test_shares_are_of_the_divergence_from_uniform(scenes):
    given = attending(scenes, SoftForm((Word(VISIT),), (3.0,)))
    assert given.explained(given.attention) == pytest.approx(1.0, abs=0.01)
    assert given.explained(given.uniform) == pytest.approx(0.0, abs=1e-9)
    assert given.explained(given.attention[::-1]) < 0.9
    assert Watched(scenes, given.uniform).explained(given.attention) == 0.0  # nothing to explain
    assert Watched(scenes, given.uniform).sharpness == pytest.approx(0.0, abs=1e-9)


def test_chance_is_not_explained(scenes):
    rng = np.random.default_rng(0)
    raw = np.where(scenes.support, rng.exponential(size=scenes.support.shape) ** 3, 0)
    chance = Watched(scenes, raw / raw.sum(-1, keepdims=True))
    other, _ = seen(LIBRARY["bfs"], 12, 24, 16)
    raw = np.where(other.support, rng.exponential(size=other.support.shape) ** 3, 0)
    held_out = Watched(other, raw / raw.sum(-1, keepdims=True))
    assert held_out.explained(soft_forms(chance)[-1].attention(held_out)) < 0.05


def test_a_rule_softly_gives_the_selected_its_share(scenes):
    chosen = np.eye(scenes.nodes)[scenes.oneself]
    given = attending(scenes, SoftForm((Word(edge.loop),), (2.5,)))
    logits = softened(given, chosen)
    assert logits == pytest.approx(dict.fromkeys(given.receivers, 2.5), abs=0.05)
    np.testing.assert_allclose(rule_softly(given, chosen, logits), given.attention, atol=0.02)


def test_what_was_taken_apart_is_put_together_again():
    program = LIBRARY["dijkstra"]
    batch = graphs_of(program, 3, 4, 8)
    rng = np.random.default_rng(1)
    shape = (batch.steps * program.selections, batch.size, batch.nodes, batch.nodes)
    attention = rng.dirichlet(np.ones(batch.nodes), shape[:-1])
    phases = watched(batch, attention, sees_all=True)
    whole = spread(batch, phases[0].scenes, [phase.attention for phase in phases])[:, :, 0]
    counted = np.arange(batch.steps)[:, None] < np.maximum(1, np.asarray(batch.lengths) - 1)
    counted = np.repeat(counted, program.selections, axis=0)
    np.testing.assert_allclose(whole[counted], attention[counted], atol=1e-6)
    assert (whole[~counted] == np.eye(batch.nodes)).all()
