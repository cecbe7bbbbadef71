"""The tree tells the story: imports go one way, and nothing heavy is in the core."""

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import mechgap

PACKAGE = Path(mechgap.__file__).parent
# A stage may import itself and what stands to its right.
STAGES = [
    *("cli", "calls", "experiments", "report", "decompiler", "measures", "training"),
    *("compiler", "programs", "interop", "network", "tasks", "display", "disk", "typed", "errors"),
]
MODULES = [m.name for m in pkgutil.walk_packages(mechgap.__path__, "mechgap.")]


def stage_of(part: str) -> str:
    """The stage that a name right below the package belongs to; `lang` names what programs have."""
    return {"lang": "programs"}.get(part.removesuffix(".py"), part.removesuffix(".py"))


def imported(module: Path) -> set[str]:
    """The stages that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mechgap."):
            found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("mechgap.")}
    return set(map(stage_of, found))


@pytest.mark.parametrize("module", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.stem)
def test_imports_go_one_way(module):
    stage = stage_of(module.relative_to(PACKAGE).parts[0])
    if stage == "__init__":
        return
    allowed = STAGES[STAGES.index(stage) :]
    assert imported(module) <= set(allowed), f"{stage} may import only {allowed}"


def test_only_the_bridge_imports_dm_clrs():
    importers = {
        path.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (
            isinstance(node, ast.Import) and any(a.name.split(".")[0] == "clrs" for a in node.names)
        )
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "clrs")
    }
    assert importers == {"dm_clrs.py"}


def test_the_package_needs_neither_dm_clrs_nor_tensorflow():
    names = ", ".join(MODULES)
    program = f"import sys, {names}; print({{'clrs', 'tensorflow', 'torch'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
