"""A batch of graphs with their traces: what samplers make and networks read.

Arrays are named as dm-clrs names them. Hints have a leading time axis, padded with zeros
after each sample's true length; pointers are node indices.
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from mechgap.tasks.specs import Task


class Batch(eqx.Module):
    """Inputs, hints and outputs of one task on graphs of one size."""

    task: Task = eqx.field(static=True)
    inputs: Mapping[str, Array]
    """``[batch, nodes]`` on nodes, ``[batch, nodes, nodes]`` on edges."""
    hints: Mapping[str, Array]
    """``[time, batch, nodes]`` on nodes (categories last), ``[time, batch]`` on the graph."""
    outputs: Mapping[str, Array]
    """``[batch, nodes]``."""
    lengths: Int[Array, "*batch"]
    """How many hints each sample truly has."""

    @property
    def size(self) -> int:
        """How many graphs."""
        return self.lengths.shape[0]

    @property
    def nodes(self) -> int:
        """How many nodes each graph has."""
        return self.inputs["pos"].shape[-1]

    @property
    def max_hints(self) -> int:
        """The length of the padded time axis."""
        return self.hints[self.task.hints[0].name].shape[0]

    @property
    def steps(self) -> int:
        """How many times a network steps: one less than the hints, and at least once."""
        return max(1, self.max_hints - 1)

    def trim(self) -> "Batch":
        """The same batch without the padding that no sample needs (not under `jax.jit`)."""
        return self.cut(int(np.max(np.asarray(self.lengths))))

    def cut(self, hints: int) -> "Batch":
        """The same batch with its first hints only; no sample may be longer."""
        first = {name: hint[:hints] for name, hint in self.hints.items()}
        return Batch(self.task, self.inputs, first, self.outputs, self.lengths)

    def on_grid(self, step: float | None) -> "Batch":
        """The same batch with positions at the nearest multiples of `step`, if there is one."""
        if step is None:
            return self
        pos = {"pos": jnp.round(self.inputs["pos"] / step) * step}
        return Batch(self.task, {**self.inputs, **pos}, self.hints, self.outputs, self.lengths)

    def pad(self, hints: int) -> "Batch":
        """The same batch with zeros after its hints, so that batches share one shape."""
        missing = max(0, hints - self.max_hints)

        def longer(hint: Array) -> Array:
            return jnp.pad(hint, [(0, missing), *[(0, 0)] * (hint.ndim - 1)])

        padded = {name: longer(hint) for name, hint in self.hints.items()}
        return Batch(self.task, self.inputs, padded, self.outputs, self.lengths)

    def __getitem__(self, samples: slice | Int[Array, "chosen"]) -> "Batch":
        """Some of the samples."""
        return Batch(
            self.task,
            {name: value[samples] for name, value in self.inputs.items()},
            {name: value[:, samples] for name, value in self.hints.items()},
            {name: value[samples] for name, value in self.outputs.items()},
            self.lengths[samples],
        )


def joined(batches: Sequence[Batch]) -> Batch:
    """Graphs of several batches, of one task and one size, as one batch."""
    first = batches[0]
    longest = max(batch.max_hints for batch in batches)
    padded = [batch.pad(longest) for batch in batches]

    def together(which: str, axis: int) -> dict[str, Array]:
        named = [getattr(batch, which) for batch in padded]
        return {name: jnp.concatenate([each[name] for each in named], axis) for name in named[0]}

    return Batch(
        first.task,
        together("inputs", 0),
        together("hints", 1),
        together("outputs", 0),
        jnp.concatenate([batch.lengths for batch in padded]),
    )
