"""The network: encode, process, decode. One class, whether its parameters were compiled or learned.

`Network` holds parameters; `unroll` runs them over the steps of a batch as dm-clrs does:
hint 0 is given, later hints are the network's own predictions (in training, the truth with
probability `hint_teacher_forcing`), and each sample's output is read at its own last step.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.decoders import (
    Decoder,
    PreparedDecoders,
    Readout,
    initial_decoders,
    postprocess,
)
from mechgap.network.encoders import Encoders, PreparedEncoders, attention_support, dense
from mechgap.network.gatv2 import GATv2, Message, PreparedGATv2, masked_softmax
from mechgap.network.patch import Patch
from mechgap.network.swap import Swap
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
        task, config = get_task(task).untraced, config or NetworkConfig()
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


class Step(NamedTuple):
    """Everything that one hint step computed. Message-passing steps are the leading axis."""

    logits: Float[Array, "substeps batch heads receivers senders"]
    attention: Float[Array, "substeps batch heads receivers senders"]
    hidden: Float[Array, "substeps batch nodes hidden"]
    support: Bool[Array, "batch receivers senders"]


class Carry(NamedTuple):
    """What a run takes from step to step."""

    hidden: Float[Array, "batch nodes hidden"]
    hints: Values
    """That are fed to the next step; nothing where hints are not encoded."""


class Unrolled(NamedTuple):
    """A network's run over a batch. `steps` is stacked over time and None if not kept."""

    outputs: Values
    hints: Values
    steps: Step | None
    asides: tuple[Values, ...]
    """For every aside, the hints that each step alone would have predicted with it."""
    end: Carry
    """Where the run has come to."""


class Prepared(eqx.Module):
    """A network's parameters as a run uses them: multiplied once that can be, before the steps.

    It does not depend on the graphs. So training differentiates a run by it, whatever their size,
    and comes from there to the parameters once.
    """

    encoders: PreparedEncoders
    processor: PreparedGATv2
    hints: PreparedDecoders
    outputs: PreparedDecoders

    @staticmethod
    def of(network: Network) -> "Prepared":
        """The network with its encoders multiplied into what reads them."""
        encoders = network.encoders.together
        hint_names = [f.name for f in network.task.hints] if network.config.decodes_hints else []
        output_names = [f.name for f in network.task.outputs]

        def decoders(names: Sequence[str]) -> PreparedDecoders:
            return PreparedDecoders.of({name: network.decoders[name] for name in names}, encoders)

        return Prepared(
            encoders=encoders,
            processor=network.processor.on_channels(encoders.node, encoders.edge),
            hints=decoders(hint_names),
            outputs=decoders(output_names),
        )


def beginning(network: Network, batch: Batch) -> Carry:
    """Where a run begins: with nothing in the hidden state, and the first hint."""
    shape = (batch.size, batch.nodes, network.config.hidden_size)
    hints = _truth(network, batch, 0) if network.config.encodes_hints else {}
    return Carry(jnp.zeros(shape, network.dtype), hints)


def _truth(network: Network, batch: Batch, time: Array | int) -> Values:
    """The true hints of a time, as a network is fed with them."""
    hints = {f.name: batch.hints[f.name][time] for f in network.task.hints}
    return dense(network.task.hints, hints, batch.nodes, network.dtype)


