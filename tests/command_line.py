"""The command line in this process: what it printed, and its exit code."""

import sys
from typing import NamedTuple

import pytest

from mechgap.cli import main


class Done(NamedTuple):
    returncode: int | str | None
    stdout: str
    stderr: str


def call(monkeypatch, capsys, *arguments: object) -> Done:
    monkeypatch.setattr(sys, "argv", ["mechgap", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return Done(ended.value.code, *capsys.readouterr())
