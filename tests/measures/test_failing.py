"""What is first wrong at nodes that are answered wrongly."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.calls import compile
from mechgap.measures.data import make_data
from mechgap.measures.failing import FIRSTS, failing
from mechgap.network.trace import run
from mechgap.tasks.sampling import sample


@pytest.fixture(scope="module")
def compiled():
    return compile("bfs", "general", 10).network


@pytest.fixture(scope="module")
def data():
    batch = sample("bfs", jax.random.key(4), batch_size=8, nodes=10, random_pos=False)
    return make_data("test", batch.trim())


def node_with_a_choice(data):
    """A step, graph and node that is updated there, and a neighbour that is not reached yet."""
    truth = data.truths[0]
    support = np.asarray(data.support)
    for step, graph, node in np.argwhere(np.asarray(truth.updated)):
        wrong = support[graph, node] & ~np.asarray(truth.acceptable)[step, graph, node]
        others = [s for s in np.flatnonzero(wrong) if s != node]
        if others and np.asarray(data.valid)[step, graph]:
            return step, graph, node, others[0]
    raise AssertionError("no such node")


def with_wrong_output(trace, data, graph, node):
    pi = np.array(trace.outputs["pi"])
    right = int(data.batch.outputs["pi"][graph, node])
    pi[graph, node] = np.eye(10)[(right + 1) % 10]
    return eqx.tree_at(lambda t: t.outputs["pi"], trace, jnp.asarray(pi))


def test_nothing_fails_in_a_compiled_network(compiled, data):
    found = failing(data, data.truths[0], run(compiled, data.batch))
    assert (found.nodes, found.of) == (0, 80)
    assert {*found.first.values()} == {0.0}
    assert found.kinds["never updated"].all > 0  # the source


def test_wrong_attention_is_found_where_it_is(compiled, data):
    step, graph, node, other = node_with_a_choice(data)
    exact = data.truths[0].attention
    wrong = exact.at[step, graph, 0, node].set(jax.nn.one_hot(other, 10))
    found = failing(data, data.truths[0], run(compiled, data.batch, replace={"attention": wrong}))
    assert found.nodes >= 1
    # The hint of that very step names the wrong sender too.
    assert found.first["both in one step"] > 0
    assert sum(found.first.values()) == pytest.approx(1)


def test_an_output_can_be_wrong_alone(compiled, data):
    found = failing(data, data.truths[0], with_wrong_output(run(compiled, data.batch), data, 2, 3))
    assert found.nodes == 1
    assert found.first == {name: float(name == FIRSTS[-1]) for name in FIRSTS}
    assert found.elsewhere_before == 0


def test_a_hint_can_be_wrong_before_attention(compiled, data):
    step, graph, node, _ = node_with_a_choice(data)
    trace = with_wrong_output(run(compiled, data.batch), data, graph, node)
    reach = np.array(trace.hints["reach_h"])
    reach[step:, graph, node] *= -1
    spoiled = eqx.tree_at(lambda t: t.hints["reach_h"], trace, jnp.asarray(reach))
    found = failing(data, data.truths[0], spoiled)
    assert found.nodes == 1
    assert found.first["a hint"] == 1
