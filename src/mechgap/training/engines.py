"""Which engine trains: in this process, or on a Ray cluster."""

import os
from typing import Any

from mechgap.errors import InvalidInput, unknown
from mechgap.network.native import cache_folder
from mechgap.training.train import Engine


def make_engine(name: str, *, devices: int | None = None, ray_address: str | None = None) -> Engine:
    """The engine of that name, ready to be given work."""
    if name == "local":
        use_one_thread_each()
        if devices is not None and not 1 <= devices <= len(lanes()):
            raise InvalidInput(
                f"devices must lie between 1 and {len(lanes())}, which are here; got {devices}"
            )
        keep_compiled_programs()
        from mechgap.training.local import on_this_machine

        return on_this_machine(devices)
    if name == "ray":
        from mechgap.training.ray_engine import on_ray

        return on_ray(ray_address, one_thread_each())
    raise unknown("engine", name, ["local", "ray"])


def lanes() -> list[Any]:
    """Where work runs at once: every accelerator; without one the CPU, once for each core.

    A training step has many small operations. Two seeds on a core each take half the time of one
    after the other on both. As they share a device they share its programs, compiled once.
    """
    import jax

    return jax.devices() * (usable_cores() if jax.default_backend() == "cpu" else 1)


def usable_cores() -> int:
    """How many cores this process may use; all of the machine's where nothing tells that."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_one_thread_each() -> None:
    """Compute on one thread for each lane. Has no effect once JAX has started."""
    os.environ["XLA_FLAGS"] = one_thread_each()


def one_thread_each() -> str:
    """The user's XLA flags, and one thread for each lane, so that sums have one order."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" in flags:
        return flags
    return f"{flags} --xla_cpu_multi_thread_eigen=false".strip()


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles: the next run of the same recipe starts in seconds."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))
