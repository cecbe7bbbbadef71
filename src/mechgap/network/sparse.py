"""The same network on lists of edges: memory goes with edges and nodes, not with pairs of nodes.

Parameters and equations are those of `network`. Attention is a softmax over each node's own pairs;
a pointer is decoded in blocks of rows, of which only the best is kept. So predicted pointers are
decisions before they are fed back (dm-clrs's `hard`), and add pairs to the list: dm-clrs lets nodes
attend along the pointers that they are fed, too.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

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
from mechgap.network.network import Network, Prepared
from mechgap.network.pairwise import SLOPE
from mechgap.tasks.edge_lists import EdgeLists
from mechgap.tasks.specs import Feature, Location, Type

Values = Mapping[str, Array]
BLOCK = 1 << 22
"""Numbers of a block: pairs (or pairs of nodes) times hidden units."""


class Pairs(NamedTuple):
    """Who may attend to whom in one step, ordered by receiver and sender."""

    receivers: Int[Array, "pairs"]
    """The node that does not exist where there is no pair."""
    senders: Int[Array, "pairs"]
    listed: Int[Array, "pairs"]
    """Where the pair is in the graph's list; behind its end if only a pointer made it."""


class Attended(NamedTuple):
    """Who attended to whom. Steps are the leading axis, and before the nodes the batch."""

    attention: Float[Array, "*time heads pairs"]
    receivers: Int[Array, "*time pairs"]
    senders: Int[Array, "*time pairs"]


class EdgeTrace(eqx.Module):
    """What a network did on lists of edges."""

    hints: Values
    """Decisions ``[steps, batch, nodes, …]``: pointers are nodes, masks 0 or 1."""
    outputs: Values
    """``[batch, nodes]``: pointers are nodes, everything else is raw, as of matrices."""
    attended: Attended | None
    """In every message-passing step, ``[time, batch, …]``, if asked for."""


