"""What an installation is made of, and what in it is slower than it could be, with the remedy."""

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax

from mechgap.network import lists, native, pairwise
from mechgap.tasks.memory import available_memory
from mechgap.training import narrow

KERNELS = {
    "pairs of nodes": pairwise.NATIVE,
    "lists of edges": lists.NATIVE,
    "networks of four units": narrow.NATIVE,
}
"""Native code, by what it is for."""
_PACKAGES = ("mechgap", "jax", "jaxlib", "equinox", "optax", "numpy", "plotly")
_EXTRAS = ("dm-clrs", "ray", "pyarrow")
_LITTLE = 4e9
"""Bytes of memory that training on long traces takes."""


@dataclass(frozen=True)
class Remark:
    """Something that could be better, and how."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Diagnosis:
    """What was found."""

    facts: Mapping[str, str]
    kernels: Mapping[str, bool]
    """Which native code is used."""
    remarks: tuple[Remark, ...]


def diagnose() -> Diagnosis:
    """Look at this installation; native code that was never compiled is compiled for it.

    Returns:
        Versions, devices and caches, which native code is used, and remarks: what is slower than it
        could be, each with its remedy.
    """
    kernels = {name: native.available(*made_of) for name, made_of in KERNELS.items()}
    cache, memory = native.cache_folder(), available_memory()
    facts = {
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        **{name: version(name) for name in _PACKAGES},
        **{name: _installed(name) for name in _EXTRAS},
        "devices": ", ".join(map(str, jax.devices())),
        "cores": f"{_usable_cores()} of {os.cpu_count()}",
        "memory": "unknown" if memory is None else f"{memory / 1e9:.1f} GB available",
        "compiler": native.find_compiler() or "none",
        **{
            f"native code, {name}": "used" if used else "not used" for name, used in kernels.items()
        },
        "cache": f"{cache} ({_size(cache) / 1e6:,.0f} MB)",
    }
    return Diagnosis(facts, kernels, tuple(_remarks(kernels, cache, memory)))


def _remarks(kernels: Mapping[str, bool], cache: Path, memory: int | None) -> Iterator[Remark]:
    unused = [name for name, used in kernels.items() if not used]
    on_cpu = jax.default_backend() == "cpu"
    if unused and os.environ.get("MECHGAP_NATIVE") == "0":
        yield Remark("MECHGAP_NATIVE=0 switches native code off", "Unset it")
    elif unused and on_cpu and native.find_compiler() is None:
        yield Remark(
            "there is no C++ compiler, so plain JAX is used in place of native code",
            "Install g++ or clang, or name one in CXX",
        )
    elif unused and on_cpu:
        logs = ", ".join(str(log) for log in sorted(cache.glob("*.failed"))) or "stderr"
        yield Remark(
            f"native code for {' and '.join(unused)} cannot be compiled or loaded",
            f"The reason is in {logs}; remove that file to try again",
        )
    if on_cpu and shutil.which("nvidia-smi"):
        yield Remark(
            "there is an NVIDIA device and JAX does not use it", "pip install 'mechgap[cuda]'"
        )
    if _usable_cores() < (os.cpu_count() or 1):
        yield Remark(
            f"this process may use {_usable_cores()} of {os.cpu_count()} cores",
            "Ask the scheduler, container or taskset for more",
        )
    if memory is not None and memory < _LITTLE:
        yield Remark(
            f"{memory / 1e9:.1f} GB of memory are little for training on long traces",
            "Use --window, fewer seeds in a --chunk, or another machine",
        )
    if not _writable(cache):
        yield Remark(
            f"'{cache}' cannot be written, so that every process compiles anew",
            "Set XDG_CACHE_HOME to a folder that can",
        )
    if flags := os.environ.get("XLA_FLAGS"):
        yield Remark(f"XLA_FLAGS is set to '{flags}'", "Unset it if you do not know why")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _writable(folder: Path) -> bool:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return os.access(there, os.W_OK)
