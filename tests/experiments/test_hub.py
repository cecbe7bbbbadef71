"""Populations as folders for the Hugging Face hub, read with the hub's own library, and back."""

import json
from functools import partial

import jax
import pytest
from huggingface_hub import ModelCard
from safetensors import safe_open

from command_line import call
from mechgap import InvalidInput
from mechgap.experiments.hub import read_hub_folder, write_hub_folder
from mechgap.measures.results import load_results
from mechgap.measures.run import measure_run
from mechgap.training.run import Run
from untrained_runs import untrained_run


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = untrained_run(tmp_path_factory.mktemp("hub") / "run", seeds=(0, 3))
    measure_run(folder, deep=8)
    return folder


def test_a_population_comes_back(measured, tmp_path):
    run = Run.open(measured)
    folder = write_hub_folder(run, tmp_path / "hub")
    again = tmp_path / "again"
    assert read_hub_folder(folder, again) == 2
    back = Run.open(again)
    assert back.recipe == run.recipe
    for seed in (0, 3):
        ours, theirs = (jax.tree.leaves(r.network(seed)) for r in (run, back))
        assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))
    assert {row.seed: row.test_of_best for row in back.seeds} == {
        row.seed: row.test_of_best for row in run.seeds
    }
    first, second = load_results(measured), measure_run(again, deep=8)
    assert {s: n.accuracy for s, n in first.seeds.items()} == {
        s: n.accuracy for s, n in second.seeds.items()
    }


def test_the_hub_can_read_it(measured, tmp_path):
    folder = write_hub_folder(Run.open(measured), tmp_path / "hub")
    card = ModelCard.load(folder / "README.md")
    about = card.data.to_dict()
    assert about["library_name"] == "mechgap"
    assert "bfs" in about["tags"]
    assert "2 learned networks get" in card.text
    assert "| learned |" in card.text
    config = json.loads((folder / "config.json").read_text())
    for each in config["seeds"]:
        with safe_open(folder / each["file"], framework="numpy") as stored:
            assert stored.keys()
    assert json.loads((folder / "measures.json").read_text())["seeds"].keys() == {"0", "3"}


def test_what_was_not_measured_says_so(tmp_path):
    """Nor is a validation score told of final checkpoints, which have none."""
    run = Run.open(untrained_run(tmp_path / "run"))
    with pytest.raises(InvalidInput, match="unknown checkpoint 'middle'"):
        write_hub_folder(run, tmp_path / "hub", "middle")
    folder = write_hub_folder(run, tmp_path / "hub", "last")
    assert json.loads((folder / "config.json").read_text())["seeds"][0]["validation"] is None
    read_hub_folder(folder, tmp_path / "again")
    assert Run.open(tmp_path / "again").seeds[0].best_validation is None
    assert "They were not measured." in (folder / "README.md").read_text()
    assert not (folder / "measures.json").exists()


def test_nothing_half_written_is_left(measured, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mechgap.experiments.hub.shutil.copyfile", full)
    with pytest.raises(InvalidInput, match="No space left"):
        write_hub_folder(Run.open(measured), tmp_path / "hub")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "has no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "is damaged"),
        (lambda f: (f / "config.json").write_text("{}"), "holds no mechgap population"),
        (lambda f: (f / "seed-3.safetensors").unlink(), "there is no file"),
        (lambda f: (f / "seed-3.safetensors").write_bytes(b"12345678"), "damaged"),
    ],
)
def test_bad_folders_are_one_line(measured, tmp_path, monkeypatch, capsys, spoil, message):
    folder = write_hub_folder(Run.open(measured), tmp_path / "hub")
    spoil(folder)
    mechgap = partial(call, monkeypatch, capsys)
    done = mechgap("import", folder, "--out", tmp_path / "run")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert not (tmp_path / "run").exists()


def test_on_the_command_line(measured, tmp_path, monkeypatch, capsys):
    mechgap = partial(call, monkeypatch, capsys)
    made = mechgap("runs", "hub", measured, "--out", tmp_path / "hub")
    assert made.stdout == f"written: {tmp_path / 'hub'}\n"
    assert mechgap("runs", "hub", measured, "--out", tmp_path / "hub").returncode == 2
    done = mechgap("import", tmp_path / "hub", "--out", tmp_path / "run")
    assert "(2 seeds)" in done.stdout
    refused = mechgap("import", tmp_path / "hub" / "seed-0.safetensors", "--out", tmp_path / "x")
    assert "say --task" in refused.stderr
