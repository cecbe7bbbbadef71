"""Native code for CPUs: compiled once with the machine's own C++ compiler, kept in the cache.

Without a compiler, on another device, or with ``MECHGAP_NATIVE=0``, plain JAX does the same, more
slowly and with other roundings. Where that is nobody's wish, it is said once, with the reason.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Array

_FLAGS = (
    *("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w"),
    # Sums may be reordered, as any BLAS does. Infinities and NaN keep their meaning.
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"),
)
_WIDTHS = {jnp.dtype("float32"): "f32", jnp.dtype("float64"): "f64"}


@cache
def available(source: Path, functions: tuple[str, ...]) -> bool:
    """Whether this source's functions can be called here; builds it the first time."""
    if os.environ.get("MECHGAP_NATIVE") == "0" or jax.default_backend() != "cpu":
        return False
    library = _library(source)
    if library is None:
        return False
    for name in (f"{function}_{width}" for function in functions for width in _WIDTHS.values()):
        jax.ffi.register_ffi_target(
            f"mechgap_{name}", jax.ffi.pycapsule(getattr(library, name)), platform="cpu"
        )
    return True


def call(
    function: str,
    shapes: Sequence[tuple[int, ...] | jax.ShapeDtypeStruct],
    *operands: Array,
    **attributes,
):
    """A native function of arrays of one dtype, that of the first. Under `jax.vmap` axes are added
    in front. Results of which only a shape is given have that dtype, too.
    """
    dtype = operands[0].dtype
    results = [
        jax.ShapeDtypeStruct(shape, dtype) if isinstance(shape, tuple) else shape
        for shape in shapes
    ]
    name = f"mechgap_{function}_{_WIDTHS[dtype]}"
    return jax.ffi.ffi_call(name, results, vmap_method="broadcast_all")(*operands, **attributes)


def _library(source: Path) -> ctypes.CDLL | None:
    """The compiled code, from the cache or new; None where there is no way to compile."""
    compiler = find_compiler()
    if compiler is None:
        _say("there is no C++ compiler here (c++, g++ or CXX)")
        return None
    include = jax.ffi.include_dir()
    # The processor is part of the name: a home folder can be shared between machines.
    headers = (header.read_text() for header in sorted(source.parent.glob("*.h")))
    made_of = (source.read_text(), *headers, *_FLAGS, compiler, version("jaxlib"), _processor())
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]
    folder = cache_folder()
    built, failed = (folder / f"{source.stem}-{digest}.{end}" for end in ("so", "failed"))
    if failed.exists():  # in another process, or at another time
        _say(f"{source.name} did not compile ('{failed}' says why; remove it to try again)")
        return None
    try:
        if not built.exists():
            print(f"mechgap: compiling {source.name} for this machine, once", file=sys.stderr)
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                fresh = Path(place) / built.name
                command = [compiler, *_FLAGS, f"-I{include}", str(source), "-o", str(fresh)]
                subprocess.run(command, check=True, capture_output=True)
                fresh.replace(built)
        return ctypes.CDLL(str(built))
    except subprocess.CalledProcessError as error:
        failed.write_bytes(error.stderr)
        _say(f"{source.name} did not compile with {compiler} ('{failed}' says why)")
    except OSError as error:
        _say(f"{source.name} cannot be compiled or loaded here: {error}")
    return None


@cache
def _say(why: str) -> None:
    """Once in a process for each reason."""
    print(f"mechgap: {why}. Plain JAX is used instead, which is slower", file=sys.stderr)


def find_compiler() -> str | None:
    """The C++ compiler that is used: CXX, or what there is."""
    return os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")


def cache_folder() -> Path:
    """Where things are kept that can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mechgap"


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """What `-march=native` depends on; the machine's own name where nothing tells more."""
    try:
        lines = cpuinfo.read_text().splitlines()[:40]
    except OSError:
        lines = []
    # x86 has flags and a model; ARM has Features, an implementer, a variant and a part.
    telling = ("flags", "model", "Features", "CPU ")
    told = "".join(line for line in lines if line.startswith(telling))
    return f"{platform.machine()} {told or platform.processor() or platform.node()}"
