"""A run's seeds, decompiled: the file says what was found, and mistakes cost no work."""

import json

import pytest

import mechgap
from made_explanations import explanation, phase_found
from mechgap.decompiler import population
from mechgap.decompiler.decompile import Decompiled
from mechgap.decompiler.population import FILE, DecompiledRun
from mechgap.errors import InvalidInput
from untrained_runs import untrained_run

MADE = explanation(phase_found("select=minimum(other.idx)"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return untrained_run(tmp_path_factory.mktemp("runs") / "bfs")


def test_what_was_found_is_in_the_folder(folder):
    (folder / FILE).unlink(missing_ok=True)
    assert DecompiledRun.load(folder) is None
    told = []
    found = mechgap.decompile(folder, seeds=[1], progress=lambda *step: told.append(step))
    assert told == [("seeds", 0, 1), ("seeds", 1, 1)]
    assert list(found.seeds) == [1]
    assert found.programs == {found.seeds[1].in_short: 1}
    read = DecompiledRun.load(folder)
    assert read is not None
    assert read.to_json() == found.to_json() == json.loads((folder / FILE).read_text())


def test_it_goes_on_where_it_was(folder, monkeypatch):
    """Seed by seed into the file; what stands there is found again only if one asks for it."""
    DecompiledRun("bfs", "best", {1: MADE}).write(folder / FILE)
    written: list[int] = []

    def found(*_):
        known = DecompiledRun.load(folder)
        written.append(0 if known is None else len(known.seeds))
        return Decompiled(MADE, None)

    monkeypatch.setattr(population, "decompile", found)
    assert list(mechgap.decompile(folder).seeds) == [0, 1, 2]
    assert written == [1, 2]
    assert list(mechgap.decompile(folder).seeds) == [0, 1, 2]
    assert written == [1, 2]
    mechgap.decompile(folder, seeds=[2])
    assert written == [1, 2, 3]
    assert list(mechgap.decompile(folder, which="last", seeds=[0]).seeds) == [0]


def test_mistakes(folder):
    with pytest.raises(InvalidInput, match="unknown kind of parameters 'worst'"):
        mechgap.decompile(folder, which="worst")
    with pytest.raises(InvalidInput, match=r"asked for \[9\]"):
        mechgap.decompile(folder, seeds=[9])


def test_a_damaged_file(tmp_path):
    (tmp_path / FILE).write_text('{"task": "bfs"')
    with pytest.raises(InvalidInput, match="Run: mechgap decompile"):
        DecompiledRun.load(tmp_path)
