"""Interchange: a part of the state of one run is put into another, at one moment, and it goes on.

A moment is before one message-passing step of one hint step. What is put there is the part of the
hidden state in a linear subspace, at some nodes; and between hint steps also fed hints. Which part
carries what is for others to say.
"""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Swap(eqx.Module):
    """What is put into the runs of a batch, each at its own moment."""

    time: Int[Array, "batch"]
    """Hint steps that are over by then."""
    substep: Int[Array, "batch"]
    """Message-passing steps of the next hint step that are over by then."""
    nodes: Bool[Array, "batch nodes"]
    hidden: Float[Array, "batch nodes hidden"]
    """Of the other run, at the same moment."""
    part: Float[Array, "hidden hidden"]
    """The projection onto the subspace that is put in; the rest of the hidden state stays."""
    hints: Mapping[str, Array]
    """Of the other run, as they are fed between hint steps."""
    fed: Mapping[str, Bool[Array, ""]]
    """Which of them are put in."""

    def hidden_at(
        self, time: Array, substep: int, hidden: Float[Array, "batch nodes hidden"]
    ) -> Float[Array, "batch nodes hidden"]:
        """The hidden state before a message-passing step, changed where that is the moment."""
        now = (self.time == time) & (self.substep == substep)
        there = (now[:, None] & self.nodes)[..., None]
        return hidden + jnp.where(there, (self.hidden - hidden) @ self.part, 0)

    def hints_at(self, time: Array, hints: Mapping[str, Array]) -> Mapping[str, Array]:
        """The hints that are fed to a hint step, changed where that is the moment."""
        now = (self.time == time) & (self.substep == 0)
        of_nodes = now[:, None] & self.nodes

        def put(name: str, own: Array) -> Array:
            there = now if own.ndim == 1 else of_nodes  # a number of the graph has no nodes
            there = there.reshape(*there.shape, *[1] * (own.ndim - there.ndim))
            return jnp.where(there & self.fed[name], self.hints[name], own)

        return {name: put(name, own) for name, own in hints.items()}
