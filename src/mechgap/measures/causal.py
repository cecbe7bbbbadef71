"""Does a network use what it attends to? Its attention is replaced, and accuracy counted again.

A learned network that ran the algorithm would lose nothing when forced to α*. A compiled network
that is given a learned network's attention shows how far that attention carries the algorithm.
"""

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from mechgap.measures.data import Data
from mechgap.measures.yardsticks import fixed_yardsticks
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.tasks.scores import output_scores

Attention = Float[Array, "time batch heads receivers senders"]


def run_forced(network: Network, data: Data, attention: Attention) -> Trace:
    """Run a network with a given attention: the mean of its heads, in each head."""
    one = jnp.mean(attention, axis=2, keepdims=True)
    if len(one) == data.batch.steps:
        one = jnp.repeat(one, network.config.nb_msg_passing_steps, axis=0)
    given = jnp.repeat(one, network.config.nb_heads, axis=2)
    return run(network, data.batch, replace={"attention": given})


def accuracy(network: Network, data: Data, attention: Attention | None = None) -> float:
    """Output accuracy, with its own attention or a given one."""
    own = attention is None
    trace = run(network, data.batch) if own else run_forced(network, data, attention)
    return float(output_scores(data.batch, trace.outputs)["score"])


def can_force(network: Network, data: Data, attention: Attention) -> bool:
    """Whether an attention says what to do in every message-passing step of a network.

    It has one for each, or one for each hint, which is then used in all steps of the hint.
    """
    hints = data.batch.steps
    return len(attention) in (hints, hints * network.config.nb_msg_passing_steps)


def forced(network: Network, data: Data) -> Mapping[str, float]:
    """A network's accuracy with its own attention, each mechanism's, uniform, and self."""
    given = {truth.mechanism: truth.attention for truth in data.truths}
    given = {**given, **fixed_yardsticks(data)}
    return {
        "own": accuracy(network, data),
        **{
            name: accuracy(network, data, attention)
            for name, attention in given.items()
            if can_force(network, data, attention)
        },
    }
