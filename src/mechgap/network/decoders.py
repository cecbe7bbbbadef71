"""Decoders: hidden states become predictions, one decoder per predicted hint and output.

All read ``h_t = [node features | previous hidden | new hidden]`` and the features of edges and
of the graph. Predictions are raw: logits for masks, categories and pointers.
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from mechgap.network.config import NetworkConfig
from mechgap.network.linear import Linear
from mechgap.tasks.specs import Feature, Location, Task, Type


class Readout(eqx.Module):
    """What decoders read after one step."""

    h: Float[Array, "batch nodes features"]
    edges: Float[Array, "batch nodes nodes channels"]
    graph: Float[Array, "batch hidden"]
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

    def __call__(self, read: Readout, edge_encoder: Linear) -> Array:
        del edge_encoder
        prediction = self.linear(read.h)
        return prediction[..., 0] if self.squeeze else prediction


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

    def __call__(self, read: Readout, edge_encoder: Linear) -> Float[Array, "batch nodes nodes"]:
        # The edge that i sees of j is [j, i]: a pointer decoder reads edges backwards.
        backwards = jnp.swapaxes(read.edges, 1, 2)
        target = self.pointed(read.h)[:, None] + self.edge.after(edge_encoder)(backwards)
        return self.score(jnp.maximum(self.pointing(read.h)[:, :, None], target))[..., 0]


class SimplifiedPointerDecoder(eqx.Module):
    """The paper's pointer decoder: ``-c · |v_i - pos_j|``, with v linear in what is read."""

    position: Linear
    sharpness: float = eqx.field(static=True)

    def __call__(self, read: Readout, edge_encoder: Linear) -> Float[Array, "batch nodes nodes"]:
        del edge_encoder
        return -self.sharpness * jnp.abs(self.position(read.h) - read.pos[:, None, :])


class GraphDecoder(eqx.Module):
    """One number for the graph, from the largest of each feature over the nodes."""

    nodes: Linear
    graph: Linear

    @staticmethod
    def initial(key: Key[Array, ""], hidden: int) -> "GraphDecoder":
        """dm-clrs's initialisation."""
        k1, k2 = jax.random.split(key)
        return GraphDecoder(Linear.initial(k1, 3 * hidden, 1), Linear.initial(k2, hidden, 1))

    def __call__(self, read: Readout, edge_encoder: Linear) -> Float[Array, "batch"]:
        del edge_encoder
        return (self.nodes(jnp.max(read.h, axis=-2)) + self.graph(read.graph))[..., 0]


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
