"""Which engine trains: in this process, or on a Ray cluster."""

import os

from mechgap.errors import InvalidInput, unknown
from mechgap.network.native import cache_folder
from mechgap.training.train import Engine


def make_engine(name: str, *, devices: int | None = None, ray_address: str | None = None) -> Engine:
    """The engine of that name, ready to be given work."""
    if name == "local":
        use_cores(min(devices or usable_cores(), usable_cores()))
        _check_devices(devices)
        keep_compiled_programs()
        from mechgap.training.local import on_this_machine

        return on_this_machine(devices)
    if name == "ray":
        from mechgap.training.ray_engine import on_ray

        return on_ray(ray_address, one_thread_each())
    raise unknown("engine", name, ["local", "ray"])


def _check_devices(wanted: int | None) -> None:
    import jax

    there = usable_cores() if jax.default_backend() == "cpu" else len(jax.devices())
    if wanted is not None and not 1 <= wanted <= there:
        raise InvalidInput(f"devices must lie between 1 and {there}, which are here; got {wanted}")


def usable_cores() -> int:
    """How many cores this process may use; all of the machine's where nothing tells that."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_cores(cores: int) -> None:
    """Make each CPU core a device of JAX. Has no effect once JAX has started.

    A training step has many small operations. Two seeds on a core each take half the time of one
    after the other on both, and the arithmetic does not depend on how many cores there are.
    """
    os.environ["XLA_FLAGS"] = one_thread_each()
    import jax

    try:
        jax.config.update("jax_num_cpu_devices", cores)
    except RuntimeError:  # JAX has started
        return


def one_thread_each() -> str:
    """The user's XLA flags, and one thread for each device, so that sums have one order."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" in flags:
        return flags
    return f"{flags} --xla_cpu_multi_thread_eigen=false".strip()


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles: the next run of the same recipe starts in seconds."""
    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "xla"))
