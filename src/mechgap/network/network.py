"""The network: encode, process, decode. One class, whether its parameters were compiled or learned.

`Network` holds parameters; `unroll` runs them over the steps of a batch as dm-clrs does:
hint 0 is given, later hints are the network's own predictions (in training, the truth with
probability `hint_teacher_forcing`), and each sample's output is read at its own last step.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.decoders import Decoder, Readout, initial_decoders, postprocess
from mechgap.network.encoders import Encoders, attention_support, dense
from mechgap.network.gatv2 import GATv2, Message, masked_softmax
from mechgap.network.linear import Linear
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Location, Task, get_task

Values = Mapping[str, Array]


class Network(eqx.Module):
    """A GATv2 network for one task."""

    task: Task = eqx.field(static=True)
    config: NetworkConfig = eqx.field(static=True)
    encoders: Encoders
    processor: GATv2
    decoders: Mapping[str, Decoder]

    @staticmethod
    def initial(
        task: Task | str, key: Key[Array, ""], config: NetworkConfig | None = None
    ) -> "Network":
        """An untrained network, initialised as dm-clrs initialises it.

        >>> Network.initial("bfs", jax.random.key(0), NetworkConfig(hidden_size=4)).parameters
        516
        """
        task, config = get_task(task), config or NetworkConfig()
        encoders, processor, decoders = jax.random.split(key, 3)
        return Network(
            task,
            config,
            Encoders.initial(encoders, task, config),
            GATv2.initial(processor, config),
            initial_decoders(decoders, task, config),
        )

    @property
    def parameters(self) -> int:
        """How many numbers the network consists of."""
        return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(self))

    @property
    def dtype(self):
        """The floating-point type of the parameters."""
        return self.processor.value.weight.dtype

    def decode(self, names: tuple[str, ...], read: Readout, edge_encoder: Linear) -> Values:
        """The raw predictions of the named features."""
        return {name: self.decoders[name](read, edge_encoder) for name in names}


class Step(NamedTuple):
    """Everything that one hint step computed. Message-passing steps are the leading axis."""

    logits: Float[Array, "substeps batch heads receivers senders"]
    attention: Float[Array, "substeps batch heads receivers senders"]
    hidden: Float[Array, "substeps batch nodes hidden"]
    support: Bool[Array, "batch receivers senders"]
    hints: Values


class Unrolled(NamedTuple):
    """A network's run over a batch. `steps` is stacked over time and None if not kept."""

    outputs: Values
    hints: Values
    steps: Step | None


