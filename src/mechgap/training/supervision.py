"""An exact mechanism as a teacher: whom each node attends to, and what it holds between hints.

The program runs beside the network, in JAX, on the inputs of each training batch.
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from mechgap.network.network import Step
from mechgap.programs.components import Kind
from mechgap.programs.evaluation import State, given
from mechgap.programs.meaning import start, take_step
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch


class Taught(eqx.Module):
    """What a mechanism does on some graphs, in every phase of every step."""

    senders: Int[Array, "*steps phases batch nodes"]
    """Whom each node attends to."""
    active: Bool[Array, "*steps phases batch nodes"]
    """Whether anyone passes its mask; those for whom nobody does attend to a default."""
    signals: Mapping[str, Float[Array, "*steps phases batch nodes"]]
    """What nodes hold after each phase, by name."""

    def __getitem__(self, samples: Int[Array, "chosen"]) -> "Taught":
        """Of some of the samples."""
        return jax.tree.map(lambda x: x[:, :, samples], self)


def begun(program: Program, inputs: Mapping[str, Array]) -> State:
    """A mechanism's state before its first step."""
    dtype = inputs["pos"].dtype
    first = start(program, given(program, inputs, dtype), jnp)
    return {name: jnp.asarray(value, dtype) for name, value in first.items()}


def teach(
    program: Program,
    inputs: Mapping[str, Array],
    state: State,
    steps: int,
    signals: Sequence[str] = (),
) -> tuple[State, Taught]:
    """What a mechanism does in its next steps, and the state that it comes to."""
    known = given(program, inputs, inputs["pos"].dtype)

    def step(state: State, _: None) -> tuple[State, Taught]:
        taken = take_step(program, known, state, jnp)
        return taken.state, Taught(
            jnp.stack([phase.sender for phase in taken.phases]),
            jnp.stack([phase.anyone for phase in taken.phases]),
            {name: jnp.stack([phase.after[name] for phase in taken.phases]) for name in signals},
        )

    return jax.lax.scan(step, state, length=steps)


def taught_on(program: Program, batch: Batch, signals: Sequence[str] = ()) -> Taught:
    """What a mechanism does on a batch, from its start."""
    return teach(program, batch.inputs, begun(program, batch.inputs), batch.steps, signals)[1]


def attention_errors(taught: Taught, steps: Step) -> Float[Array, "steps phases batch nodes"]:
    """-log α̂ at the exact sender, the mean over heads.

    Nobody is taught to look where it cannot: a sender that the network sees only along a pointer
    which it was not fed, since it predicted another, has no error.
    """
    mask = (steps.support.astype(steps.logits.dtype) - 1.0) * 1e9
    log_attention = jax.nn.log_softmax(steps.logits + mask[:, None, :, None], axis=-1)
    at = taught.senders[..., None]
    in_sight = jnp.take_along_axis(steps.support[:, None], at, axis=-1)[..., 0]
    there = jnp.take_along_axis(log_attention, at[:, :, :, None], axis=-1)[..., 0]
    return jnp.where(in_sight, -jnp.mean(there, axis=3), 0)


class Readouts(eqx.Module):
    """What is read of a mechanism's signals, linearly, from the hidden state. Only for training."""

    weight: Float[Array, "hidden signals"]
    bias: Float[Array, "signals"]
    sharpness: Float[Array, "signals"]
    """The logarithm of how sharply a position that is read tells nodes apart."""

    @staticmethod
    def initial(key: Key[Array, ""], hidden_size: int, signals: int) -> "Readouts":
        """Before training."""
        scale = hidden_size**-0.5
        return Readouts(
            scale * jax.random.truncated_normal(key, -2.0, 2.0, (hidden_size, signals)),
            jnp.zeros(signals, jnp.float32),
            jnp.full(signals, 4.0, jnp.float32),
        )

    def errors(
        self,
        program: Program,
        taught: Taught,
        hidden: Float[Array, "steps phases batch nodes _"],
        pos: Float[Array, "batch nodes"],
    ) -> Float[Array, "steps phases batch nodes"]:
        """The error of each signal after the phases that must leave it there, summed over signals.

        Cross-entropy for flags and for pointers, squared error for numbers. A pointer is read as a
        position, and the nearer a node is to that, the more likely it is pointed to.
        """
        read = hidden @ self.weight + self.bias
        total = jnp.zeros(read.shape[:-1], read.dtype)
        for i, (name, truth) in enumerate(taught.signals.items()):
            guess = read[..., i]
            match program.components[name].kind:
                case Kind.BOOL:
                    error = jnp.logaddexp(0.0, guess) - truth * guess
                case Kind.POINTER:
                    sharpness = jnp.exp(self.sharpness[i])
                    distances = jnp.abs(guess[..., None] - pos[:, None, :])
                    likely = jax.nn.logsumexp(-sharpness * distances, axis=-1)
                    error = sharpness * jnp.abs(guess - truth) + likely
                case _:
                    error = (guess - truth) ** 2
            held = jnp.asarray(program.held_after(name))
            total += jnp.where(held[:, None, None], error, 0)
        return total
