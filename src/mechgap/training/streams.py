"""Long traces in windows: truncated back-propagation over streams of graphs.

Every sample of a batch walks along the trace of its own graph, some steps at a time. The hidden
state and the hints that the network feeds itself go over from window to window, without gradient.
Where a trace ends a new graph begins. Samples are at different places of their traces.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key

from mechgap.network.network import Carry, Network, beginning
from mechgap.programs.evaluation import State
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.training.lesson import Lesson
from mechgap.training.supervision import begun, teach


class Stream(eqx.Module):
    """Graphs of one size, and how far the network has come on each."""

    batch: Batch
    time: Int[Array, "batch"]
    """Steps that were taken."""
    end: Int[Array, "batch"]
    """Steps until a new graph begins."""
    carry: Carry
    mechanism: State
    """What the mechanism that teaches holds; nothing if none does."""

    @staticmethod
    def start(network: Network, batch: Batch, program: Program | None) -> "Stream":
        """At the beginning of every trace."""
        return Stream(
            batch=batch,
            time=jnp.zeros_like(batch.lengths),
            end=jnp.maximum(1, batch.lengths - 1),
            carry=beginning(network, batch),
            mechanism={} if program is None else begun(program, batch.inputs),
        )

    def staggered(self, key: Key[Array, ""]) -> "Stream":
        """The same, but every trace ends early, somewhere, so that they come apart."""
        end = jax.random.randint(key, self.end.shape, 1, self.end + 1)
        return eqx.tree_at(lambda stream: stream.end, self, end)

    def renewed(self, new: "Stream") -> "Stream":
        """With new graphs where a trace has ended."""
        ended = self.time >= self.end

        def chosen(axis: int, new: Array, old: Array) -> Array:
            return jnp.where(_along(ended, axis, old.ndim), new, old)

        def choose(axis: int, new, old):
            return jax.tree.map(lambda a, b: chosen(axis, a, b), new, old)

        batch = Batch(
            self.batch.task,
            choose(0, new.batch.inputs, self.batch.inputs),
            choose(1, new.batch.hints, self.batch.hints),
            choose(0, new.batch.outputs, self.batch.outputs),
            choose(0, new.batch.lengths, self.batch.lengths),
        )
        rest = [(x.time, x.end, x.carry, x.mechanism) for x in (new, self)]
        return Stream(batch, *choose(0, *rest))

    def window(
        self, steps: int, program: Program | None, signals: Sequence[str] = ()
    ) -> tuple[State, Lesson]:
        """The next steps of every trace, and the state that the mechanism comes to in them."""
        batch = self.batch
        times = jnp.minimum(self.time + jnp.arange(steps + 1)[:, None], batch.max_hints - 1)
        samples = jnp.arange(batch.size)
        seen = Batch(
            batch.task,
            batch.inputs,
            {name: hint[times, samples] for name, hint in batch.hints.items()},
            batch.outputs,
            batch.lengths - self.time,
        )
        if program is None:
            return {}, Lesson(seen, None, self.carry)
        state, taught = teach(program, batch.inputs, self.mechanism, steps, signals)
        return state, Lesson(seen, taught, self.carry)

    def further(self, steps: int, carry: Carry, mechanism: State) -> "Stream":
        """The same after some steps."""
        stopped = jax.lax.stop_gradient(carry)
        return Stream(self.batch, self.time + steps, self.end, stopped, mechanism)


def noisy(stream: Stream, key: Key[Array, ""], deviation: float) -> Stream:
    """With noise on the hidden state of every trace that has begun."""
    hidden = stream.carry.hidden
    noise = deviation * jax.random.normal(key, hidden.shape, hidden.dtype)
    moved = jnp.where(_along(stream.time > 0, 0, 3), hidden + noise, hidden)
    return eqx.tree_at(lambda x: x.carry.hidden, stream, moved)


def _along(flags: Bool[Array, "batch"], axis: int, ndim: int) -> Bool[Array, "..."]:
    """Per-sample flags, shaped to broadcast against arrays that have samples on some axis."""
    return flags.reshape(*[1] * axis, -1, *[1] * (ndim - axis - 1))