def unroll(
    network: Network,
    batch: Batch,
    *,
    training: bool,
    prepared: Prepared | None = None,
    key: Key[Array, ""] | None = None,
    replace: Mapping[str, Any] | None = None,
    patch: Patch | None = None,
    asides: Sequence[Patch] = (),
    swap: Swap | None = None,
    keep_steps: bool = False,
    only_outputs: bool = False,
    steps_needed: Int[Array, ""] | None = None,
    begin: Carry | None = None,
    forcing: Float[Array, ""] | None = None,
) -> Unrolled:
    """Run the network over a batch.

    `prepared` is the network's own, if somebody has it already.
    `key` is needed in training if there is dropout or partial teacher forcing. `replace` forces
    intermediate values, by the names of `Step`, each stacked over the hint steps; so is `patch`.
    `asides` are patches that every step is also taken with, from where the run has come to without
    them: the run goes on without them, and what they would have made it predict is returned.
    `swap` puts a part of another run's state into this one, at one moment.
    Steps from `steps_needed` on are skipped; nothing that counts may depend on them.
    With `only_outputs` nothing is kept of a step but what outputs are read from, so that memory
    does not grow with the number of steps.
    `begin` is where an earlier run has come to, if this one goes on with it: the batch then holds
    the next hints. `forcing` is the probability of the true hint, if not the configuration's.
    """
    config, task = network.config, network.task
    if task != batch.task.untraced:
        raise InvalidInput(f"a network for {task.name} cannot run on a batch of {batch.task.name}")
    nodes = batch.nodes
    prepared = Prepared.of(network) if prepared is None else prepared
    inputs = dense(task.inputs, batch.inputs, nodes, network.dtype)
    replace = replace or {}

    def readout(hints: Values, before: Array, after: Array) -> Readout:
        """What decoders read, and (but for `after`) the processor."""
        values = {**inputs, **hints}
        graph = None
        if prepared.encoders.graph is not None:
            graph = prepared.encoders.graph(network.encoders.channels(Location.GRAPH, values))
        return Readout(
            network.encoders.channels(Location.NODE, values),
            before,
            after,
            network.encoders.channels(Location.EDGE, values),
            graph,
            inputs["pos"],
        )

    def process(
        read: Readout, hidden: Array, support: Array, forced: Values, patch: Patch | None
    ) -> Message:
        assert read.edges is not None
        projected = prepared.processor.project(read.nodes, hidden)
        logits = prepared.processor.logits(projected, read.edges, read.graph)
        logits = forced.get("logits", logits)
        attention = forced.get("attention", masked_softmax(logits, support))
        if patch is not None:
            attention = patch(attention)
        after = prepared.processor.update(attention, projected, read.edges)
        return Message(logits, attention, forced.get("hidden", after))

    def pass_messages(
        read: Readout,
        hidden: Array,
        support: Array,
        forced: Mapping[str, Any],
        patch: Patch | None,
        time: Array,
    ) -> list[Message]:
        messages = []
        for substep in range(config.nb_msg_passing_steps):
            if swap is not None and substep:  # before the first, the carry was swapped
                hidden = swap.hidden_at(time, substep, hidden)
            here = {
                name: value[substep] for name, value in forced.items() if name in Message._fields
            }
            patch_here = jax.tree.map(lambda x, k=substep: x[k], patch)
            messages.append(process(read, hidden, support, here, patch_here))
            hidden = messages[-1].hidden
        return messages

    def entering(time: Array, hidden: Array) -> Array:
        """The hidden state that a hint step begins with."""
        return hidden if swap is None else swap.hidden_at(time, 0, hidden)

    def predict(read: Readout, after: Array) -> Values:
        return prepared.hints(eqx.tree_at(lambda r: r.after, read, after))

    def step(carry: Carry, xs):
        time, step_key, forced, patched, patched_aside = xs
        hidden, hints = entering(time, carry.hidden), carry.hints
        if swap is not None:
            hints = swap.hints_at(time, hints)
        if config.attends_to_all:
            support = jnp.bool_(True)
        else:
            support = attention_support(network.encoders.features, {**inputs, **hints})
        support = forced.get("support", jnp.broadcast_to(support, (batch.size, nodes, nodes)))
        read = readout(hints, hidden, hidden)
        messages = pass_messages(read, hidden, support, forced, patched, time)
        after = messages[-1].hidden
        if training and config.dropout_prob > 0:
            after = _dropout(jax.random.fold_in(step_key, 0), config.dropout_prob, after)
        predicted = {**predict(read, after), **forced.get("hints", {})}
        aside = tuple(
            predict(read, pass_messages(read, hidden, support, forced, patch, time)[-1].hidden)
            for patch in patched_aside
        )

        fed = hints
        if config.encodes_hints:
            hints = postprocess(task.hints, predicted, config.hardens_hints(training))
            if training and (forcing is not None or config.hint_teacher_forcing > 0):
                probability = config.hint_teacher_forcing if forcing is None else forcing
                force = jax.random.bernoulli(
                    jax.random.fold_in(step_key, 1), probability, (batch.size,)
                )
                hints = jax.tree.map(
                    lambda true, own: jnp.where(_like(force, own), true, own),
                    _truth(network, batch, time + 1),
                    hints,
                )
        kept = None
        if keep_steps:
            stacked = Message(*(jnp.stack(x) for x in zip(*messages, strict=True)))
            kept = Step(stacked.logits, stacked.attention, stacked.hidden, support)
        return Carry(after, hints), (predicted, fed, after, kept, aside)

    def step_or_skip(carry, xs):
        if steps_needed is None:
            return step(carry, xs)
        nothing = jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(step, carry, xs)[1]
        )
        return jax.lax.cond(xs[0] < steps_needed, step, lambda c, _: (c, nothing), carry, xs)

    begin = beginning(network, batch) if begin is None else begin
    hidden = begin.hidden
    keys = jax.random.split(jax.random.key(0) if key is None else key, batch.steps)
    forced_steps = {name: value for name, value in replace.items() if name != "outputs"}
    xs = (jnp.arange(batch.steps), keys, forced_steps, patch, tuple(asides))
    # dm-clrs keeps a sample's output from its last true step. Here what the output's decoders
    # read is taken from that step, and they run once.
    last, sample = jnp.maximum(0, batch.lengths - 2), jnp.arange(batch.size)

    def step_and_forget(carry, xs):
        running, read = carry
        after, (_, fed, hidden, _, _) = step(running, xs)
        now = (fed, entering(xs[0], running[0]), hidden)
        is_last = xs[0] == last
        kept = jax.tree.map(lambda a, b: jnp.where(_like(is_last, a), a, b), now, read)
        return (after, kept), None

    if only_outputs:
        nothing = (begin.hints, hidden, hidden)
        (end, (fed, before, after)), _ = jax.lax.scan(step_and_forget, (begin, nothing), xs)
        return Unrolled(prepared.outputs(readout(fed, before, after)), {}, None, (), end)
    end, (predicted, fed, after, kept, aside) = jax.lax.scan(step_or_skip, begin, xs)
    all_at_the_end = task.fixed_length and batch.max_hints == task.max_hints(nodes)

    def at_last(x: Array) -> Array:
        return x[-1] if all_at_the_end else x[last, sample]

    before = jax.vmap(entering)(xs[0], jnp.concatenate([hidden[None], after[:-1]]))
    read = readout(jax.tree.map(at_last, fed), at_last(before), at_last(after))
    outputs = {**prepared.outputs(read), **replace.get("outputs", {})}
    return Unrolled(outputs, predicted, kept, aside, end)


def _like(flags: Bool[Array, "batch"], value: Array) -> Bool[Array, "batch ..."]:
    """Per-sample flags, shaped to broadcast against a value."""
    return flags.reshape(-1, *[1] * (value.ndim - 1))


def _dropout(key: Key[Array, ""], rate: float, x: Array) -> Array:
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)
