"""The notebook runs from top to bottom, and its objects show themselves."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

TOUR = Path(__file__).parent.parent / "examples" / "tour.ipynb"


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.read(TOUR, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell) -> dict:
    return {kind: value for out in cell.outputs for kind, value in out.get("data", {}).items()}


def test_results_have_rich_displays(cells):
    compiled, trace, _, exact, untrained, forced = cells[1:]
    assert "image/png" in shown(compiled)
    assert "508" in shown(compiled)["text/html"]
    assert "image/png" in shown(trace)
    assert "attention" in shown(trace)["text/html"]
    assert "<td>tv</td><td>0.0000</td>" in shown(exact)["text/html"]
    assert "image/png" in shown(untrained)
    assert "own=1.0" in shown(forced)["text/plain"]


def test_the_notebook_is_kept_without_results():
    for cell in nbformat.read(TOUR, as_version=4).cells:
        assert cell.cell_type != "code" or (cell.outputs == [] and cell.execution_count is None)
