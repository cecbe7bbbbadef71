"""A Ray cluster: one that is there, or one that is started on this machine for as long as it is
needed."""

import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mechgap.errors import InvalidInput

RETRIES = 3
"""How often work of a worker that died is begun again."""
ANSWERS_WITHIN = 5.0
"""Seconds in which a cluster answers."""


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
    """Ray, connected to the cluster at an address or to one of this machine.

    Raises:
        InvalidInput: nobody answers there.
    """
    ray = need_ray()
    if address is not None:
        _check_address(address)
    started = not ray.is_initialized()
    if started:
        try:
            with warnings.catch_warnings():
                # JAX warns of forks; what Ray forks becomes another program at once.
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError) as error:
            raise _nobody(address, error) from error
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def _check_address(address: str) -> None:
    """Refuse an address where nobody listens: Ray itself would try for minutes."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (host and colon and port.isdigit()):
        raise InvalidInput(f"a Ray address is HOST:PORT, ray://HOST:PORT or auto; got '{address}'")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWERS_WITHIN).close()
    except (OSError, OverflowError) as error:
        raise _nobody(address, error) from error


def _nobody(address: str | None, error: Exception) -> InvalidInput:
    where = "here" if address is None else f"at '{address}'"
    why = " ".join(str(error).split())
    return InvalidInput(
        f"there is no Ray cluster {where} ({why}). Start one (ray start --head), or leave "
        "--ray-address out for one of this machine"
    )
