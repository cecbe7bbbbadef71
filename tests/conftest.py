"""Every jaxtyping shape in the package is checked while the tests run."""

import logging
import os
import platform
import time
from hashlib import sha256
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

KEPT_DAYS = 14


def compiled_before() -> Path:
    """Where JAX keeps what tests compiled: nothing is compiled twice, in this run or in the next.

    Each kind of processor has a folder of its own. What is too old is removed.
    """
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    kind = "".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))
    name = sha256((platform.machine() + kind).encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "mechgap-tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        if time.time() - file.stat().st_mtime > KEPT_DAYS * 86_400:
            file.unlink(missing_ok=True)
    return folder


if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(compiled_before())
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")  # also small programs

# Tests compile far more than they compute, so programs are compiled without optimisation.
QUICK = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
if "XLA_FLAGS" not in os.environ:
    os.environ["XLA_FLAGS"] = QUICK

# All but the command line, whose commands get other types from typer than it lets them declare.
CHECKED = ("tasks", "programs", "compiler", "network", "training", "interop", "measures",
           "experiments", "report")  # fmt: skip
install_import_hook([f"mechgap.{part}" for part in CHECKED], "beartype.beartype")
logging.getLogger("absl").setLevel(logging.ERROR)  # dm-clrs logs each sampler that it builds


@pytest.fixture(scope="session", autouse=True)
def fewer_deep_graphs():
    """A percentage with two digits needs a thousand graphs; a test does not."""
    from mechgap.measures import data

    data.DEEP_GRAPHS = 40


@pytest.fixture(scope="module", autouse=True)
def forget_compiled_programs():
    """Every compiled program maps memory, of which a process can have only so many pieces."""
    yield
    from mechgap.training.local import forget_programs

    forget_programs()


def pytest_terminal_summary(terminalreporter):
    """Show what tests measured with `record_property`, so that no number stays hidden."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    measured = [(r.nodeid, *p) for r in reports if r.when == "call" for p in r.user_properties]
    if measured:
        terminalreporter.section("measured")
        for test, name, value in sorted(measured):
            terminalreporter.write_line(f"{test.split('::')[-1]}: {name} = {value}")
