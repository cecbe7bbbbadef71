"""`mechgap measure` and `mechgap import` on real runs."""

import json
import pickle
import shutil
import sqlite3

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from mechgap import InvalidInput
from mechgap.cli.measures import measure
from mechgap.interop.dm_clrs import to_haiku
from mechgap.measures.population import constant_outputs, measure_population
from mechgap.measures.results import load_results
from mechgap.measures.run import measure_run
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.report.measures import show_measures
from mechgap.tasks.official import Split, official
from mechgap.training.exchange import import_networks
from mechgap.training.presets import make_recipe
from mechgap.training.store import Store
from mechgap.typed import arrays
from untrained_runs import SMALL, untrained_run


def same(a, b):
    """Whether two results hold the same numbers and arrays."""
    left, right = arrays(a), arrays(b)
    equal = [np.array_equal(left[k], right[k], equal_nan=left[k].dtype.kind == "f") for k in left]
    return a.to_json() == b.to_json() and left.keys() == right.keys() and all(equal)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return untrained_run(tmp_path_factory.mktemp("runs") / "bfs")


def test_a_run_is_measured(folder, capsys):
    told = []
    results = measure_run(folder, on_progress=lambda *what: told.append(what))
    assert list(results.seeds) == [0, 1, 2]
    assert (results.mechanisms, results.reference) == (["bfs", "bfs_parent"], "bfs")
    for row in [*results.networks, *results.baselines.values()]:
        for gap in row.gaps["test"].values():
            assert gap.l1 == pytest.approx(2 * gap.tv, rel=1e-5)
            assert gap.paper == pytest.approx(gap.l1 / 6, rel=1e-5)
            parts = sum(sum(kinds.values()) for kinds in gap.parts.values())
            assert parts == pytest.approx(gap.tv, rel=1e-5)
    assert results.baselines["compiled"].from_own_state["bfs"].agreement == 1
    with Store.reading(folder) as store:
        rows = {row.seed: row for row in store.seeds()}
    for seed, network in results.seeds.items():
        assert network.accuracy == pytest.approx(rows[seed].test_of_best, abs=1e-6)
        assert network.causal is not None
        assert network.deep is not None
        assert set(network.from_own_state) == {"bfs", "bfs_parent"}
        assert network.causal.own == pytest.approx(network.accuracy, abs=1e-6)
        gaps = network.gaps["test"]
        assert network.nearest is not None
        assert gaps[network.nearest].agreement == max(gap.agreement for gap in gaps.values())
        assert network.deep.mechanisms.keys() == gaps.keys()
    compiled = results.baselines["compiled"]
    assert (compiled.accuracy, compiled.graph_accuracy, compiled.external) == (1, 1, 1)
    assert compiled.deep is not None
    assert compiled.causal is not None
    assert compiled.deep.graph_accuracy == 1
    assert compiled.gaps["test"]["bfs"].tv < 1e-3
    assert compiled.gaps["test"]["bfs"].agreement == 1
    foils = compiled.causal.mechanisms["bfs"].foils
    assert [(foil.part, foil.verdict) for foil in foils] == [("key", "used"), ("mask", "used")]
    assert results.baselines["self"].gaps["test"]["bfs"].agreement == 0
    smallest = min(network.gaps["test"]["bfs"].tv for network in results.networks)
    assert results.solutions.closest_to_compiled is not None
    assert results.solutions.closest_to_compiled.tv == smallest
    correlated = results.correlations
    for found in (correlated.external, *correlated.tv.values()):
        assert found is not None
        assert found.n == 3
        assert "3 seeds" in (found.warning or "")
    assert results.solutions.clusters == 1
    assert ("networks", 8, 8) in told  # three seeds, four untrained ones, the compiled one

    again = load_results(folder)
    assert same(again, results)
    assert again.seeds[0].gaps["test"]["bfs"].parts_by_step.shape[1:] == (3, 3)
    assert again.solutions.distances.shape == (3, 3)
    show_measures(again, folder)
    shown = capsys.readouterr().out
    assert "uniform attention" in shown
    assert "with 3 seeds" in shown


def test_outputs_that_are_the_same_on_all_graphs_are_named():
    """The test graphs are connected, so all labels become the smallest."""
    graphs = official(posed(LIBRARY["smallest_label"]), "test")
    assert constant_outputs(graphs) == ("label",)
    assert constant_outputs(official("bfs", "validation")) == ()


def test_the_command_prints_one_object(folder, capsys):
    measure(folder, as_json=True)
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert {"seeds", "baselines", "correlations", "solutions"} <= found.keys()
    assert found["baselines"]["compiled"]["causal"]["mechanisms"]["bfs"]["foils"][0]["verdict"]
    assert {"uniform", "self", "untrained"} <= found["baselines"].keys()
    assert "measuring" in shown.err


def test_last_parameters(folder):
    assert measure_run(folder, "last").parameters == "last"
    with pytest.raises(InvalidInput, match="unknown kind of parameters 'first'"):
        measure_run(folder, "first")


