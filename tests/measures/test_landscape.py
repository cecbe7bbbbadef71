"""Landscapes: directions are normalised by filter, heights are the loss, and nothing is lost."""

import json
import shutil
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mechgap.errors import InvalidInput
from mechgap.experiments.landscape import landscape_of_program, landscape_of_run
from mechgap.measures import loss_surface
from mechgap.measures.landscape import ARRAYS, Settings, compute, load_landscape
from mechgap.measures.loss_surface import Plane, circle, grid, heights
from mechgap.network.config import NetworkConfig
from mechgap.network.directions import random_direction
from mechgap.network.network import Network
from mechgap.programs.library import LIBRARY
from mechgap.report.landscape import draw_landscape, show_flatness
from mechgap.tasks.sampling import sample
from mechgap.training.loss import loss
from mechgap.training.population import score
from untrained_runs import untrained_run

SMALL = NetworkConfig(hidden_size=8, nb_heads=2, use_pre_att_bias=True, pre_att_bias_nodes=6)
QUICK: dict[str, Any] = dict(points=3, pairs=2, radii=(0.1, 1.0), angles=2)


@pytest.fixture(scope="module")
def batch():
    return sample("bfs", jax.random.key(0), batch_size=4, nodes=6)


@pytest.fixture(scope="module")
def network():
    made = Network.initial("bfs", jax.random.key(1), SMALL)
    bias = jax.random.normal(jax.random.key(2), (6, 6))
    return eqx.tree_at(lambda n: n.processor.pre_attention_bias, made, bias)


def nothing(*_):
    """Nobody is told."""


def test_directions_have_the_networks_filters(network):
    direction = random_direction(jax.random.key(3), network)

    def norms(x, axis):
        return jnp.linalg.norm(x, axis=axis)

    for of in (
        lambda n: n.processor.value.weight,
        lambda n: n.encoders.linears["pos"].weight,
        lambda n: n.decoders["pi"].score.weight,
    ):
        np.testing.assert_allclose(norms(of(direction), 0), norms(of(network), 0), rtol=1e-5)
    for of in (lambda n: n.processor.attention, lambda n: n.processor.pre_attention_bias):
        np.testing.assert_allclose(norms(of(direction), 1), norms(of(network), 1), rtol=1e-5)
    assert all((x == 0).all() for x in jax.tree.leaves(direction) if x.ndim < 2)
    other = random_direction(jax.random.key(4), network)
    assert not np.allclose(other.processor.value.weight, direction.processor.value.weight)


def test_zero_filters_stay_zero():
    """Compiled networks have many; they must not become NaN."""
    compiled = landscape_of_program(LIBRARY["bfs"], "stock-ln").networks["compiled"]
    direction = random_direction(jax.random.key(0), compiled)
    assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(direction))
    weight, moved = compiled.processor.skip.weight, direction.processor.skip.weight
    empty = (weight == 0).all(0)
    assert empty.any()
    assert (moved[:, empty] == 0).all()
    assert (moved[:, ~empty] != 0).any(0).all()


def test_heights_are_loss_and_accuracy(network, batch, monkeypatch):
    monkeypatch.setattr(loss_surface, "CHUNK", 4)
    plane = Plane.random(network, jax.random.key(5))
    points = grid(0.5, 3)
    found = list(heights(plane, batch, points))
    together = np.concatenate([h.loss for _, h in found])
    assert [where.start for where, _ in found] == [0, 4, 8]
    for point, value, accuracy in zip(
        points, together, np.concatenate([h.accuracy for _, h in found]), strict=True
    ):
        there = jax.tree.map(
            lambda w, x, y, p=point: w + p[0] * x + p[1] * y, network, plane.x, plane.y
        )
        assert value == pytest.approx(float(loss(there, batch)), rel=1e-4)
        assert accuracy == pytest.approx(float(score(there, batch)), abs=1e-6)
    assert together[4] == pytest.approx(float(loss(network, batch)), rel=1e-5)  # the middle


def test_a_line_leads_from_one_to_the_other(network, batch):
    other = Network.initial("bfs", jax.random.key(9), SMALL)
    points = np.array([[0, 0], [1, 0]], np.float32)
    ((_, found),) = heights(Plane.line(network, other), batch, points)
    wanted = [float(loss(n, batch)) for n in (network, other)]
    np.testing.assert_allclose(found.loss, wanted, rtol=1e-5)


def test_points():
    np.testing.assert_allclose(np.linalg.norm(circle(0.3, 5), axis=1), 0.3, rtol=1e-6)
    assert grid(2.0, 3).tolist()[:2] == [[-2, -2], [0, -2]]


