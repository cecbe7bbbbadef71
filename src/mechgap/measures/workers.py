"""Who measures: this process, or the workers of a Ray cluster.

Measuring is many jobs that know nothing of each other, each a network on some graphs. What does
them is one callable, which every worker keeps. A worker that dies is started again, and
given the job that it had.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from mechgap.errors import InvalidInput, unknown
from mechgap.training.cluster import RETRIES, connected, need_ray

Job = TypeVar("Job")
Found = TypeVar("Found")


Workers = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[tuple[Any, Any]]]
"""Given what does jobs, and the jobs: each with what was found, as they come."""


def make_workers(engine: str, ray_address: str | None = None) -> Workers:
    """Those of an engine.

    Args:
        engine: `local` or `ray`.
        ray_address: An existing Ray cluster; one of this machine if not given.

    Raises:
        InvalidInput: there is no such engine, or Ray is not installed.
    """
    if engine == "local":
        return this_process
    if engine == "ray":
        need_ray()
        return on_ray(ray_address)
    raise unknown("engine", engine, ["local", "ray"])


def this_process(do: Callable[[Job], Found], jobs: Iterable[Job]) -> Iterator[tuple[Job, Found]]:
    """One job after the other, here."""
    for job in jobs:
        yield job, do(job)


def on_ray(address: str | None) -> Workers:
    """As many at once as the cluster has processors."""

    def spread(do: Callable[[Job], Found], jobs: Iterable[Job]) -> Iterator[tuple[Job, Found]]:
        with connected(address) as ray:
            yield from _spread(ray, do, iter(jobs))

    return spread


def _spread(
    ray: Any, do: Callable[[Job], Found], waiting: Iterator[Job]
) -> Iterator[tuple[Job, Found]]:
    environment = {"env_vars": {"XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}}
    start = ray.remote(
        num_cpus=1, max_restarts=RETRIES, max_task_retries=RETRIES, runtime_env=environment
    )(MeasuringWorker)
    shared = ray.put(do)
    busy: dict[Any, tuple[Any, Job]] = {}
    for _, job in zip(range(int(ray.cluster_resources()["CPU"])), waiting, strict=False):
        worker = start.remote()
        busy[worker.do.remote(shared, job)] = worker, job
    while busy:
        (handle,), _ = ray.wait(list(busy), num_returns=1)
        worker, done = busy.pop(handle)
        try:
            found = ray.get(handle)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            raise InvalidInput(
                f"a Ray worker died {RETRIES + 1} times at the same work: {error}. Give it more "
                "memory, or measure with --engine local"
            ) from error
        for job in waiting:
            busy[worker.do.remote(shared, job)] = worker, job
            break
        yield done, found


class MeasuringWorker:
    """Does jobs on a cluster, one after the other."""

    def __init__(self):
        self._does: Callable[[Any], Any] | None = None

    def do(self, does: Callable[[Any], Any], job: Any) -> Any:
        """One of them, by what the first came with: it may have graphs at hand."""
        self._does = self._does or does
        return self._does(job)
