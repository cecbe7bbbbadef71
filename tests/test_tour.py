"""The notebooks run from top to bottom, and their objects show themselves."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"


def executed(name):
    """The cells of code of a notebook, after it has run."""
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell) -> dict:
    return {kind: value for out in cell.outputs for kind, value in out.get("data", {}).items()}


def said(cell) -> str:
    """What a cell has printed."""
    return "".join(out.get("text", "") for out in cell.outputs)


def test_results_have_rich_displays():
    _, _, compiled, trace, _, exact, untrained, forced = executed("tour")
    assert "image/png" in shown(compiled)
    assert "508" in shown(compiled)["text/html"]
    assert "image/png" in shown(trace)
    assert "attention" in shown(trace)["text/html"]
    assert "<td>tv</td><td>0.0000</td>" in shown(exact)["text/html"]
    assert "image/png" in shown(untrained)
    assert "own=1.0" in shown(forced)["text/plain"]


def test_your_own_algorithm():
    *_, learned = executed("own_algorithm")
    assert "compiled 100%" in said(learned)
    assert "image/png" in shown(learned)


def test_your_own_checkpoints():
    """A compiled network stands in for one, so the answer is known."""
    *_, gap = executed("own_checkpoints")
    assert "output accuracy 100%" in said(gap)
    assert "updated nodes 100%, misplaced attention 0.0%" in said(gap)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_kept_without_results(path):
    cells = nbformat.read(path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert "pip install" in code[0].source
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
