"""The code in README and docs runs, block after block, as written."""

import re
from pathlib import Path

import pytest

from update_tables import TABLES, updated

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(block, names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", sorted({page for page, _ in TABLES}), ids=lambda page: page.name)
def test_the_numbers_are_the_measured_ones(page):
    assert updated(page) == page.read_text()
    for (owner, _), table in TABLES.items():
        assert owner != page or table() in page.read_text()
