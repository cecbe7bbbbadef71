"""What attention carries, on networks that were made to carry it or not to."""

import json
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap import from_graphs
from mechgap.calls import compile as compile_named
from mechgap.measures.channels import (
    Channels,
    Followed,
    Follows,
    Number,
    channels,
    interchanged,
)
from mechgap.measures.data import Data
from mechgap.measures.results import load_results
from mechgap.measures.run import measure_run
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.report.measures import show_measures
from mechgap.tasks.sampling import make_batch, sample
from mechgap.typed import plain, typed
from untrained_runs import untrained_run

NODES, GRAPHS = 12, 16


def graphs(task: str = "bellman_ford", size: int = GRAPHS) -> Data:
    batch = sample(task, jax.random.key(3), batch_size=size, nodes=NODES, p=[0.6], random_pos=False)
    return Data("some", batch.trim(), ())


@pytest.fixture(scope="module")
def data() -> Data:
    return graphs()


def with_other_weights(batch):
    """The same graphs with interchanged weights."""
    rng = np.random.default_rng(0)
    A = np.stack([interchanged(each, rng) for each in np.asarray(batch.inputs["A"])])
    sources = jnp.argmax(batch.inputs["s"], axis=-1)
    other = make_batch(batch.task, jnp.asarray(A), sources, batch.inputs["pos"])
    return other.cut(batch.max_hints)


def soft_reader() -> Network:
    """A network that has the distance to the source by how much it attends to it, and only so.

    A node attends to itself (in the first step, its own predecessor) and to the source, to this
    less the longer the edge. Its state is how much that was, and so is the distance that it says.
    """
    config = NetworkConfig(hidden_size=4, use_ln=False)
    blank = Network.initial("bellman_ford", jax.random.key(0), config)
    network = jax.tree.map(jnp.zeros_like, blank)

    def put(network, where, *entries):
        for at, value in entries:
            network = eqx.tree_at(where, network, where(network).at[at].set(value))
        return network

    network = put(network, lambda n: n.encoders.linears["s"].weight, ((0, 0), 1.0))
    network = put(network, lambda n: n.encoders.linears["A"].weight, ((0, 0), 1.0))
    network = put(network, lambda n: n.encoders.linears["pi_h"].weight, ((0, 1), 1.0))
    network = put(network, lambda n: n.processor.edge.weight, ((0, 0), 1.0), ((1, 1), 1.0))
    # The weight counts for the source alone: for others the leaky ReLU is on its flat side.
    network = put(network, lambda n: n.processor.sender.weight, ((0, 0), 5.0), ((0, 1), 1.0))
    network = put(network, lambda n: n.processor.sender.bias, (0, -5.0))
    network = put(network, lambda n: n.processor.attention, ((0, 0), -3.0), ((0, 1), 10.0))
    network = put(network, lambda n: n.processor.value.weight, ((0, 0), 1.0))
    return put(network, lambda n: n.decoders["d"].linear.weight, ((8, 0), -1.0))


@pytest.fixture(scope="module")
def read_softly(data) -> Channels:
    found = channels(soft_reader(), data)
    assert found is not None
    return found


def test_a_compiled_network_has_its_distances_along_edges(data):
    found = channels(compile_named("bellman_ford", "general", NODES).network, data)
    assert found is not None
    assert found.attention < 0.01  # all is on the source, however long the edge
    assert found.hidden > 0.999
    distance = found.numbers["d"]
    assert distance.verdict == "edges"
    first = distance.first
    assert first.cases == found.rows > 100
    for name in ("own", "interchanged", "hardened", "source"):
        assert first.under[name].true > 0.999, name
        assert first.under[name].other == pytest.approx(first.shared, abs=1e-3), name
    assert first.under["self"] == Follows(0.0, 0.0)
    # In the end it sums true weights, but along ways that the other ones made it select.
    end = distance.end.under
    assert end["own"].true > 0.999
    assert end["own"].other == pytest.approx(distance.end.shared, abs=1e-3)
    assert end["interchanged"].true < 0.9


def test_a_number_that_is_read_from_attention_follows_it(read_softly):
    assert read_softly.attention > 0.95
    assert read_softly.hidden > 0.95
    distance = read_softly.numbers["d"]
    assert distance.verdict == "attention"
    under = distance.first.under
    assert under["own"].true > 0.95
    assert under["interchanged"].other > 0.95
    assert under["interchanged"].true < 0.05
    assert under["source"] == Follows(0.0, 0.0)  # the right sender, and no message
    assert under["hardened"].true < under["own"].true - 0.1


def test_a_message_that_nobody_reads_is_carried_all_the_same(data, read_softly):
    deaf = eqx.tree_at(lambda n: n.processor.value.weight, soft_reader(), replace_fn=jnp.zeros_like)
    found = channels(deaf, data)
    assert found is not None
    assert found.attention == read_softly.attention
    assert found.hidden == 0
    assert found.numbers["d"].verdict == "cannot tell"