@eqx.filter_jit
def run_on_edges(network: Network, graphs: EdgeLists, *, keep_attention: bool = False) -> EdgeTrace:
    """Run a network on lists of edges, one graph after the other.

    Args:
        network: Compiled or learned, in any mode of hints; its hints are hardened here.
        graphs: Of the network's task.
        keep_attention: Whether to keep who attended to whom, which takes memory for each step.

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

    def one(graph: EdgeLists) -> _Run:
        return _Running(network, prepared, eqx.combine(graph, static)).run(keep_attention)

    hints, outputs, kept = jax.lax.map(one, dynamic)
    hints = {name: jnp.swapaxes(value, 0, 1) for name, value in hints.items()}

    def merged(x: Array) -> Array:
        """Graphs, hint steps, message-passing steps: as time and batch."""
        return jnp.moveaxis(x, 0, 2).reshape(-1, x.shape[0], *x.shape[3:])

    return EdgeTrace(hints, outputs, jax.tree.map(merged, kept))


class _Run(NamedTuple):
    hints: Values
    outputs: Values
    attended: Attended | None


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

    def run(self, keep_attention: bool) -> _Run:
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
            after, kept = self.pass_messages(pairs, carry.hints, before, keep_attention)
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
        self, pairs: Pairs, hints: Values, hidden: Array, keep: bool
    ) -> tuple[Array, Attended | None]:
        """All message-passing steps of a hint: the hidden state, and who attended to whom."""
        channels = self.channels(pairs, hints, backwards=False)
        kept = []
        for _ in range(self.network.config.nb_msg_passing_steps):
            read = self.read(hints, hidden, hidden)
            hidden, attention = self._message(pairs, channels, read, hidden)
            kept.append(Attended(attention, pairs.receivers, pairs.senders))
        together = jax.tree.map(lambda *each: jnp.stack(each), *kept)
        return hidden, together if keep else None

    def _message(
        self, pairs: Pairs, channels: Array, read: Readout, hidden: Array
    ) -> tuple[Array, Float[Array, "heads pairs"]]:
        processor = self.prepared.processor
        projected = processor.project(read.nodes, hidden[None])
        projected = Projected(*(each[0] for each in projected))
        everywhere = processor.meta.bias if read.graph is None else processor.meta(read.graph)[0]
        receiver = projected.receiver + everywhere
        omega = processor.attention

        def meet(u: Array, v: Array) -> Array:
            return jax.nn.leaky_relu(u + v, SLOPE)

        logits = _scores_of_pairs(meet, receiver, projected.sender, pairs, channels,
                                  processor.edge, omega)  # fmt: skip
        logits = logits + processor.attention_bias
        heads = projected.value.reshape(self.graph.nodes, *omega.shape)
        if self.network.config.attends_to_all:
            return self._attend_to_all(processor, pairs, channels, projected, receiver, logits)
        attention = self._softmax_of_pairs(pairs, logits)
        selected = _summed(attention, pairs, heads)
        return self._after(processor, pairs, channels, attention, selected, projected), attention.T

    def _softmax_of_pairs(
        self, pairs: Pairs, logits: Float[Array, "pairs heads"]
    ) -> Float[Array, "pairs heads"]:
        """Over each receiver's pairs; nothing where there is no pair."""
        nodes = self.graph.nodes
        at = {"num_segments": nodes + 1, "indices_are_sorted": True}
        largest = jax.ops.segment_max(logits, pairs.receivers, **at)[pairs.receivers]
        raised = jnp.exp(logits - largest)
        raised = jnp.where((pairs.receivers < nodes)[:, None], raised, 0)
        total = jax.ops.segment_sum(raised, pairs.receivers, **at)[pairs.receivers]
        return raised / jnp.where(total > 0, total, 1)

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

    def _attend_to_all(
        self,
        processor: PreparedGATv2,
        pairs: Pairs,
        channels: Array,
        projected: Projected,
        receiver: Array,
        logits: Float[Array, "pairs heads"],
    ) -> tuple[Array, Float[Array, "heads pairs"]]:
        """Attention between all nodes, row by row: pairs have logits of their own."""
        omega = processor.attention
        heads = projected.value.reshape(self.graph.nodes, *omega.shape)

        def base(u: Array) -> Float[Array, "rows heads nodes"]:
            zeta = jax.nn.leaky_relu(u[:, None] + projected.sender[None], SLOPE)
            zeta = zeta.reshape(*zeta.shape[:-1], *omega.shape)
            return jnp.einsum("ijhf,hf->ihj", zeta, omega) + processor.attention_bias[:, None]

        def finish(rows: Float[Array, "rows heads nodes"]):
            attention = jax.nn.softmax(rows, axis=-1)
            return jnp.einsum("ihj,jhf->ihf", attention, heads), attention

        selected, attention = self._by_rows(receiver, base, pairs, logits, finish)
        return (
            self._after(processor, pairs, channels, attention, selected, projected),
            attention.T,
        )

    # ---- all pairs of nodes, in blocks

    def _by_rows(
        self,
        u: Float[Array, "nodes hidden"],
        base: Callable[[Array], Float[Array, "rows heads nodes"]],
        pairs: Pairs,
        scores: Float[Array, "pairs heads"],
        finish: Callable[[Array], tuple[Array, Array | None]],
    ) -> tuple[Array, Float[Array, "pairs heads"]]:
        """Scores of all pairs of nodes, a block of rows at a time, and what is made of each block.

        Args:
            u: What rows are scored by.
            base: Scores of some rows, as if nothing were told of any pair.
            pairs: Of which something is told.
            scores: Theirs, which take the place of the others.
            finish: What to keep of complete rows; and numbers of all their pairs, or None.
        """
        nodes, count = self.graph.nodes, len(pairs.receivers)
        size = max(1, min(nodes, BLOCK // (nodes * u.shape[-1])))
        chunk = max(1, min(count, 4 * size * max(1, count // nodes)))
        padded = jnp.pad(u, [(0, -nodes % size), (0, 0)])
        offsets = jnp.searchsorted(pairs.receivers, jnp.arange(len(padded) // size + 1) * size)
        # Whole chunks can be cut out anywhere.
        long = Pairs(*(jnp.pad(x, (0, chunk), constant_values=nodes) for x in pairs))
        scores = jnp.pad(scores, [(0, chunk), (0, 0)])

        def block(kept: Array, k: Array):
            rows = base(jax.lax.dynamic_slice_in_dim(padded, k * size, size))

            def cut(x: Array, at: Array) -> Array:
                return jax.lax.dynamic_slice_in_dim(x, at, chunk)

            def local(at: Array) -> tuple[Array, Array]:
                inside = cut(long.receivers, at) - k * size
                here = (inside >= 0) & (inside < size) & (cut(long.receivers, at) < nodes)
                return jnp.where(here, inside, size), cut(long.senders, at)

            def put(rows: Array, at: Array) -> Array:
                row, column = local(at)
                return rows.at[row, :, column].set(cut(scores, at), mode="drop")

            begin, end = offsets[k], offsets[k + 1]

            def over(todo: Callable, initial: Array) -> Array:
                def body(state):
                    at, value = state
                    return at + chunk, todo(value, at)

                return jax.lax.while_loop(lambda s: s[0] < end, body, (begin, initial))[1]

            found, told = finish(over(put, rows))
            if told is not None:

                def keep(kept: Array, at: Array) -> Array:
                    row, column = local(at)
                    mine = told.at[row, :, column].get(mode="fill", fill_value=0)
                    before = cut(kept, at)
                    after = jnp.where((row < size)[:, None], mine, before)
                    return jax.lax.dynamic_update_slice_in_dim(kept, after, at, 0)

                kept = over(keep, kept)
            return kept, found

        kept, found = jax.lax.scan(block, jnp.zeros_like(scores), jnp.arange(len(padded) // size))
        found = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:nodes], found)
        return found, kept[:count]

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
        target, omega = pointed + edge.bias, decoder.score.weight.T
        scores = _scores_of_pairs(
            jnp.maximum, pointing, target, pairs, backwards, edge.weight, omega
        )

        def base(u: Array) -> Array:
            return (jnp.maximum(u[:, None], target[None]) @ omega[0])[:, None]

        def finish(rows: Array):
            return jnp.argmax(rows[:, 0], axis=-1).astype(jnp.int32), None

        return self._by_rows(pointing, base, pairs, scores, finish)[0]

    def _nearest(self, position: Array, pos: Array) -> Int[Array, "nodes"]:
        """The node whose position is nearest, of equals the first."""
        order = jnp.argsort(pos, stable=True)
        right = jnp.clip(jnp.searchsorted(pos[order], position), 0, len(pos) - 1)
        left = jnp.maximum(0, right - 1)
        nearer = jnp.abs(position - pos[order[left]]) <= jnp.abs(position - pos[order[right]])
        return order[jnp.where(nearer, left, right)].astype(jnp.int32)


def _points(feature: Feature) -> bool:
    return feature.type is Type.POINTER and feature.location is Location.NODE


def _in_blocks(pairs: Pairs, width: int) -> tuple[int, int]:
    """How many pairs a block has, and how many are added to make blocks whole."""
    count = len(pairs.receivers)
    size = max(1, min(count, BLOCK // width))
    return size, -count % size


def _scores_of_pairs(
    meet: Callable[[Array, Array], Array],
    u: Float[Array, "nodes hidden"],
    v: Float[Array, "nodes hidden"],
    pairs: Pairs,
    channels: Float[Array, "pairs c"],
    weight: Float[Array, "c hidden"],
    omega: Float[Array, "heads size"],
) -> Float[Array, "pairs heads"]:
    """``ω · meet(u_i, v_j + e_ij W)`` of every pair of receiver i and sender j."""
    size, missing = _in_blocks(pairs, u.shape[-1])

    def blocks(x: Array) -> Array:
        return jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1)).reshape(-1, size, *x.shape[1:])

    def block(here: tuple[Array, Array, Array]) -> Array:
        receivers, senders, told = here
        met = meet(u.at[receivers].get(mode="clip"), v.at[senders].get(mode="clip") + told @ weight)
        return jnp.einsum("phf,hf->ph", met.reshape(-1, *omega.shape), omega)

    every = (blocks(pairs.receivers), blocks(pairs.senders), blocks(channels))
    return jax.lax.map(block, every).reshape(-1, omega.shape[0])[: len(pairs.receivers)]


def _summed(
    attention: Float[Array, "pairs heads"],
    pairs: Pairs,
    values: Float[Array, "nodes heads size"],
) -> Float[Array, "nodes heads size"]:
    """``Σ_j α_ij v_j``, a block of pairs at a time."""
    nodes = len(values)
    size, missing = _in_blocks(pairs, values[0].size)

    def blocks(x: Array, fill: int = 0) -> Array:
        wide = [(0, missing)] + [(0, 0)] * (x.ndim - 1)
        return jnp.pad(x, wide, constant_values=fill).reshape(-1, size, *x.shape[1:])

    def block(total: Array, here: tuple[Array, Array, Array]):
        receivers, senders, weights = here
        added = weights[..., None] * values.at[senders].get(mode="clip")
        return total.at[receivers].add(added, mode="drop", indices_are_sorted=True), None

    every = (blocks(pairs.receivers, nodes), blocks(pairs.senders), blocks(attention))
    return jax.lax.scan(block, jnp.zeros_like(values), every)[0]
