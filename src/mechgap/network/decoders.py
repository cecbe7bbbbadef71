"""Decoders: hidden states become predictions, one decoder per predicted hint and output.

All read ``h_t = [node features | previous hidden | new hidden]`` and the features of edges and
of the graph. Predictions are raw: logits for masks, categories and pointers.
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from mechgap.network.config import NetworkConfig
from mechgap.network.encoders import PreparedEncoders
from mechgap.network.linear import Linear, side_by_side
from mechgap.network.pairwise import Activation, pairwise
from mechgap.tasks.specs import Feature, Location, Task, Type


class Readout(eqx.Module):
    """What decoders read after one step."""

    nodes: Float[Array, "batch nodes channels"]
    before: Float[Array, "batch nodes hidden"]
    after: Float[Array, "batch nodes hidden"]
    edges: Float[Array, "batch nodes nodes edge_channels"] | None
    """None where pairs are a list."""
    graph: Float[Array, "batch hidden"] | None
    pos: Float[Array, "batch nodes"]


class NodeDecoder(eqx.Module):
    """A number (scalar, mask, one of the nodes) or one per class, at every node."""

    linear: Linear
    squeeze: bool = eqx.field(static=True)

    @staticmethod
    def initial(key: Key[Array, ""], hidden: int, feature: Feature) -> "NodeDecoder":
        """dm-clrs's initialisation."""
        linear = Linear.initial(key, 3 * hidden, feature.categories)
        return NodeDecoder(linear, feature.type is not Type.CATEGORICAL)

    @property
    def readers(self) -> tuple[Linear, ...]:
        """The maps that read ``h_t``."""
        return (self.linear,)

    def predict(self, read: Readout, seen: Array, *, encoder: Linear, edge: Linear | None) -> Array:
        """The prediction, from what the readers saw."""
        del read, encoder, edge
        return seen[..., 0] if self.squeeze else seen


class PointerDecoder(eqx.Module):
    """Logits of node i pointing to node j: ``w · max(p1_i, p2_j + p3_ji) + b``."""

    pointing: Linear
    pointed: Linear
    edge: Linear
    score: Linear

    @staticmethod
    def initial(key: Key[Array, ""], hidden: int) -> "PointerDecoder":
        """dm-clrs's initialisation."""
        k1, k2, k3, k4 = jax.random.split(key, 4)
        return PointerDecoder(
            pointing=Linear.initial(k1, 3 * hidden, hidden),
            pointed=Linear.initial(k2, 3 * hidden, hidden),
            edge=Linear.initial(k3, hidden, hidden),
            score=Linear.initial(k4, hidden, 1),
        )

    @property
    def readers(self) -> tuple[Linear, ...]:
        """The maps that read ``h_t``."""
        return (self.pointing, self.pointed)

    def predict(
        self,
        read: Readout,
        pointing: Array,
        pointed: Array,
        *,
        encoder: Linear,
        edge: Linear | None,
    ) -> Float[Array, "batch nodes nodes"]:
        """The prediction, from what the readers saw."""
        del encoder
        assert edge is not None
        assert read.edges is not None
        # The edge that i sees of j is [j, i]: a pointer decoder reads edges backwards.
        backwards = jnp.swapaxes(read.edges, 1, 2)
        target = pointed + edge.bias
        omega = self.score.weight.T
        scores = pairwise(Activation.MAXIMUM, pointing, target, backwards, edge.weight, omega)
        return scores[:, 0] + self.score.bias


class SimplifiedPointerDecoder(eqx.Module):
    """The paper's pointer decoder: ``-c · |v_i - pos_j|``, with v linear in what is read."""

    position: Linear
    sharpness: float = eqx.field(static=True)

    @property
    def readers(self) -> tuple[Linear, ...]:
        """The maps that read ``h_t``."""
        return (self.position,)

    def predict(
        self, read: Readout, position: Array, *, encoder: Linear, edge: Linear | None
    ) -> Float[Array, "batch nodes nodes"]:
        """The prediction, from what the readers saw."""
        del encoder, edge
        return -self.sharpness * jnp.abs(position - read.pos[:, None, :])


class GraphDecoder(eqx.Module):
    """One number for the graph, from the largest of each feature over the nodes."""

    nodes: Linear
    graph: Linear

    @staticmethod
    def initial(key: Key[Array, ""], hidden: int) -> "GraphDecoder":
        """dm-clrs's initialisation."""
        k1, k2 = jax.random.split(key)
        return GraphDecoder(Linear.initial(k1, 3 * hidden, 1), Linear.initial(k2, hidden, 1))

    @property
    def readers(self) -> tuple[Linear, ...]:
        """Nothing is read before the largest over the nodes is taken."""
        return ()

    def predict(
        self, read: Readout, *, encoder: Linear, edge: Linear | None
    ) -> Float[Array, "batch"]:
        """The prediction."""
        del edge
        h = jnp.concatenate([encoder(read.nodes), read.before, read.after], axis=-1)
        graph = (
            jnp.zeros_like(h[:, 0, : read.after.shape[-1]]) if read.graph is None else read.graph
        )
        return (self.nodes(jnp.max(h, axis=-2)) + self.graph(graph))[..., 0]


