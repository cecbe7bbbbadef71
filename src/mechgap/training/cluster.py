"""A Ray cluster: one that is there, or one that is started on this machine for as long as it is
needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mechgap.errors import InvalidInput

RETRIES = 3
"""How often work of a worker that died is begun again."""


def need_ray() -> Any:
    """Ray itself.

    Raises:
        InvalidInput: it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise InvalidInput("the Ray engine needs Ray: pip install 'mechgap[ray]'") from error
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to the cluster at an address or to one of this machine."""
    ray = need_ray()
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()
