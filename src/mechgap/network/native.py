"""Native code for CPUs: compiled once with the machine's own C++ compiler, kept in the cache.

Without a compiler, on another device, or with ``MECHGAP_NATIVE=0``, plain JAX does the same.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

_SOURCE = Path(__file__).with_name("pairwise.cc")
_FLAGS = (
    *("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w"),
    # Sums may be reordered, as any BLAS does. Infinities and NaN keep their meaning.
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"),
)


MOST_CHANNELS = 5
"""The largest number of edge channels that the native code is made for."""


@cache
def available() -> bool:
    """Whether native code can be used here; builds it the first time."""
    if os.environ.get("MECHGAP_NATIVE") == "0" or jax.default_backend() != "cpu":
        return False
    library = _library()
    if library is None:
        return False
    for name in ("forward_f32", "forward_f64", "backward_f32", "backward_f64"):
        symbol = getattr(library, f"pairwise_{name}")
        jax.ffi.register_ffi_target(
            f"mechgap_pairwise_{name}", jax.ffi.pycapsule(symbol), platform="cpu"
        )
    return True


def _library() -> ctypes.CDLL | None:
    """The compiled code, from the cache or new; None where there is no way to compile."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return None
    include = jax.ffi.include_dir()
    # The processor is part of the name: a home folder can be shared between machines.
    made_of = (_SOURCE.read_text(), *_FLAGS, compiler, version("jaxlib"), _processor())
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]
    folder = cache_folder()
    built = folder / f"pairwise-{digest}.so"
    try:
        if not built.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                fresh = Path(place) / "pairwise.so"
                command = [compiler, *_FLAGS, f"-I{include}", str(_SOURCE), "-o", str(fresh)]
                subprocess.run(command, check=True, capture_output=True)
                fresh.replace(built)
        return ctypes.CDLL(str(built))
    except (OSError, subprocess.CalledProcessError):
        return None


def cache_folder() -> Path:
    """Where things are kept that can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mechgap"


def _processor() -> str:
    """What `-march=native` depends on."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return sys.platform
    return "".join(line for line in text.splitlines()[:40] if line.startswith(("flags", "model")))


def forward(kind: int, slope: float, u: Array, v: Array, edges: Array, weight: Array, omega: Array):
    """The scores, ``[batch, heads, nodes, nodes]``."""
    batch, nodes, _ = u.shape
    shape = jax.ShapeDtypeStruct((batch, omega.shape[0], nodes, nodes), u.dtype)
    return _call("forward", (shape,), kind, slope, u, v, edges, weight, omega)[0]


def backward(kind: int, slope: float, *operands: Array):
    """The gradients of u, v and edges, and of weight and omega per sample."""
    u, v, edges, weight, omega = operands[:5]
    each = [(u.shape[0], *weight.shape), (u.shape[0], *omega.shape)]
    shapes = [jax.ShapeDtypeStruct(s, u.dtype) for s in (u.shape, v.shape, edges.shape, *each)]
    return _call("backward", shapes, kind, slope, *operands)


def _call(name: str, shapes, kind: int, slope: float, *operands: Array):
    width = {jnp.dtype("float32"): "f32", jnp.dtype("float64"): "f64"}[operands[0].dtype]
    call = jax.ffi.ffi_call(
        f"mechgap_pairwise_{name}_{width}",
        shapes,
        vmap_method="broadcast_all",
    )
    return call(*operands, kind=np.int64(kind), slope=np.float64(slope))
