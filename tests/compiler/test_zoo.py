"""Every program in every target, as a table and as files."""

import json

import numpy as np
import pytest
import typer

from mechgap import InvalidInput
from mechgap.cli.programs import compile_command
from mechgap.cli.zoo import zoo
from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.compiler.zoo import attempts, save_all
from mechgap.network.files import load_network
from mechgap.programs.library import LIBRARY


def test_all_are_there_and_each_is_compiled_or_refused():
    found = {(s.program.name, s.target.name): s for s in attempts(8, 72)}
    assert found.keys() == {(p, t) for p in LIBRARY for t in TARGETS}
    for attempt in found.values():
        assert (attempt.compiled is None) == (attempt.refused is not None)
    assert found["dfs", "stock-ln"].compiled is not None
    why = found["bellman_ford", "stock"].refused
    assert why is not None
    assert "edge-information-needed" in why
    # Every program is exact somewhere.
    assert {name for (name, _), s in found.items() if s.compiled} == set(LIBRARY)


@pytest.fixture
def few(monkeypatch):
    """Programs enough to be written and refused."""
    kept = ("bfs", "bellman_ford", "dfs", "strongest_neighbour")
    monkeypatch.setattr("mechgap.compiler.zoo.LIBRARY", {name: LIBRARY[name] for name in kept})


@pytest.mark.usefixtures("few")
def test_the_table_says_what_is_compiled_and_what_is_not(capsys):
    with pytest.raises(typer.Exit) as ended:
        zoo(nodes=4, graphs=0, hidden_size=64)
    assert ended.value.exit_code == 0
    shown = capsys.readouterr().out
    assert "strongest_neighbour  stock-ln" in shown
    assert "not compiled:" in shown
    assert "dfs: d, f, v" in shown


@pytest.mark.usefixtures("few")
def test_files_hold_what_was_compiled(tmp_path):
    kept = save_all(tmp_path / "zoo", nodes=8, hidden_size=64)
    written = {path.name for path in (tmp_path / "zoo").iterdir()}
    assert written == {s.file_name for s in kept if s.compiled is not None}
    again, about = load_network(tmp_path / "zoo" / "bfs-stock.safetensors")
    domain = Domain.regular(LIBRARY["bfs"], 8)
    ours = compile_program(LIBRARY["bfs"], TARGETS["stock"], domain, hidden_size=64).network
    assert about["program"] == "bfs"
    np.testing.assert_array_equal(again.processor.sender.weight, ours.processor.sender.weight)


@pytest.mark.usefixtures("few")
def test_mistakes(tmp_path):
    with pytest.raises(InvalidInput, match="not both"):
        compile_command("bfs", everything=True)
    with pytest.raises(InvalidInput, match="not both"):
        compile_command(None)
    with pytest.raises(InvalidInput, match="--out"):
        compile_command(None, everything=True)
    with pytest.raises(InvalidInput, match="leave out --target"):
        compile_command(None, everything=True, out=tmp_path, target="stock")
    with pytest.raises(InvalidInput, match="nodes must be at least 1; got 0"):
        compile_command(None, everything=True, out=tmp_path / "zoo", nodes=0)
    assert not (tmp_path / "zoo").exists()
    with pytest.raises(InvalidInput, match="hidden_size must be at least 1; got 0"):
        compile_command("bfs", target="stock-ln", hidden_size=0)
    (tmp_path / "taken").write_text("")
    with pytest.raises(InvalidInput, match="cannot make the folder"):
        compile_command(None, everything=True, out=tmp_path / "taken" / "zoo", nodes=4)


@pytest.mark.usefixtures("few")
def test_json_lists_files_and_reasons(tmp_path, capsys):
    compile_command(None, everything=True, out=tmp_path, nodes=4, hidden_size=64, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert "dfs-stock.safetensors" in found["written"]
    assert "bellman_ford-stock.safetensors" in found["refused"]
