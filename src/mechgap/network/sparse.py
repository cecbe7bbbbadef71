"""The same network on lists of edges: memory goes with edges and nodes, not with pairs of nodes.

Parameters and equations are those of `network`. Attention is a softmax over each node's own pairs;
a pointer is decoded in blocks of rows, of which only the best is kept. So predicted pointers are
decisions before they are fed back (dm-clrs's `hard`), and add pairs to the list: dm-clrs lets nodes
attend along the pointers that they are fed, too.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.errors import InvalidInput
from mechgap.network.decoders import (
    PointerDecoder,
    PreparedDecoders,
    Readout,
    SimplifiedPointerDecoder,
    postprocess,
)
from mechgap.network.encoders import carrier
from mechgap.network.gatv2 import PreparedGATv2, Projected
from mechgap.network.lists import Pairs, Told, attend, point
from mechgap.network.network import Network, Prepared
from mechgap.tasks.edge_lists import EdgeLists
from mechgap.tasks.kinds import MATRICES_UP_TO
from mechgap.tasks.specs import Feature, Location, Type

Values = Mapping[str, Array]


def prefers_lists(network: Network, nodes: int) -> bool:
    """Whether graphs are so large that the network is to run on lists of edges, if it can."""
    return nodes > MATRICES_UP_TO and not network.config.use_pre_att_bias


class Attended(NamedTuple):
    """Who attended to whom: in one message-passing step of one graph, or in all of several."""

    attention: Float[Array, "*time heads pairs"]
    pairs: Pairs


Keep = Callable[[Attended, Int[Array, ""], Int[Array, ""]], Any]
"""What to keep of a message-passing step, told who attended to whom in it, its number from the
first on, and which of the graphs it is. An Equinox module can have arrays to compare with."""


def everything(attended: Attended, time: Int[Array, ""], graph: Int[Array, ""]) -> Attended:
    """Keep who attended to whom, which takes memory for every step."""
    del time, graph
    return attended


def nothing(attended: Attended, time: Int[Array, ""], graph: Int[Array, ""]) -> None:
    """Keep outputs and hints alone."""
    del attended, time, graph


class EdgeTrace(eqx.Module):
    """What a network did on lists of edges."""

    hints: Values
    """Decisions ``[steps, batch, nodes, …]``: pointers are nodes, masks 0 or 1."""
    outputs: Values
    """``[batch, nodes]``: pointers are nodes, everything else is raw, as of matrices."""
    kept: Any
    """Of every message-passing step, ``[time, batch, …]``, what was asked for."""


@eqx.filter_jit
def run_on_edges(network: Network, graphs: EdgeLists, keep: Keep = nothing) -> EdgeTrace:
    """Run a network on lists of edges, one graph after the other.

    Args:
        network: Compiled or learned, in any mode of hints; its hints are hardened here.
        graphs: Of the network's task.
        keep: What to keep of each message-passing step.

    Raises:
        InvalidInput: the network is of another task, or has a bias for pairs of nodes.
    """
    if network.task != graphs.task.untraced:
        raise InvalidInput(
            f"a network for {network.task.name} cannot run on graphs of {graphs.task.name}"
        )
    if network.config.use_pre_att_bias:
        raise InvalidInput(
            "a pre-attention bias is a number for each pair of nodes. Run it on matrices"
        )
    prepared = Prepared.of(network)
    dynamic, static = eqx.partition(graphs, eqx.is_array)

    def one(here: tuple[EdgeLists, Int[Array, ""]]) -> _Run:
        graph, number = here

        def kept(attended: Attended, time: Int[Array, ""]) -> Any:
            return keep(attended, time, number)

        return _Running(network, prepared, eqx.combine(graph, static)).run(kept)

    numbers = jnp.arange(graphs.lengths.shape[0])
    hints, outputs, kept = jax.lax.map(one, (dynamic, numbers))
    hints = {name: jnp.swapaxes(value, 0, 1) for name, value in hints.items()}

    def merged(x: Array) -> Array:
        """Graphs, hint steps, message-passing steps: as time and batch."""
        return jnp.moveaxis(x, 0, 2).reshape(-1, x.shape[0], *x.shape[3:])

    return EdgeTrace(hints, outputs, jax.tree.map(merged, kept))


class _Run(NamedTuple):
    hints: Values
    outputs: Values
    kept: Any


class _Carry(NamedTuple):
    hidden: Float[Array, "nodes hidden"]
    hints: Values
    last: tuple[Values, Array, Array]
    """What outputs are read from: hints that were fed, hidden state before and after."""


class _Running(eqx.Module):
    """One graph on its way through a network."""

    network: Network
    prepared: Prepared
    graph: EdgeLists

    def run(self, keep: Callable[[Attended, Int[Array, ""]], Any]) -> _Run:
        """All steps."""
        network, graph = self.network, self.graph
        hidden = jnp.zeros((graph.nodes, network.config.hidden_size), network.dtype)
        hints = {}
        if network.config.encodes_hints:
            hints = {
                f.name: graph.hints[f.name]
                if f.type is Type.POINTER
                else graph.hints[f.name].astype(network.dtype)
                for f in network.task.hints
            }
        last = jnp.maximum(0, graph.lengths - 2)

        def step(carry: _Carry, time: Array):
            pairs = self.pairs(carry.hints)
            before = carry.hidden
            steps = time * network.config.nb_msg_passing_steps

            def kept_of(attended: Attended, i: int) -> Any:
                return keep(attended, steps + i)

            after, kept = self.pass_messages(pairs, carry.hints, before, kept_of)
            predicted = self.predict(self.prepared.hints, pairs, carry.hints, before, after)
            decided = self._decided(predicted)
            now = (carry.hints, before, after)
            read = jax.tree.map(lambda a, b: jnp.where(time == last, a, b), now, carry.last)
            fed = {name: decided[name] for name in carry.hints}
            return _Carry(after, fed, read), (decided, kept)

        begin = _Carry(hidden, hints, (hints, hidden, hidden))
        end, (decided, kept) = jax.lax.scan(step, begin, jnp.arange(graph.steps))
        fed, before, after = end.last
        outputs = self.predict(self.prepared.outputs, self.pairs(fed), fed, before, after)
        return _Run(decided, outputs, kept)

    def _decided(self, predicted: Values) -> Values:
        rest = [f for f in self.network.task.hints if f.name in predicted and not _points(f)]
        hard = postprocess(rest, predicted, hard=True)
        return {name: hard.get(name, value) for name, value in predicted.items()}

    # ---- who sees whom

    @property
    def fed_pointers(self) -> list[Feature]:
        """The hints that are fed as pairs."""
        return [f for f in self.network.encoders.features if _points(f)]

    def pairs(self, hints: Values) -> Pairs:
        """The graph's pairs, and those along pointers that are fed."""
        graph, nodes, count = self.graph, self.graph.nodes, self.graph.receivers.shape[0]
        own = Pairs(graph.receivers, graph.senders, jnp.arange(count, dtype=jnp.int32))
        if not self.fed_pointers:
            return own
        everyone = jnp.arange(nodes, dtype=jnp.int32)
        pointed = [hints[f.name].astype(jnp.int32) for f in self.fed_pointers]
        ends = [(everyone, p) for p in pointed] + [(p, everyone) for p in pointed]
        receivers, senders = (jnp.concatenate(each) for each in zip(*ends, strict=True))
        new = ~self._is_listed(receivers, senders)
        receivers, senders = (jnp.where(new, x, nodes) for x in (receivers, senders))
        receivers, senders = jax.lax.sort((receivers, senders), num_keys=2)
        again = (receivers == jnp.roll(receivers, 1)) & (senders == jnp.roll(senders, 1))
        again = again.at[0].set(False)
        receivers, senders = (jnp.where(again, nodes, x) for x in (receivers, senders))
        behind = jnp.full(receivers.shape, count, jnp.int32)
        both = Pairs(*(jnp.concatenate(two) for two in zip(own, (receivers, senders, behind),
                                                           strict=True)))  # fmt: skip
        return jax.lax.cond(
            jnp.any(new), lambda p: Pairs(*jax.lax.sort(tuple(p), num_keys=2)), lambda p: p, both
        )

    def _is_listed(self, receivers: Array, senders: Array) -> Bool[Array, "queries"]:
        """Whether pairs are in the graph's list, by bisection in the receiver's part of it."""
        low, high = self.graph.offsets[receivers], self.graph.offsets[receivers + 1]
        end = high
        for _ in range(max(1, self.graph.receivers.shape[0]).bit_length()):
            middle = (low + high) // 2
            below = (self.graph.senders[middle] < senders) & (middle < high)
            low, high = jnp.where(below, middle + 1, low), jnp.where(below, high, middle)
        return (low < end) & (self.graph.senders[low] == senders)

    def channels(self, pairs: Pairs, hints: Values, backwards: bool) -> Float[Array, "pairs c"]:
        """What is told of pairs; or, backwards, of the pairs the other way round."""
        graph, count = self.graph, self.graph.receivers.shape[0]
        listed = jnp.minimum(pairs.listed, count - 1)
        listed = graph.opposite[listed] if backwards else listed
        first, second = pairs.receivers, pairs.senders
        first, second = (second, first) if backwards else (first, second)
        found = {}
        for f in self.network.encoders.features:
            if _points(f):
                whom = hints[f.name][jnp.minimum(first, graph.nodes - 1)]
                found[f.name] = (whom == second).astype(self.network.dtype)
            elif carrier(f) is Location.EDGE:
                told = jnp.where(pairs.listed < count, graph.inputs[f.name][listed], 0)
                found[f.name] = told.astype(self.network.dtype)
        return self.network.encoders.channels(Location.EDGE, found)

    def read(self, hints: Values, before: Array, after: Array) -> Readout:
        """What is read of nodes and the graph; a batch of one."""
        located = {f.name: f for f in self.network.encoders.features}
        values = {
            name: jnp.asarray(value, self.network.dtype)[None]
            for name, value in {**self.graph.inputs, **hints}.items()
            if name in located and carrier(located[name]) is not Location.EDGE
        }
        encoders, graph = self.network.encoders, None
        if self.prepared.encoders.graph is not None:
            graph = self.prepared.encoders.graph(encoders.channels(Location.GRAPH, values))
        return Readout(encoders.channels(Location.NODE, values), before[None], after[None],
                       None, graph, values["pos"])  # fmt: skip

    # ---- one step

    def pass_messages(
        self, pairs: Pairs, hints: Values, hidden: Array, keep: Callable[[Attended, int], Any]
    ) -> tuple[Array, Any]:
        """All message-passing steps of a hint: the hidden state, and what is kept of them."""
        channels = self.channels(pairs, hints, backwards=False)
        kept = []
        for i in range(self.network.config.nb_msg_passing_steps):
            read = self.read(hints, hidden, hidden)
            hidden, attention = self._message(pairs, channels, read, hidden)
            kept.append(keep(Attended(attention, pairs), i))
        return hidden, jax.tree.map(lambda *each: jnp.stack(each), *kept)

    def _message(
        self, pairs: Pairs, channels: Array, read: Readout, hidden: Array
    ) -> tuple[Array, Float[Array, "heads pairs"]]:
        processor = self.prepared.processor
        projected = processor.project(read.nodes, hidden[None])
        projected = Projected(*(each[0] for each in projected))
        everywhere = processor.meta.bias if read.graph is None else processor.meta(read.graph)[0]
        selected, attention = attend(
            projected.receiver + everywhere,
            projected.sender,
            projected.value,
            Told(pairs, channels, processor.edge),
            processor.attention,
            everyone=self.network.config.attends_to_all,
        )
        hidden = self._after(processor, pairs, channels, attention, selected, projected)
        return hidden, attention.T

    def _after(
        self,
        processor: PreparedGATv2,
        pairs: Pairs,
        channels: Array,
        attention: Float[Array, "pairs heads"],
        selected: Float[Array, "nodes heads size"],
        projected: Projected,
    ) -> Float[Array, "nodes hidden"]:
        """The next hidden state, given what was selected."""
        nodes = self.graph.nodes
        if processor.info is not None:
            # Only pairs have channels; of all others, and attention is 1, the bias is left.
            seen = attention[..., None] * channels[:, None]
            seen = jax.ops.segment_sum(seen, pairs.receivers, num_segments=nodes + 1)[:nodes]
            selected = selected + seen @ processor.info.weight + processor.info.bias
        hidden = jax.nn.relu(selected.reshape(nodes, -1) + projected.skip)
        return hidden if processor.norm is None else processor.norm(hidden)

    # ---- decoding

    def predict(
        self, decoders: PreparedDecoders, pairs: Pairs, hints: Values, before: Array, after: Array
    ) -> Values:
        """Predictions: pointers are nodes, everything else is raw."""
        read = self.read(hints, before, after)
        backwards = self.channels(pairs, hints, backwards=True)
        found = {}
        for name, (decoder, seen) in decoders.seen(read).items():
            mine = [each[0] for each in seen]
            if isinstance(decoder, PointerDecoder):
                found[name] = self._pointer(decoder, decoders, name, pairs, backwards, *mine)
            elif isinstance(decoder, SimplifiedPointerDecoder):
                found[name] = self._nearest(mine[0][:, 0], read.pos[0])
            else:
                told = decoder.predict(read, *seen, encoder=decoders.encoder, edge=None)
                found[name] = told[0]
        return found

    def _pointer(
        self,
        decoder: PointerDecoder,
        decoders: PreparedDecoders,
        name: str,
        pairs: Pairs,
        backwards: Array,
        pointing: Array,
        pointed: Array,
    ) -> Int[Array, "nodes"]:
        edge = decoders.edges[name]
        told = Told(pairs, backwards, edge.weight)
        return point(pointing, pointed + edge.bias, told, decoder.score.weight.T)

    def _nearest(self, position: Array, pos: Array) -> Int[Array, "nodes"]:
        """The node whose position is nearest, of equals the first."""
        order = jnp.argsort(pos, stable=True)
        right = jnp.clip(jnp.searchsorted(pos[order], position), 0, len(pos) - 1)
        left = jnp.maximum(0, right - 1)
        nearer = jnp.abs(position - pos[order[left]]) <= jnp.abs(position - pos[order[right]])
        return order[jnp.where(nearer, left, right)].astype(jnp.int32)


def _points(feature: Feature) -> bool:
    return feature.type is Type.POINTER and feature.location is Location.NODE
