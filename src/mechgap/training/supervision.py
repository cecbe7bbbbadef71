"""Attention as a target: an exact mechanism's α* on the graphs of a training batch.

The program runs beside the network, in JAX, on each batch's inputs.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mechgap.network.network import Step
from mechgap.programs.evaluation import given
from mechgap.programs.meaning import start, take_step
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch


def exact_senders(program: Program, batch: Batch) -> Int[Array, "steps batch nodes"]:
    """Whom each node attends to in each step that a network takes."""
    known = given(program, batch.inputs, batch.inputs["pos"].dtype)

    def step(state, _):
        taken = take_step(program, known, state, jnp)
        return taken.state, taken.phases[0].sender

    return jax.lax.scan(step, start(program, known, jnp), length=batch.steps)[1]


def attention_error(
    program: Program, batch: Batch, steps: Step, counted: Int[Array, ""]
) -> Float[Array, ""]:
    """The part of the mean of -log α̂, at the exact sender, that some samples have.

    The mean is over the steps that count (of the whole batch), nodes and heads.
    """
    (logits,) = jnp.unstack(steps.logits, axis=1)  # one message-passing step
    mask = (steps.support.astype(logits.dtype) - 1.0) * 1e9
    log_attention = jax.nn.log_softmax(logits + mask[:, :, None], axis=-1)
    at = exact_senders(program, batch)[:, :, None, :, None]
    error = -jnp.take_along_axis(log_attention, at, axis=-1)
    valid = jnp.arange(batch.steps)[:, None] < batch.lengths - 1
    error = jnp.where(valid[:, :, None, None, None], error, 0)
    return jnp.sum(error) / (jnp.maximum(1, counted) * logits.shape[2] * batch.nodes)
