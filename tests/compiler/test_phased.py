"""Programs with phases, compiled: depth-first search is exact, and what cannot be is refused."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from directed_graphs import directed
from dm_clrs_peer import peer_scores
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.files import save_compiled
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.network.files import load_network
from mechgap.network.trace import run
from mechgap.programs.conclusions import becomes, first
from mechgap.programs.depth_first import dfs, target
from mechgap.programs.expressions import edge, equal, other, self, where
from mechgap.programs.phases import maximum, minimum
from mechgap.tasks.graphs import from_graphs
from mechgap.tasks.official import official
from mechgap.tasks.sampling import make_batch
from mechgap.tasks.specs import get_task

CLAIMED = {"pi_h", "color", "s_prev", "s", "u", "s_last", "time"}
HIDDEN = {"stock": 32, "stock-ln": 128}
TARGET = pytest.mark.parametrize("target", HIDDEN)


def compiled(target, nodes=64, **domain):
    inputs = replace(Domain.regular(dfs, nodes), **domain)
    return compile_program(dfs, TARGETS[target], inputs, hidden_size=HIDDEN[target])


def assert_exact(found):
    assert found.outputs == {"pi": 1.0}
    assert found.hints == dict.fromkeys(CLAIMED, 1.0)
    assert found.missed_graphs_inside == found.missed_graphs_outside == 0, found.first
    assert found.outside_certificate == 0


@TARGET
@pytest.mark.parametrize(
    ("split", "nodes"), [pytest.param("validation", 16, marks=pytest.mark.slow), ("test", 64)]
)
def test_exact_on_the_official_sets(target, split, nodes):
    network = compiled(target, nodes)
    found = verify(network, official("dfs", split)[:8])
    assert_exact(found)
    assert found.attention <= network.certificate.attention_error


@pytest.mark.slow
@TARGET
@pytest.mark.parametrize("nodes", [1, 2, 5, 33])
def test_paths_cycles_trees_and_graphs_in_parts(target, nodes):
    assert_exact(verify(compiled(target), from_graphs("dfs", directed(nodes))))


@TARGET
def test_a_path_and_an_empty_graph_as_large_as_the_domain(target):
    path = np.eye(64, k=1)
    graphs = np.stack([path, path.T, np.zeros((64, 64))])
    assert_exact(verify(compiled(target), from_graphs("dfs", graphs)))


@pytest.mark.slow
@TARGET
def test_any_graph_at_positions_as_close_as_allowed(target):
    network = compiled(target, 64)

    @settings(max_examples=8, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def survives(seed):
        rng = np.random.default_rng(seed)
        edges = rng.random((16, 11, 11)) < rng.random((16, 1, 1)) ** 2
        gaps = rng.choice([1 / 64, 1 / 64, 0.05], (16, 11))
        positions = np.minimum(np.cumsum(gaps, axis=-1), 1.0)
        batch = make_batch(
            get_task("dfs"),
            jnp.asarray(edges, jnp.float32),
            jnp.zeros(16, jnp.int32),
            jnp.asarray(positions, jnp.float32),
        )
        assert_exact(verify(network, batch))

    survives()


@pytest.mark.parametrize("target", ["paper", "general"])
def test_targets_with_more_options_leave_them_unused(target):
    network = compile_program(dfs, TARGETS[target], Domain.regular(dfs, 8), hidden_size=40)
    assert_exact(verify(network, fresh_graphs(dfs, 8, 8, 0)))


@TARGET
def test_the_real_dm_clrs_runs_compiled_dfs_exactly(target):
    network = compiled(target).network
    assert network.config.nb_msg_passing_steps == 3
    output, scores = peer_scores(network, graphs=8, nodes=16, seed=916)
    assert output == 1.0
    assert {name: float(scores[name]) for name in CLAIMED - {"time"}} == dict.fromkeys(
        CLAIMED - {"time"}, 1.0
    )
    assert scores["time"] < 1e-9  # a number's score is its squared error
    assert scores["v"] == pytest.approx(2 / 3, abs=0.05)  # all but the finishing steps


def test_what_is_not_claimed_is_reported_with_its_reason():
    found = verify(compiled("stock", 8), fresh_graphs(dfs, 8, 16, 1))
    assert found.exact
    assert set(found.unclaimed) == {"d", "f", "v"}
    assert found.unclaimed["d"].share is None
    assert "count the steps" in found.unclaimed["d"].why
    share = found.unclaimed["v"].share
    assert share is not None
    assert 0.6 < share < 0.8


@pytest.mark.slow
def test_large_batches_are_compared_in_pieces(monkeypatch):
    network, batch = compiled("stock", 8), fresh_graphs(dfs, 8, 8, 2)
    whole = verify(network, batch)
    monkeypatch.setattr("mechgap.compiler.verify._MOST_ATTENTION", 3 * 3 * 23 * 64)
    assert verify(network, batch) == whole


def test_a_miss_is_found_and_shown():
    network = compiled("stock", 8)
    attention = network.network.processor.attention * 0
    wrong = eqx.tree_at(lambda net: net.processor.attention, network.network, attention)
    found = verify(replace(network, network=wrong), fresh_graphs(dfs, 8, 8, 3))
    assert not found.exact
    assert found.first is not None


@TARGET
def test_flags_are_restored_in_every_phase(target):
    """Noise on the hidden state within what the certificate allows a flag changes nothing."""
    network, batch = compiled(target, 8), fresh_graphs(dfs, 8, 8, 4)
    plain = run(network.network, batch)
    flags = [i for i, unit in enumerate(network.hidden_units) if "@" in unit.component]
    noise = np.zeros(plain.hidden.shape, np.float32)
    rng = np.random.default_rng(0)
    noise[..., flags] = rng.uniform(-1, 1, noise[..., flags].shape) * 2e-3
    noisy = run(network.network, batch, replace={"hidden": plain.hidden + noise})
    assert np.abs(np.asarray(noisy.attention - plain.attention)).max() <= 1e-6
    for name in CLAIMED - {"time"}:
        assert np.array_equal(noisy.hints[name].argmax(-1), plain.hints[name].argmax(-1)), name


def test_run_refuses_what_is_outside_the_certificate():
    network = compiled("stock", 8)
    batch = fresh_graphs(dfs, 8, 4, 5)
    run(network.network, batch, within=network)
    crowded = eqx.tree_at(lambda b: b.inputs["pos"], batch, batch.inputs["pos"] / 2)
    with pytest.raises(InvalidInput, match=r"4 of 4 graphs .* positions closer than"):
        run(network.network, crowded, within=network)
    with pytest.raises(InvalidInput, match="more than 8 nodes"):
        run(network.network, fresh_graphs(dfs, 9, 1, 0), within=network)


def test_a_compiled_file_keeps_the_program(tmp_path):
    network = compiled("stock", 4)
    save_compiled(network, tmp_path / "dfs.safetensors")
    loaded, about = load_network(tmp_path / "dfs.safetensors")
    assert eqx.tree_equal(loaded, network.network)
    assert about["source"] == str(dfs)
    assert about["certificate"]["domain"]["nodes"] == 4


def test_a_domain_that_cannot_be_met_names_the_quantity():
    with pytest.raises(InvalidInput, match=r"a pointer can be off by .* position_gap = 0\.0001"):
        compiled("stock-ln", position_gap=1e-4)
    with pytest.raises(InvalidInput, match=r"position_gap = 0\.0003 logits can be off by"):
        compiled("stock", position_gap=3e-4)
    many = first(self.here, self.active, self.found, self.finished, self.entered, self.rooted,
                 self.discover, self.white)  # fmt: skip
    undecided = replace(dfs, **concluding(u=many))
    with pytest.raises(InvalidInput, match=r"first\(.*\)' decides between values that are 0\.016"):
        compile_program(undecided, TARGETS["stock-ln"], Domain.regular(dfs, 64))
    with pytest.raises(InvalidInput, match=r"needs hidden_size of at least 30 here \(30 for state"):
        compile_program(dfs, TARGETS["stock"], Domain.regular(dfs, 8), hidden_size=29)


def test_a_flag_that_could_not_be_restored_is_named(monkeypatch):
    monkeypatch.setattr("mechgap.compiler.compile.ROOM", 1e-6)
    with pytest.raises(InvalidInput, match="what sets 'phase 1' can be off by"):
        compiled("stock-ln", 8)


def test_float64_tells_closer_positions_apart():
    with jax.enable_x64(True):
        domain = replace(Domain.regular(dfs, 64, "float64"), position_gap=1e-4)
        network = compile_program(dfs, TARGETS["stock-ln"], domain)
        assert_exact(verify(network, fresh_graphs(dfs, 9, 4, 7)))


def changed(i, **change):
    phases = list(dfs.phases)
    phases[i] = replace(phases[i], **change)
    return {"phases": tuple(phases)}


def signalling(i, **change):
    return changed(i, update={**dfs.phases[i].update, **change})


def concluding(**change):
    return {"conclude": {**dfs.conclude, **change}}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"task": "dsf"}, "unknown-task"),
        ({"phases": dfs.phases[:1]}, "set-not-once"),
        (changed(1, select=minimum(other.pi)), "unknown-selection"),
        (changed(1, mask=self.active & (other.white | other.grey)), "mask-not-a-conjunction"),
        (changed(0, mask=equal(other.pi, self.idx)), "mask-without-signal"),
        (changed(0, mask=other.finished & equal(self.pi, other.idx)), "unknown-comparison"),
        (changed(0, mask=other.finished & self.grey & equal(other.pi, self.idx)), "of-many"),
        (changed(0, mask=other.finished & equal(other.s_prev, self.idx)), "unknown-comparison"),
        (signalling(1, found=self.active & edge.link), "edge-information-needed"),
        ({"output": {"pi": target}}, "not-predictable"),
        (changed(2, otherwise=self.target), "default-not-a-hint"),
        ({"phases": (dfs.phases[0], dfs.phases[2], dfs.phases[1])}, "not-predictable"),
        ({"phases": (dfs.phases[2], replace(dfs.phases[0], otherwise=self.pi), dfs.phases[1])},
         "default-too-late"),
        (signalling(2, pi=other.pi), "unknown-pointer"),
        (signalling(1, target=self.idx), "unknown-pointer"),
        (signalling(2, here=~(self.active | self.discover)), "not-alternatives"),
        (changed(1, mask=self.active & self.discover & other.white), "read-too-early"),
        (concluding(u=first(self.here | self.white)), "unknown-conclusion"),
        (concluding(color=becomes(black=~self.finished)), "unknown-conclusion"),
        (concluding(s_prev=where(self.black, self.idx, self.target)), "unknown-conclusion"),
        ({"hints": {n: c for n, c in dfs.hints.items() if n != "s"},
          "unclaimed": {**dfs.unclaimed, "s": "forgotten"}}, "not-a-hint"),
    ],
)  # fmt: skip
def test_what_cannot_compile_is_refused_by_name(change, name):
    with pytest.raises(InvalidInput, match=name):
        compile_program(replace(dfs, **change), TARGETS["stock"], Domain.regular(dfs, 8))


def test_pointers_with_two_values_need_dm_clrs_decoder():
    with pytest.raises(InvalidInput, match="simplified-decoders"):
        compile_program(dfs, TARGETS["stock"], Domain.regular(dfs, 8), simplify_decoders=True)


def test_another_program_with_phases_compiles():
    """The highest white neighbour in place of the lowest: the interpreter is the judge."""
    highest = replace(dfs, name="dfs_highest", **changed(1, select=maximum(other.idx)))
    network = compile_program(highest, TARGETS["stock"], Domain.regular(dfs, 12), hidden_size=40)
    batch = fresh_graphs(dfs, 12, 16, 6)
    meaning, reasons = network.interpreted(batch)
    assert not np.any(list(reasons.values()))
    trace = run(network.network, batch)
    off = np.abs(np.asarray(trace.attention)[:, :, 0] - meaning.attention)
    assert off.max() <= network.certificate.attention_error
    assert not np.array_equal(trace.outputs["pi"].argmax(-1), batch.outputs["pi"])
