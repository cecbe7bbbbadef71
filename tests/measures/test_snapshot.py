"""What training sees of a network: the measures themselves, in blocks, and a fingerprint."""

import json

import jax
import numpy as np
import pytest
from scipy.spatial.distance import squareform

from mechgap.errors import InvalidInput
from mechgap.measures.along import along_training
from mechgap.measures.data import make_data
from mechgap.measures.external import external
from mechgap.measures.fingerprint import Places
from mechgap.measures.internal import internal_gap
from mechgap.measures.snapshot import MechanismSeen, Observer, Seen, Snapshot, snapshot
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.tasks.sampling import sample
from mechgap.tasks.scores import output_scores, right_graphs
from mechgap.training.presets import make_recipe

RECIPE = make_recipe("bfs", overrides={"hidden_size": 8, "length_generalize": False})


@pytest.fixture(scope="module")
def network() -> Network:
    return Network.initial("bfs", jax.random.key(0), RECIPE.network_config)


@pytest.fixture(scope="module")
def observer() -> Observer:
    return Observer(RECIPE)


def test_it_sees_what_the_measures_say(observer, network):
    seen = observer.see(network)
    (deep,) = observer.deep
    for data, found in ((observer.test, seen.test), (deep, seen.deep)):
        trace = run(network, data.batch)
        score = float(output_scores(data.batch, trace.outputs)["score"])
        assert found.accuracy == pytest.approx(score, abs=1e-6)
        whole = np.asarray(right_graphs(data.batch, trace.outputs)).mean()
        assert found.graph_accuracy == pytest.approx(whole, abs=1e-6)
        assert found.hints == pytest.approx(external(data.batch, trace.hints).accuracy, abs=1e-6)
        for truth in data.truths:
            gap = internal_gap(trace.attention, truth, data)
            beside = found.mechanisms[truth.mechanism]
            for name in ("agreement", "agreement_strict", "misplaced", "tv"):
                assert getattr(beside, name) == pytest.approx(getattr(gap, name), abs=1e-6)
            for rows, kinds in gap.parts.items():
                assert beside.parts[rows] == pytest.approx(kinds, abs=1e-6)


def test_deep_graphs_are_deeper_than_test_graphs(observer):
    (deep,) = observer.deep
    assert int(deep.batch.lengths.min()) > int(observer.test.batch.lengths.max())


def test_a_snapshot_is_data(observer, network):
    text, print_ = observer(network)
    found = snapshot(3, 250, "step", text)
    assert Snapshot.of(json.loads(json.dumps(found.data()))) == found
    assert observer(network) == (text, print_)
    with pytest.raises(InvalidInput, match="'step' is missing"):
        Snapshot.of({"seed": 3})
    with pytest.raises(InvalidInput, match="'test' must be a mapping"):
        Snapshot.of({**found.data(), "test": None})


def test_fingerprints_keep_distances():
    """As far apart as the attentions themselves on all rows, to what a sample of rows can tell."""
    batch = sample("bfs", jax.random.key(5), batch_size=32, nodes=24, p=(0.5,), random_pos=False)
    data = make_data("some", batch.trim())
    networks = [Network.initial("bfs", jax.random.key(k), RECIPE.network_config) for k in range(4)]
    exact = [truth.attention for truth in data.truths]
    attentions = [*(run(network, data.batch).attention for network in networks), *exact]
    places = Places.of(data)
    prints = np.stack([places.fingerprint(np.asarray(places.rows(a))) for a in attentions])
    assert prints.dtype == np.uint8
    assert 8_000 < prints.shape[1] < 12_000
    apart = squareform(places.distances(prints))
    for k, truth in enumerate(data.truths, start=len(networks)):
        gaps = [internal_gap(attention, truth, data).l1 for attention in attentions]
        assert apart[k] == pytest.approx(gaps, rel=0.05, abs=0.02)
    assert places.distances(prints[[0, 0]]) == pytest.approx([0.0])
    with pytest.raises(InvalidInput, match="entries"):
        places.distances(prints[:, 1:])


def test_attention_outside_the_graph_is_in_the_fingerprint():
    data = make_data("some", sample("bfs", jax.random.key(5), batch_size=4, nodes=9).trim(), ())
    places = Places.of(data)
    itself, everywhere = np.eye(9)[places.receivers], np.full((len(places.times), 9), 1 / 9)
    prints = np.stack([places.fingerprint(rows) for rows in (itself, everywhere)])
    assert places.distances(prints) == pytest.approx([2 * (1 - 1 / 9)], rel=0.01)


def a_network(seed: int, step: int, which: str, accuracy: float, tv: float) -> Snapshot:
    seen = Seen(accuracy, 0.5, 0.9, {"bfs": MechanismSeen(0.9, 0.9, 0.1, tv, {})})
    return Snapshot(seed, step, which, seen, seen, None)


def test_a_correlation_of_stopping_times_is_told_from_one_of_networks():
    """Accuracy rises and the gap falls with training, and at one step they have nothing to do with
    each other: networks that stopped at different steps correlate all the same."""
    rng = np.random.default_rng(0)
    steps = (250, 500, 1000, 2000)
    rows = []
    for seed in range(40):
        values = {s: (0.9 + 0.02 * k + 0.002 * rng.normal(), 0.6 - 0.05 * k + 0.005 * rng.normal())
                  for k, s in enumerate(steps)}  # fmt: skip
        rows += [a_network(seed, s, "step", *values[s]) for s in steps]
        stopped = int(rng.choice(steps))
        rows.append(a_network(seed, stopped, "best", *values[stopped]))
    found = along_training(rows, "deep", "bfs")
    assert found is not None
    assert [at.step for at in found.steps] == list(steps)
    assert found.stopping.pearson_r > 0.8
    best = [s.deep for s in rows if s.which == "best" and s.deep]
    gaps = [s.mechanisms["bfs"].tv for s in best]
    assert np.corrcoef([s.accuracy for s in best], gaps)[0, 1] < -0.9
    assert all(abs(at.correlation["tv"].pearson_r) < 0.45 for at in found.steps)
    model = found.models["tv"]
    assert model is not None
    assert model.interval[0] < 0 < model.interval[1]
    assert along_training([], "deep", "bfs") is None