def test_it_goes_on_where_it_was_killed(network, batch, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loss_surface, "CHUNK", 4)
    monkeypatch.setattr("mechgap.measures.landscape.SAVE_SECONDS", 0.0)
    settings = Settings("here", **QUICK)
    networks = {"learned": network, "compiled": random_direction(jax.random.key(0), network)}
    whole = compute(tmp_path / "whole", settings, networks, batch, nothing)
    assert whole.networks == ["learned", "compiled"]
    seen = []

    def killed(*told):
        seen.append(told)
        if len(seen) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute(tmp_path / "part", settings, networks, batch, killed)
    again = []
    found = compute(tmp_path / "part", settings, networks, batch, lambda *a: again.append(a))
    assert len(again) > 0
    assert again[0][1] > 4  # of the points that were done, at most one chunk was done again
    for name, values in whole.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], values)
    loaded = load_landscape(tmp_path / "part")
    assert loaded.settings == settings
    assert loaded.flatness() == whole.flatness()
    rises = {(row["network"], row["radius"]): row["rise"] for row in loaded.flatness()}
    centre = float(loss(network, batch))
    ring = whole.arrays["learned/flatness/0/loss"].reshape(3, 2)[2].mean()
    other = whole.arrays["learned/flatness/1/loss"].reshape(3, 2)[2].mean()
    assert rises["learned", 1.0] == pytest.approx((ring + other) / 2 - centre, rel=1e-4)
    whole.arrays["learned/flatness/1/loss"][-1] = np.inf
    rises = {(row["network"], row["radius"]): row["rise"] for row in whole.flatness()}
    assert rises["learned", 1.0] is None
    show_flatness(whole.flatness())
    assert "beyond float32" in capsys.readouterr().out
    with pytest.raises(InvalidInput, match=r"another landscape \(points: 3 → 5"):
        compute(tmp_path / "part", Settings("here", **{**QUICK, "points": 5}), networks, batch,
                nothing)  # fmt: skip


def test_a_damaged_file_is_made_again(network, batch, tmp_path):
    settings = Settings("here", **QUICK)
    first = compute(tmp_path, settings, {"learned": network}, batch, nothing)
    path = tmp_path / ARRAYS
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_landscape(tmp_path)
    again = compute(tmp_path, settings, {"learned": network}, batch, nothing)
    for name, values in first.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], values)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"general": 0.0}, "general range must be above 0; got 0.0"),
        ({"local": -1.0}, "local range must be above 0"),
        ({"points": 2}, "3 to 2001 points"),
        ({"points": 100_000}, "3 to 2001 points"),
        ({"pairs": 0}, "pairs must be at least 1"),
    ],
)
def test_what_cannot_be(given, says):
    with pytest.raises(InvalidInput, match=says):
        Settings("here", **given)


@pytest.mark.slow
def test_around_a_run(tmp_path):
    """Learned and compiled have one shape where the target is dm-clrs's own network."""
    folder = untrained_run(tmp_path / "run", "bfs", (0,), hidden_size=64)
    with pytest.raises(InvalidInput, match=r"seed 99 of .* is not finished; finished are 0"):
        landscape_of_run(folder, 99, None)
    around = landscape_of_run(folder, 0, None)
    assert list(around.networks) == ["learned", "initial", "compiled"]
    found = compute(tmp_path / "out", Settings(around.title, **QUICK), around.networks,
                    around.batch, nothing)  # fmt: skip
    assert found.arrays["line/accuracy"].shape == (3,)
    assert found.surface("compiled", "local")["accuracy"][1, 1] == 1.0
    (tmp_path / "figures").mkdir()
    written = draw_landscape(found, tmp_path / "figures")
    assert {p.name for p in written if p.suffix == ".png"} == {
        f"landscape_{name}.png" for name in ("contours", "surfaces", "flatness", "line")
    }
    shutil.rmtree(folder)


def test_a_program_of_its_own_task():
    around = landscape_of_program(LIBRARY["reachability"], None)
    assert float(score(around.networks["compiled"], around.batch)) == 1.0
    with pytest.raises(InvalidInput, match="edge"):
        landscape_of_program(LIBRARY["bellman_ford"], "stock")


def test_settings_are_data(tmp_path, network, batch):
    compute(tmp_path, Settings("here", **QUICK), {"learned": network}, batch, nothing)
    stored = json.loads((tmp_path / "landscape.json").read_text())
    assert stored["radii"] == [0.1, 1.0]
    assert load_landscape(tmp_path).settings == Settings("here", **QUICK)
