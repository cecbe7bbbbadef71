"""The official CLRS-30 validation and test sets, shipped with the package.

The files hold dm-clrs's own arrays to the bit: weights and times in float64, everything else in
bytes. `scripts/make_official_sets.py` made them; a test makes them again and compares.
"""

from collections.abc import Mapping
from enum import Enum
from importlib.resources import files
from io import BytesIO

import jax.numpy as jnp
import numpy as np

from mechgap.errors import InvalidInput, unknown
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Task, Type, get_task


class Split(Enum):
    """An official set; the value is what dm-clrs samples it with."""

    VALIDATION = "validation"
    TEST = "test"


SEEDS: Mapping[Split, int] = {Split.VALIDATION: 2, Split.TEST: 3}
NODES: Mapping[Split, int] = {Split.VALIDATION: 16, Split.TEST: 64}
SAMPLES = 32


def arrays(task: Task | str, split: Split | str) -> Mapping[str, np.ndarray]:
    """dm-clrs's arrays of an official set, by ``stage/name``, plus ``lengths``."""
    task, split = get_task(task), get_split(split)
    if not task.in_dm_clrs:
        raise InvalidInput(
            f"{task.name} has no official set: it is not one of dm-clrs's tasks. "
            f"Use official('{task.like}', …) for graphs of the same kind"
        )
    packed = files("mechgap.tasks") / "data" / f"{task.name}_{split.value}.npz"
    with np.load(BytesIO(packed.read_bytes()), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def official(task: Task | str, split: Split | str) -> Batch:
    """An official set of CLRS-30: 32 graphs of 16 (validation) or 64 nodes (test).

    The paper's variants, and the tasks that programs pose, have the graphs of dm-clrs's task that
    they come from.

    Args:
        task: A task, or its name.
        split: ``test`` or ``validation``.

    Returns:
        The graphs of dm-clrs, to the bit, with the task's own trace.

    Raises:
        InvalidInput: there is no such task or set.

    >>> official("bfs", "validation").outputs["pi"].shape
    (32, 16)
    """
    task = get_task(task)
    if not task.in_dm_clrs:
        return _variant(task, official(task.like, split))
    stored = arrays(task, split)

    def read(stage: str, name: str, type: Type):
        dtype = jnp.int32 if type is Type.POINTER else jnp.float32
        return jnp.asarray(stored[f"{stage}/{name}"].astype(dtype))

    return Batch(
        task,
        {f.name: read("input", f.name, f.type) for f in task.inputs},
        {f.name: read("hint", f.name, f.type) for f in task.hints},
        {f.name: read("output", f.name, f.type) for f in task.outputs},
        jnp.asarray(stored["lengths"].astype(np.int32)),
    )


def _variant(task: Task, source: Batch) -> Batch:
    from mechgap.tasks.sampling import check_ended, make_batch

    start = source.inputs["s"].argmax(-1) if task.has_source else jnp.zeros(source.size, int)
    batch = make_batch(task, source.inputs["A"], start, source.inputs["pos"])
    check_ended(batch)
    return batch.trim()


def get_split(split: Split | str) -> Split:
    """The official set of that name."""
    if isinstance(split, Split):
        return split
    if split not in {known.value for known in Split}:
        raise unknown("official set", split, [known.value for known in Split])
    return Split(split)
