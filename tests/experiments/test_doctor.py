"""What `mechgap doctor` says of an installation, each in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from mechgap import diagnose
from mechgap.network import lists, pairwise


def doctor(*words, **changed):
    """`mechgap doctor` in a changed environment; None takes a variable away."""
    environment = {**os.environ, **{k: str(v) for k, v in changed.items() if v is not None}}
    for name in (k for k, v in changed.items() if v is None):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "mechgap.cli", "doctor", *words],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_says_what_is_used():
    found = diagnose()
    assert found.kernels["pairs of nodes"] == pairwise.runs_natively(1)
    assert found.kernels["lists of edges"] == lists.runs_natively()
    assert found.facts["jax"].count(".") == 2


def test_no_compiler_has_a_remedy(tmp_path):
    """Nor is there anything in the cache."""
    found = json.loads(doctor("--json", PATH=tmp_path, CXX=None, XDG_CACHE_HOME=tmp_path))
    assert not any(found["kernels"].values())
    assert any("g++" in remark["remedy"] for remark in found["remarks"])
    text = doctor(PATH=tmp_path, CXX=None, XDG_CACHE_HOME=tmp_path)
    assert "there is no C++ compiler" in text
    assert "Nothing is slower" not in text


def test_a_compiler_that_fails_is_found_with_its_reason(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no such thing >&2\nexit 1\n")
    broken.chmod(0o755)
    found = json.loads(doctor("--json", CXX=broken, XDG_CACHE_HOME=tmp_path))
    (remark,) = [r for r in found["remarks"] if "cannot be compiled" in r["what"]]
    log = tmp_path / "mechgap"
    assert any(str(path) in remark["remedy"] for path in log.glob("*.failed"))


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"MECHGAP_NATIVE": "0"}, "switches native code off"),
        ({"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}, "XLA_FLAGS is set"),
    ],
)
def test_what_the_environment_changes_is_said(changed, what):
    assert what in doctor(**changed)