@pytest.mark.parametrize("given", [{}, {"nb_heads": 2, "nb_msg_passing_steps": 2}])
def test_without_edge_information_attention_is_the_only_way(data, given):
    """Edges enter logits, mask and pointer decoders. With attention forced, a node's state and its
    numbers are the same for all weights, in every step; its pointers need not be."""
    other = with_other_weights(data.batch)
    for edges in (False, True):
        config = NetworkConfig(hidden_size=8, use_edge_info=edges, **given)
        network = Network.initial("bellman_ford", jax.random.key(1), config)
        giver = run(network, other)
        on_true = run(network, data.batch, replace={"attention": giver.attention})
        assert not jnp.array_equal(run(network, data.batch).hidden, giver.hidden)
        for name in ("d", "msk"):
            same = bool(jnp.array_equal(on_true.hints[name], giver.hints[name]))
            assert same is not edges
        assert bool(jnp.array_equal(on_true.hidden, giver.hidden)) is not edges
        assert not jnp.array_equal(on_true.hints["pi_h"], giver.hints["pi_h"])


@pytest.mark.parametrize(
    ("task", "number", "given"),
    [
        ("dijkstra", "d", {"use_edge_info": True, "nb_heads": 2}),
        ("mst_prim", "key", {"processor_type": "gatv2_full", "nb_msg_passing_steps": 2}),
        ("bellman_ford", None, {"hint_mode": "none"}),
    ],
)
def test_every_architecture_and_weighted_task(task, number, given):
    network = Network.initial(task, jax.random.key(0), NetworkConfig(hidden_size=8, **given))
    found = channels(network, graphs(task, 4))
    assert found is not None
    assert list(found.numbers) == ([number] if number else [])
    assert 0 <= found.attention <= 1
    assert 0 <= found.hidden <= 1
    for each in found.numbers.values():
        assert each.first.under.keys() == {*each.end.under, "source"}
        for followed in (each.first, each.end):
            assert followed.cases > 10
            assert all(0 <= f.true <= 1 and 0 <= f.other <= 1 for f in followed.under.values())


@pytest.mark.parametrize("task", ["bfs", "dfs"])
def test_a_task_without_weights_has_nothing_to_carry(task):
    network = Network.initial(task, jax.random.key(0), NetworkConfig(hidden_size=4))
    assert channels(network, graphs(task, 2)) is None


def test_weights_that_are_all_the_same_say_nothing():
    network = Network.initial("bellman_ford", jax.random.key(0), NetworkConfig(hidden_size=4))
    for matrix in (np.ones((4, 4)), np.zeros((1, 1))):
        batch = from_graphs("bellman_ford", matrix, 0)
        assert channels(network, Data("same", batch, ())) is None


def test_one_graph_cannot_be_fitted_and_scored():
    found = channels(soft_reader(), graphs(size=1))
    assert found is not None
    assert math.isnan(found.attention)
    assert math.isnan(found.hidden)
    assert found.numbers["d"].verdict == "attention"


def test_interchanged_weights_are_the_same_on_the_same_edges(data):
    A = np.asarray(data.batch.inputs["A"][0])
    other = interchanged(A, np.random.default_rng(0))
    assert (other == other.T).all()
    assert ((other != 0) == (A != 0)).all()
    assert (np.diag(other) == np.diag(A)).all()
    assert (np.sort(other, axis=None) == np.sort(A, axis=None)).all()
    assert (other != A).any()


@pytest.mark.parametrize(
    ("own", "true", "other", "verdict"),
    [(0.9, 0.0, 0.8, "attention"), (0.9, 0.8, 0.0, "edges"), (0.9, 0.5, 0.5, "both"),
     (0.9, 0.2, 0.2, "neither"), (0.04, 0.04, 0.0, "cannot tell"),
     (math.nan, 0.0, 0.0, "cannot tell")],
)  # fmt: skip
def test_a_verdict_is_which_weights_are_followed(own, true, other, verdict):
    under = {"own": Follows(own, 0.0), "interchanged": Follows(true, other)}
    followed = Followed(10, 0.0, under)
    assert Number(followed, followed).verdict == verdict


def test_channels_are_kept_as_files(read_softly):
    assert typed(Channels, json.loads(json.dumps(plain(read_softly)))) == read_softly


def test_a_run_is_measured_and_shown(tmp_path, capsys):
    folder = untrained_run(tmp_path / "run", "bellman_ford", seeds=(0,))
    results = measure_run(folder)
    compiled = results.baselines["compiled"].channels
    assert compiled is not None
    assert compiled.numbers["d"].verdict == "edges"
    assert results.baselines["untrained"].channels is not None
    show_measures(load_results(folder))
    shown = capsys.readouterr().out
    assert "weight of the edge from the source" in shown
    assert "d, first step" in shown

    path = folder / "measures.json"
    numbers = json.loads(path.read_text())
    for row in (*numbers["seeds"].values(), *numbers["baselines"].values()):
        del row["channels"]  # as in files of before there were any
    path.write_text(json.dumps(numbers))
    older = load_results(folder)
    assert older.seeds[0].channels is None
    show_measures(older)
    assert "weight of the edge" not in capsys.readouterr().out