def unroll(
    network: Network,
    batch: Batch,
    *,
    training: bool,
    key: Key[Array, ""] | None = None,
    replace: Mapping[str, Any] | None = None,
    keep_steps: bool = False,
) -> Unrolled:
    """Run the network over a batch.

    `key` is needed in training if there is dropout or partial teacher forcing. `replace` forces
    intermediate values, by the names of `Step`, each stacked over the hint steps.
    """
    config, task = network.config, network.task
    if task != batch.task:
        raise InvalidInput(f"a network for {task.name} cannot run on a batch of {batch.task.name}")
    hint_names = tuple(f.name for f in task.hints) if config.decodes_hints else ()
    steps, nodes = batch.steps, batch.nodes
    edge_encoder = network.encoders.at(Location.EDGE)
    node_encoder = network.encoders.at(Location.NODE)
    graph_encoder = network.encoders.at(Location.GRAPH)
    assert edge_encoder is not None
    assert node_encoder is not None
    inputs = dense(task.inputs, batch.inputs, nodes, network.dtype)
    replace = replace or {}

    def truth(time: Array | int) -> Values:
        hints = {f.name: batch.hints[f.name][time] for f in task.hints}
        return dense(task.hints, hints, nodes, network.dtype)

    def process(
        c_fixed: Array, hidden: Array, edges: Array, graph: Array, support: Array, forced: Values
    ) -> Message:
        c = jnp.concatenate([c_fixed, hidden], axis=-1)
        logits = network.processor.logits(c, edges, edge_encoder, graph)
        logits = forced.get("logits", logits)
        attention = forced.get("attention", masked_softmax(logits, support))
        after = network.processor.update(attention, c, edges, edge_encoder)
        return Message(logits, attention, forced.get("hidden", after))

    def step(carry, xs):
        hidden, hints, read = carry
        time, step_key, forced = xs
        values = {**inputs, **hints}
        support = attention_support(network.encoders.features, values)
        support = forced.get("support", jnp.broadcast_to(support, (batch.size, nodes, nodes)))
        edges = network.encoders.channels(Location.EDGE, values)
        node = node_encoder(network.encoders.channels(Location.NODE, values))
        if graph_encoder is None:
            graph = jnp.zeros((batch.size, config.hidden_size), network.dtype)
        else:
            graph = graph_encoder(network.encoders.channels(Location.GRAPH, values))

        messages = []
        after = hidden
        for substep in range(config.nb_msg_passing_steps):
            here = {
                name: value[substep] for name, value in forced.items() if name in Message._fields
            }
            messages.append(process(node, after, edges, graph, support, here))
            after = messages[-1].hidden
        if training and config.dropout_prob > 0:
            after = _dropout(jax.random.fold_in(step_key, 0), config.dropout_prob, after)

        now = Readout(jnp.concatenate([node, hidden, after], -1), edges, graph, inputs["pos"])
        # dm-clrs keeps a sample's output from its last true step; keeping what the output's
        # decoders read is the same, and they run once.
        live = (time == 0) | (batch.lengths > time + 1)
        read = jax.tree.map(lambda new, old: jnp.where(_like(live, new), new, old), now, read)
        predicted = {**network.decode(hint_names, now, edge_encoder), **forced.get("hints", {})}

        if config.encodes_hints:
            hints = postprocess(task.hints, predicted, config.hardens_hints(training))
            if training and config.hint_teacher_forcing > 0:
                force = jax.random.bernoulli(
                    jax.random.fold_in(step_key, 1), config.hint_teacher_forcing, (batch.size,)
                )
                hints = jax.tree.map(
                    lambda true, own: jnp.where(_like(force, own), true, own),
                    truth(time + 1),
                    hints,
                )
        if keep_steps:
            stacked = jax.tree.map(lambda *x: jnp.stack(x), *messages)
            kept = Step(*stacked, support=support, hints=predicted)
        else:
            kept = Step(None, None, None, None, predicted)  # pyright: ignore[reportArgumentType]
        return (after, hints, read), kept

    hidden = jnp.zeros((batch.size, nodes, config.hidden_size), network.dtype)
    unread = Readout(
        jnp.zeros((batch.size, nodes, 3 * config.hidden_size), network.dtype),
        jnp.zeros((batch.size, nodes, nodes, edge_encoder.weight.shape[0]), network.dtype),
        jnp.zeros((batch.size, config.hidden_size), network.dtype),
        inputs["pos"],
    )
    carry = (hidden, truth(0) if config.encodes_hints else {}, unread)
    keys = jax.random.split(jax.random.key(0) if key is None else key, steps)
    forced_steps = {name: value for name, value in replace.items() if name != "outputs"}
    (_, _, read), kept = jax.lax.scan(step, carry, (jnp.arange(steps), keys, forced_steps))
    outputs = network.decode(tuple(f.name for f in task.outputs), read, edge_encoder)
    outputs = {**outputs, **replace.get("outputs", {})}
    return Unrolled(outputs, kept.hints, kept if keep_steps else None)


def _like(flags: Bool[Array, "batch"], value: Array) -> Bool[Array, "batch ..."]:
    """Per-sample flags, shaped to broadcast against a value."""
    return flags.reshape(-1, *[1] * (value.ndim - 1))


def _dropout(key: Key[Array, ""], rate: float, x: Array) -> Array:
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)
