"""The code in README and docs runs, block after block, as written."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from mechgap.cli import app
from newcomer import STEPS
from update_tables import TABLES, updated

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(block, names)


def commands():
    """Every `mechgap …` in a block of shell or without a language, as words."""
    for page in PAGES:
        fenced = re.findall(
            r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE
        )
        blocks = [block for language, block in fenced if language in {"", "sh"}]
        for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
            for part in line.split("&&"):
                words = shlex.split(part, comments=True) if "mechgap" in part else []
                if words[:1] == ["mechgap"]:
                    yield pytest.param(words[1:], id=f"{page.name}: {' '.join(words[1:])}")


@pytest.mark.parametrize("words", [*commands()])
def test_commands_are_ones_that_there_are(words):
    """With options that they have; nothing is run."""
    command: Any = typer.main.get_command(app)
    name = "mechgap"
    while words and hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(name, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", sorted({page for page, _ in TABLES}), ids=lambda page: page.name)
def test_the_numbers_are_the_measured_ones(page):
    assert updated(page) == page.read_text()
    for (owner, _), table in TABLES.items():
        assert owner != page or table() in page.read_text()


def test_a_newcomer_is_timed_by_what_the_page_says():
    page = (PROJECT / "docs" / "newcomer.md").read_text()
    for command in STEPS.values():
        assert not command.startswith("mechgap") or f"{command}\n" in page, command
