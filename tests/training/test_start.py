"""Starting from compiled parameters, and looking on the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.errors import InvalidInput
from mechgap.experiments.stability import snapshot_steps, stability_recipe
from mechgap.measures.snapshot import Observer, load_snapshots
from mechgap.report.trajectory import draw_trajectory, show_trajectory
from mechgap.training.local import on_this_machine
from mechgap.training.population import initial, score
from mechgap.training.population import test_graphs as graphs_to_test
from mechgap.training.presets import make_recipe
from mechgap.training.start import compiled_start
from mechgap.training.store import Store
from mechgap.training.train import snapshots_at, train

TINY = {
    "hidden_size": 4,
    "train_steps": 20,
    "batch_size": 4,
    "train_lengths": (6,),
    "length_generalize": False,
}


def tiny(noise=0.0, target="stock"):
    return stability_recipe("bfs", target, noise=noise, overrides=TINY)


def leaves(network):
    return [np.asarray(x) for x in jax.tree.leaves(network)]


@pytest.mark.parametrize("target", ["paper", "general", "stock"])
def test_it_starts_exact(target):
    recipe = tiny(target=target)
    start = initial(recipe, jnp.int32(3))
    for ours, theirs in zip(
        leaves(start.network), leaves(compiled_start(recipe).network), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert float(score(start.network, graphs_to_test(recipe))) == 1.0


def test_noise_is_a_share_of_each_filter():
    recipe = tiny(noise=0.5)
    exact = compiled_start(recipe).network.processor.skip.weight
    one, other = (initial(recipe, jnp.int32(s)).network.processor.skip.weight for s in (0, 1))
    assert not np.allclose(one, other)
    np.testing.assert_allclose(
        jnp.linalg.norm(one - exact, axis=0), 0.5 * jnp.linalg.norm(exact, axis=0), rtol=1e-4
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"start_from": "bfs:stock"}, "use_ln = True, compiled False"),
        ({"start_from": "bff:stock"}, "Did you mean 'bfs'"),
        ({"start_from": "bfs:stok"}, "Did you mean 'stock"),
    ],
)
def test_what_cannot_be_compiled(given, says):
    with pytest.raises(InvalidInput, match=says):
        compiled_start(make_recipe("bfs", overrides=given))


def test_noise_needs_a_start():
    with pytest.raises(InvalidInput, match="start_from is not given"):
        make_recipe("bfs", overrides={"start_noise": 0.1})
    with pytest.raises(InvalidInput, match="unknown program 'nope'"):
        stability_recipe("nope", "stock")


def test_the_trajectory_from_exact_parameters(tmp_path, capsys):
    recipe = tiny()
    folder = tmp_path / "run"
    looked = snapshots_at(recipe, snapshot_steps(recipe), Observer)
    train(recipe, [0, 1], folder, on_this_machine(), snapshots=looked)
    rows = [row for row in load_snapshots(folder) if row.which == "step"]
    assert [(row.seed, row.step) for row in rows] == [(s, t) for s in (0, 1) for t in (0, 10, 20)]
    start = rows[0]
    assert (start.test.accuracy, start.test.graph_accuracy, start.test.hints) == (1, 1, 1)
    assert start.hardened == 1
    assert start.deep is not None
    assert start.deep.accuracy == 1
    for seen in (start.test, start.deep):
        exact = seen.mechanisms["bfs"]
        assert exact.agreement == exact.agreement_strict == 1
        assert exact.tv == pytest.approx(0, abs=1e-6)
    with Store.reading(folder) as store:
        tested = {row.seed: row.test for row in store.seeds()}
    assert rows[2].test.accuracy == pytest.approx(tested[0], abs=1e-6)
    show_trajectory(rows)
    assert "over 2 seeds" in capsys.readouterr().out
    assert all(path.stat().st_size > 1000 for path in draw_trajectory(rows, "bfs", tmp_path))