Decoder = NodeDecoder | PointerDecoder | SimplifiedPointerDecoder | GraphDecoder


def decoded_features(task: Task, config: NetworkConfig) -> tuple[Feature, ...]:
    """The features that the network predicts: outputs always, hints if it decodes them."""
    return task.outputs + (task.hints if config.decodes_hints else ())


def initial_decoders(
    key: Key[Array, ""], task: Task, config: NetworkConfig
) -> Mapping[str, Decoder]:
    """One decoder per predicted feature, initialised as in dm-clrs."""
    features = decoded_features(task, config)
    hidden = config.hidden_size

    def initial(feature: Feature, key: Key[Array, ""]) -> Decoder:
        if feature.location is Location.GRAPH:
            return GraphDecoder.initial(key, hidden)
        if feature.type is not Type.POINTER:
            return NodeDecoder.initial(key, hidden, feature)
        if config.simplify_decoders:
            position = Linear.initial(key, 3 * hidden, 1)
            return SimplifiedPointerDecoder(position, config.simplified_sharpness)
        return PointerDecoder.initial(key, hidden)

    keys = jax.random.split(key, len(features))
    return {f.name: initial(f, k) for f, k in zip(features, keys, strict=True)}


class PreparedDecoders(eqx.Module):
    """Some of a network's decoders as a run uses them: what reads ``h_t`` is one matrix product."""

    names: tuple[str, ...] = eqx.field(static=True)
    """The decoders in the order of what reads (JAX sorts a mapping's names)."""
    decoders: Mapping[str, Decoder]
    readers: Linear | None
    encoder: Linear
    """The nodes'."""
    edges: Mapping[str, Linear]
    """What pointer decoders read of an edge's channels."""

    @staticmethod
    def of(decoders: Mapping[str, Decoder], encoders: PreparedEncoders) -> "PreparedDecoders":
        """The given decoders, with the node encoder multiplied in."""
        readers = [linear for decoder in decoders.values() for linear in decoder.readers]
        together = side_by_side(readers).on_channels(encoders.node) if readers else None
        edges = {
            name: decoder.edge.after(encoders.edge)
            for name, decoder in decoders.items()
            if isinstance(decoder, PointerDecoder)
        }
        return PreparedDecoders(tuple(decoders), decoders, together, encoders.node, edges)

    @property
    def in_order(self) -> Mapping[str, Decoder]:
        """The decoders in the order of what reads."""
        return {name: self.decoders[name] for name in self.names}

    def __call__(self, read: Readout) -> Mapping[str, Array]:
        """The raw predictions."""
        return {
            name: decoder.predict(read, *seen, encoder=self.encoder, edge=self.edges.get(name))
            for name, (decoder, seen) in self.seen(read).items()
        }

    def seen(self, read: Readout) -> Mapping[str, tuple[Decoder, list[Array]]]:
        """Every decoder, and what its readers see."""
        parts: list[Array] = []
        if self.readers is not None:
            seen = self.readers.of_parts(read.nodes, read.before, read.after)
            widths = [r.bias.shape[0] for d in self.in_order.values() for r in d.readers]
            parts = jnp.split(seen, np.cumsum(widths)[:-1], axis=-1)
        found = {}
        for name, decoder in self.in_order.items():
            found[name] = decoder, parts[: len(decoder.readers)]
            parts = parts[len(decoder.readers) :]
        return found


def postprocess(
    features: Sequence[Feature], predictions: Mapping[str, Array], hard: bool
) -> Mapping[str, Array]:
    """Raw predictions as dense values: probabilities, or decisions without gradient if `hard`."""

    def one(feature: Feature, raw: Array) -> Array:
        if feature.type is Type.SCALAR:
            return jax.lax.stop_gradient(raw) if hard else raw
        if feature.type is Type.MASK:
            return (raw > 0).astype(raw.dtype) if hard else jax.nn.sigmoid(raw)
        if hard:
            return jax.nn.one_hot(jnp.argmax(raw, axis=-1), raw.shape[-1], dtype=raw.dtype)
        return jax.nn.softmax(raw, axis=-1)

    return {f.name: one(f, predictions[f.name]) for f in features}
