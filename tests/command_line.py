"""The command line, in this process or in one of its own."""

import sys
from typing import NamedTuple

import pytest

from mechgap.cli import main

MECHGAP = [
    *(sys.executable, "-c"),
    "from mechgap.measures import data; data.DEEP_GRAPHS = 40\n"
    "from mechgap.cli import main; main()",
]
"""The words before a command in a process of its own; it looks at few deep graphs, as tests do."""


class Done(NamedTuple):
    returncode: int | str | None
    stdout: str
    stderr: str


def call(monkeypatch, capsys, *arguments: object) -> Done:
    monkeypatch.setattr(sys, "argv", ["mechgap", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return Done(ended.value.code, *capsys.readouterr())
