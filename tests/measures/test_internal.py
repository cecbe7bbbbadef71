"""The internal gap: by hand, by property, and between compiled networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechgap import InvalidInput, from_graphs, sample
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.measures.baselines import self_attention, uniform_attention
from mechgap.measures.data import Data, long_traces, make_data
from mechgap.measures.internal import internal_gap
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.library import LIBRARY, mechanisms


@pytest.fixture(scope="module")
def graphs() -> Data:
    return make_data(
        "some", sample("bfs", jax.random.key(5), batch_size=6, nodes=9, random_pos=False).trim()
    )


def test_a_path_by_hand():
    """0 - 1 - 2 from 0: at step 0 node 1 attends to 0; at step 1 node 2 attends to 1."""
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    data = make_data("path", from_graphs("bfs", path, 0))
    truth = data.truths[0]
    assert truth.senders[:2, 0].tolist() == [[0, 0, 2], [0, 1, 1]]
    steps = int(np.asarray(data.valid).sum())
    uniform = internal_gap(uniform_attention(data), truth, data)
    # Neighbours and self: nodes 0 and 2 have two, node 1 three. Right is 1/2, 1/3, 1/2.
    tv = (1 / 2 + 2 / 3 + 1 / 2) / 3
    assert uniform.tv == pytest.approx(tv)
    assert uniform.l1 == pytest.approx(2 * tv)
    assert uniform.paper == pytest.approx(2 * tv / 3)
    assert uniform.tv_by_step[:steps] == pytest.approx([tv] * steps)
    # Updated: node 1 in the first step, node 2 in the second.
    assert uniform.rows == {"updated": 2, "unchanged": 0, "inactive": 4}
    assert uniform.misplaced == pytest.approx((2 / 3 + 1 / 2) / 2)
    # By chance one of three, and one of two, is the right one.
    assert uniform.agreement == pytest.approx((1 / 3 + 1 / 2) / 2)
    # The largest entry of uniform attention is right for its share: the rest is soft and wrong.
    updated = uniform.parts["updated"]
    assert updated["soft"] == pytest.approx((1 / 3 * 2 / 3 + 1 / 2 * 1 / 2) / 6)
    assert updated["wrong"] == pytest.approx((2 / 3 * 2 / 3 + 1 / 2 * 1 / 2) / 6)
    assert uniform.entropy == pytest.approx((2 * np.log(2) + np.log(3)) / 3)
    assert uniform.sharpness == pytest.approx(0, abs=1e-6)
    alone = internal_gap(self_attention(data), truth, data)
    assert alone.tv == pytest.approx(1 / 3)
    assert alone.misplaced == 1
    assert alone.agreement == 0
    assert alone.parts["updated"] == pytest.approx({"tie": 0, "soft": 0, "wrong": 1 / 3})
    assert alone.sharpness == pytest.approx(1)


def test_the_truth_against_itself_is_zero(graphs):
    for truth in graphs.truths:
        gap = internal_gap(truth.attention, truth, graphs)
        assert (gap.tv, gap.misplaced, gap.entropy, gap.off_graph) == (0,) * 4
        assert gap.agreement == gap.agreement_strict == 1


def test_the_forms_are_one_number_in_three_scales(graphs):
    trace = run(Network.initial("bfs", jax.random.key(0)), graphs.batch)
    gap = internal_gap(trace.attention, graphs.truths[0], graphs)
    assert gap.l1 == pytest.approx(2 * gap.tv)
    assert gap.paper == pytest.approx(gap.l1 / 9)
    assert 0 < gap.paper <= 2 / 9


def test_all_targets_of_a_program_attend_alike(graphs):
    program = LIBRARY["bfs"]
    for target in (target for target in TARGETS.values() if not target.full_attention):
        compiled = compile_program(program, target, Domain.regular(program, 9))
        found = run(compiled.network, graphs.batch)
        gap = internal_gap(found.attention, graphs.truths[0], graphs)
        assert gap.tv <= compiled.certificate.attention_error
        assert gap.agreement_strict == 1


def test_the_second_mechanism_is_another_one(graphs):
    first, second = graphs.truths
    assert (first.mechanism, second.mechanism) == ("bfs", "bfs_parent")
    assert internal_gap(first.attention, second, graphs).tv > 0.1


def test_order_of_samples_does_not_matter(graphs):
    trace = run(Network.initial("bfs", jax.random.key(0)), graphs.batch)
    order = jnp.array([3, 1, 5, 0, 2, 4])
    truth = graphs.truths[0]
    mixed = make_data("mixed", graphs.batch[order])
    there = internal_gap(trace.attention[:, order], mixed.truths[0], mixed)
    here = internal_gap(trace.attention, truth, graphs)
    assert there.rows == here.rows
    for name in ("agreement", "misplaced", "tv", "sharpness"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-5), name
    for rows, kinds in here.parts.items():
        assert there.parts[rows] == pytest.approx(kinds, rel=1e-5)
    np.testing.assert_allclose(there.tv_by_sample, here.tv_by_sample[np.asarray(order)], rtol=1e-5)


def test_steps_after_a_sample_has_ended_do_not_count(graphs):
    truth = graphs.truths[0]
    valid = np.asarray(graphs.valid)
    assert not valid.all()
    spoilt = np.where(valid[..., None, None, None], truth.attention, 1 / 9)
    assert internal_gap(jnp.asarray(spoilt), truth, graphs).tv == 0


def test_ties_that_a_correct_search_could_break_otherwise():
    """A square from 0: node 2 can be reached from 1 or from 3."""
    square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    data = make_data("square", from_graphs("bfs", square, 0))
    truth = data.truths[0]
    assert truth.senders[1, 0, 2] == 1
    other_way = attending(truth.senders.at[1, 0, 2].set(3))
    gap = internal_gap(other_way, truth, data)
    assert gap.tv == pytest.approx(gap.parts["updated"]["tie"])
    assert gap.tv > 0
    assert gap.misplaced == 0
    assert (gap.agreement, gap.agreement_strict) == (1, pytest.approx(2 / 3))
    wrong = internal_gap(attending(truth.senders.at[1, 0, 2].set(2)), truth, data)
    assert wrong.tv == pytest.approx(wrong.parts["updated"]["wrong"])
    assert wrong.misplaced == pytest.approx(1 / 3)
    soft = 0.6 * truth.attention + 0.4 * attending(truth.senders.at[1, 0, 2].set(2))
    half = internal_gap(soft, truth, data)
    assert half.tv == pytest.approx(half.parts["updated"]["soft"])
    assert half.agreement == 1


def attending(senders):
    return jax.nn.one_hot(senders, senders.shape[-1])[:, :, None]


def test_both_mechanisms_of_bfs_update_the_same_nodes(graphs):
    """They differ only in whom a reached node goes on attending to."""
    first, second = graphs.truths
    live = np.asarray(graphs.valid)[..., None]
    assert (np.asarray(first.updated & live) == np.asarray(second.updated & live)).all()
    gaps = [internal_gap(first.attention, truth, graphs) for truth in graphs.truths]
    assert gaps[0].agreement == gaps[1].agreement == 1
    assert gaps[1].parts["updated"] == {"tie": 0, "soft": 0, "wrong": 0}
    assert gaps[1].tv == pytest.approx(gaps[1].parts["unchanged"]["wrong"])


@given(seed=st.integers(0, 2**31 - 1), sharp=st.floats(0.1, 30))
@settings(max_examples=20, deadline=None)
def test_the_parts_add_up_to_the_paper_s_measure(graphs, seed, sharp):
    shape = (graphs.batch.steps, graphs.batch.size, 2, graphs.batch.nodes, graphs.batch.nodes)
    logits = sharp * jax.random.normal(jax.random.key(seed), shape)
    attention = jax.nn.softmax(jnp.where(graphs.support[None, :, None], logits, -1e9), -1)
    for truth in graphs.truths:
        gap = internal_gap(attention, truth, graphs)
        assert sum(sum(kinds.values()) for kinds in gap.parts.values()) == pytest.approx(gap.tv)
        apart = np.abs(np.asarray(attention.mean(2) - truth.attention[:, :, 0])).sum(-1) / 2
        live = np.broadcast_to(np.asarray(graphs.valid)[..., None], apart.shape)
        each = [apart[:, g][live[:, g]].mean() for g in range(graphs.batch.size)]
        assert gap.tv == pytest.approx(np.mean(each), rel=1e-5)
        assert 0 <= gap.agreement_strict <= gap.agreement <= 1


def test_a_tie_in_attention_counts_for_its_share(graphs):
    """The lowest index is no better guess than another: what argmax would make of it."""
    uniform = internal_gap(uniform_attention(graphs), graphs.truths[0], graphs)
    truth = graphs.truths[0]
    shares = np.asarray(1 / graphs.support.sum(-1))
    updated = np.asarray(truth.updated) & np.asarray(graphs.valid)[..., None]
    each = [
        np.broadcast_to(shares[g], updated[:, g].shape)[updated[:, g]].mean()
        for g in range(graphs.batch.size)
        if updated[:, g].any()
    ]
    assert uniform.agreement_strict == pytest.approx(np.mean(each), rel=1e-5)


def test_distances_leave_no_ties():
    data = make_data("bf", sample("bellman_ford", jax.random.key(1), batch_size=4, nodes=8).trim())
    assert (data.truths[0].acceptable.sum(-1) == 1).all()


def test_best_head(graphs):
    truth = graphs.truths[0]
    heads = jnp.concatenate([truth.attention, uniform_attention(graphs)], axis=2)
    gap = internal_gap(heads, truth, graphs)
    assert gap.tv_best_head == 0
    assert gap.tv == pytest.approx(internal_gap(uniform_attention(graphs), truth, graphs).tv / 2)


def test_attention_outside_the_graph_is_told(graphs):
    nodes = graphs.batch.nodes
    everywhere = jnp.full((graphs.batch.steps, graphs.batch.size, 1, nodes, nodes), 1 / nodes)
    gap = internal_gap(everywhere, graphs.truths[0], graphs)
    assert 0 < gap.off_graph < 1


def test_another_shape_is_refused(graphs):
    with pytest.raises(InvalidInput, match="same number of steps for every hint"):
        internal_gap(graphs.truths[0].attention[1:], graphs.truths[0], graphs)


def test_long_traces_are_long():
    batch = long_traces("bfs")
    usual = sample("bfs", jax.random.key(0), batch_size=32, nodes=16, p=(0.5,))
    assert batch.size == 32
    assert int(batch.lengths.min()) > int(usual.lengths.max())
    with pytest.raises(InvalidInput, match="at least 1"):
        long_traces("bfs", graphs=0)


def test_mechanisms():
    assert [p.name for p in mechanisms("bellman_ford")] == ["bellman_ford"]
    assert [p.name for p in mechanisms("dfs")] == ["dfs", "dfs_parent"]
    assert mechanisms("dfs_simplified") == ()