def test_what_cannot_be_measured(tmp_path):
    with pytest.raises(InvalidInput, match="is not a run"):
        measure_run(tmp_path)
    recipe = make_recipe("bfs", overrides=SMALL)
    with Store.writing(tmp_path / "new", recipe, 1) as store:
        store.expect([0])
    with pytest.raises(InvalidInput, match=r"no finished seeds .* waiting"):
        measure_run(tmp_path / "new")
    with pytest.raises(InvalidInput, match="has not been measured"):
        load_results(tmp_path / "new")
    other = Network.initial("bfs", jax.random.key(0), NetworkConfig(hidden_size=8))
    with pytest.raises(InvalidInput, match="seed 7 has another architecture"):
        measure_population(recipe, [(7, other)], 1)


def test_damaged_results_are_said_to_be(folder):
    measure_run(folder)
    path = folder / "measures.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_results(folder)
    path.write_bytes(whole)


def haiku_file(path, network):
    named = {f"{m}/{k}": v for m, ks in to_haiku(network).items() for k, v in ks.items()}
    save_file(named, path)
    return path


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"use_ln": False, "nb_heads": 4},
        {"hint_mode": "none"},
        {"hint_mode": "decoded_only", "hidden_size": 16},
        {"processor_type": "gatv2_full"},
    ],
)
def test_networks_trained_elsewhere(tmp_path, given):
    config = NetworkConfig(**{"hidden_size": 8, **given})
    networks = [Network.initial("bfs", jax.random.key(k), config) for k in range(2)]
    files = [haiku_file(tmp_path / f"{k}.safetensors", n) for k, n in enumerate(networks)]
    out, processor = tmp_path / "mine", str(config.processor_type)
    assert import_networks(files, "bfs", out, processor_type=processor) == 2
    with Store.reading(tmp_path / "mine") as store:
        assert store.recipe.network_config == config
        same = store.network(1)
    for a, b in zip(jax.tree.leaves(same), jax.tree.leaves(networks[1]), strict=True):
        assert (np.asarray(a) == np.asarray(b)).all()


def test_a_checkpoint_of_dm_clrs_as_the_docs_convert_it(tmp_path):
    clrs = pytest.importorskip("clrs")
    from mechgap.interop.dm_clrs import baseline_model, official_feedback

    feedback = official_feedback("bfs", Split.VALIDATION)
    model = baseline_model("bfs", NetworkConfig(hidden_size=8), feedback)
    model.checkpoint_path = str(tmp_path)
    model.save_model("best.pkl")
    with (tmp_path / "best.pkl").open("rb") as file:
        parameters = pickle.load(file)["params"]
    tensors = {
        f"{module}/{name}": np.asarray(value)
        for module, named in parameters.items()
        for name, value in named.items()
    }
    save_file(tensors, tmp_path / "seed-0.safetensors")
    import_networks([tmp_path / "seed-0.safetensors"], "bfs", tmp_path / "mine")
    with Store.reading(tmp_path / "mine") as store:
        score = store.seeds()[0].test
    test = official_feedback("bfs", Split.TEST)
    predicted, _ = model.predict(jax.random.PRNGKey(0), test.features)
    assert score == pytest.approx(float(clrs.evaluate(test.outputs, predicted)["score"]), abs=1e-6)


def test_what_cannot_be_imported(tmp_path):
    one = haiku_file(tmp_path / "1.safetensors", Network.initial("bfs", jax.random.key(0),
                     NetworkConfig(hidden_size=8)))  # fmt: skip
    two = haiku_file(tmp_path / "2.safetensors", Network.initial("bfs", jax.random.key(0),
                     NetworkConfig(hidden_size=4)))  # fmt: skip
    out = tmp_path / "mine"
    with pytest.raises(InvalidInput, match="another architecture"):
        import_networks([one, two], "bfs", out)
    with pytest.raises(InvalidInput, match=r"1\.safetensors.*do not fit"):
        import_networks([one], "bellman_ford", out)
    save_file({"a/w": np.zeros(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(InvalidInput, match="not parameters of dm-clrs's GATv2"):
        import_networks([tmp_path / "foreign.safetensors"], "bfs", out)
    with pytest.raises(InvalidInput, match="there is no file"):
        import_networks([tmp_path / "none"], "bfs", out)
    with pytest.raises(InvalidInput, match="at least one file"):
        import_networks([], "bfs", out)
    assert not out.exists()
    out.mkdir()
    with pytest.raises(InvalidInput, match="exists already"):
        import_networks([one], "bfs", out)


def test_diverged_seeds_are_left_out_and_named(folder, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    with sqlite3.connect(copy / "run.sqlite") as database:
        database.execute("UPDATE seeds SET state = 'diverged', diverged_at = 7 WHERE seed = 1")
    results = measure_run(copy)
    assert list(results.seeds) == [0, 2]
    assert results.diverged == (1,)
    show_measures(load_results(copy))
    assert "diverged: seeds [1]" in capsys.readouterr().out
