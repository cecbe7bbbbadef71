"""Parameters and batches to dm-clrs and back."""

from dataclasses import replace

import clrs
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dm_clrs_peer import DM_CLRS_TASKS, same_distribution
from mechgap.interop.dm_clrs import (
    baseline_model,
    config_of,
    from_feedback,
    from_haiku,
    to_feedback,
    to_haiku,
)
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.tasks.sampling import sample

SMALL = NetworkConfig(hidden_size=4, nb_heads=2)


@pytest.mark.parametrize(
    ("task", "processor"),
    [
        *(("bfs", "gatv2"), ("bellman_ford", "gatv2"), ("topological_sort", "gatv2_full")),
        *(pytest.param(task, "gatv2", marks=pytest.mark.slow) for task in DM_CLRS_TASKS[2:]),
    ],
)
def test_parameters_make_the_round_trip_and_are_named_as_haiku_names_them(task, processor):
    config = replace(SMALL, processor_type=processor)
    network = Network.initial(task, jax.random.key(0), config)
    haiku = to_haiku(network)
    feedback = to_feedback(sample(task, jax.random.key(0), batch_size=2, nodes=4))
    assert {m: {k: v.shape for k, v in ks.items()} for m, ks in haiku.items()} == {
        m: {k: v.shape for k, v in ks.items()}
        for m, ks in baseline_model(task, config, feedback).params.items()
    }
    assert config_of(task, haiku, processor_type=processor) == config
    back = from_haiku(task, config, haiku)
    assert eqx.tree_equal(network, back)


def test_jitted_initialisation_is_dm_clrs_own():
    feedback = to_feedback(sample("bfs", jax.random.key(0), batch_size=2, nodes=4))
    model = baseline_model("bfs", SMALL, feedback, seed=3)
    ours = model.params
    model.init([feedback.features], 3)
    for module, named in model.params.items():
        for name, value in named.items():
            # Two programs may round the last digit differently.
            np.testing.assert_allclose(ours[module][name], value, rtol=1e-6, err_msg=module)


@pytest.mark.slow
def test_our_initialisation_has_dm_clrs_distribution():
    """Every parameter, pooled over seeds: the same two-sample distribution."""
    config = NetworkConfig(hidden_size=16, nb_heads=2)
    feedback = to_feedback(sample("dfs", jax.random.key(0), batch_size=2, nodes=4))
    seeds = range(12)
    model = baseline_model("dfs", config, feedback)
    init = jax.jit(
        lambda key: model.net_fn.init(
            *(key, [feedback.features], True),
            algorithm_index=-1,
            return_hints=False,
            return_all_outputs=False,
        )
    )
    theirs = [init(jax.random.PRNGKey(seed)) for seed in seeds]
    ours = [to_haiku(Network.initial("dfs", jax.random.key(seed), config)) for seed in seeds]
    assert ours[0].keys() == theirs[0].keys()
    for module in ours[0]:
        for name in ours[0][module]:
            a = np.concatenate([np.ravel(p[module][name]) for p in ours])
            b = np.concatenate([np.ravel(p[module][name]) for p in theirs])
            if name == "w":
                assert same_distribution(a, b) > 1e-4, module
            else:
                assert np.array_equal(a, b), module


def test_batches_make_the_round_trip():
    sampler, _ = clrs.build_sampler("dfs", num_samples=3, length=5, seed=0)
    feedback = sampler.next()
    batch = from_feedback("dfs", feedback)
    again = to_feedback(batch)
    for ours, theirs in zip(again.features.hints, feedback.features.hints, strict=True):
        assert (ours.name, ours.location, ours.type_) == (
            theirs.name,
            theirs.location,
            theirs.type_,
        )
        assert np.allclose(ours.data, theirs.data, atol=1e-7)
    assert np.array_equal(again.features.lengths, feedback.features.lengths)


def test_what_dm_clrs_does_not_have_is_refused():
    for option, message in [
        ({"use_edge_info": True}, "no edge information"),
        ({"use_pre_att_bias": True, "pre_att_bias_nodes": 4}, "no pre-attention bias"),
        ({"simplify_decoders": True}, "no simplified pointer decoder"),
    ]:
        network = Network.initial("bfs", jax.random.key(0), NetworkConfig(hidden_size=4, **option))
        with pytest.raises(ValueError, match=message):
            to_haiku(network)


def test_parameters_that_do_not_fit_are_refused():
    haiku = to_haiku(Network.initial("bfs", jax.random.key(0), SMALL))
    wide = NetworkConfig(hidden_size=8, nb_heads=2)
    with pytest.raises(ValueError, match=r"has shape \[\d+(, \d+)?\], not .* \(and \d+ more\)"):
        from_haiku("bfs", wide, haiku)
    missing = dict(haiku)
    name, _ = missing.popitem()
    with pytest.raises(ValueError, match=f"{name}/(w|scale) is missing"):
        from_haiku("bfs", SMALL, missing)
    with pytest.raises(ValueError, match="extra/w is not part of this network"):
        from_haiku("bfs", SMALL, {**haiku, "extra": {"w": jnp.zeros(1)}})
