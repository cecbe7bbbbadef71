"""Encoders: named inputs and hints become channels, and channels become features.

Every encoder is affine, and a location's features are the sum of its encoders. So the features
of an edge are ``x E + b`` with few channels ``x``: one per scalar, mask or pointer, one per
class of a category. Channels stay unencoded until a matrix meets them (`Linear.after`).
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from mechgap.network.config import EncoderInit, NetworkConfig
from mechgap.network.linear import Linear
from mechgap.tasks.specs import Feature, Location, Stage, Task, Type


def encoded_features(task: Task, config: NetworkConfig) -> tuple[Feature, ...]:
    """The features that are fed to the network, in dm-clrs's order."""
    return task.inputs + (task.hints if config.encodes_hints else ())


def carrier(feature: Feature) -> Location:
    """Where a feature's channels live: a node's pointer lives on edges."""
    is_pointer = feature.location is Location.NODE and feature.type is Type.POINTER
    return Location.EDGE if is_pointer else feature.location


class PreparedEncoders(eqx.Module):
    """A network's encoders, one affine map per location."""

    node: Linear
    edge: Linear
    graph: Linear | None


class Encoders(eqx.Module):
    """One affine map per feature that is fed to the network."""

    linears: Mapping[str, Linear]
    features: tuple[Feature, ...] = eqx.field(static=True)

    @staticmethod
    def initial(key: Key[Array, ""], task: Task, config: NetworkConfig) -> "Encoders":
        """dm-clrs's initialisation."""
        features = encoded_features(task, config)

        def scale(feature: Feature) -> float | None:
            xavier = config.encoder_init is EncoderInit.XAVIER_ON_SCALARS
            is_scalar_hint = feature.stage is Stage.HINT and feature.type is Type.SCALAR
            return config.hidden_size**-0.5 if xavier and is_scalar_hint else None

        keys = jax.random.split(key, len(features))
        linears = {
            f.name: Linear.initial(k, f.categories, config.hidden_size, scale(f))
            for f, k in zip(features, keys, strict=True)
        }
        return Encoders(linears, features)

    @property
    def together(self) -> PreparedEncoders:
        """Each location's encoders as one map from its channels."""
        node, edge = self._at(Location.NODE), self._at(Location.EDGE)
        assert node is not None
        assert edge is not None
        return PreparedEncoders(node, edge, self._at(Location.GRAPH))

    def _at(self, location: Location) -> Linear | None:
        """The sum of a location's encoders as one map from its channels; None without any."""
        here = [self.linears[f.name] for f in self.features if carrier(f) is location]
        if not here:
            return None
        weight = jnp.concatenate([linear.weight for linear in here])
        return Linear(weight, jnp.sum(jnp.stack([linear.bias for linear in here]), axis=0))

    def channels(self, location: Location, values: Mapping[str, Array]) -> Float[Array, "..."]:
        """A location's channels from dense values, in the order of `together`."""
        here = [f for f in self.features if carrier(f) is location]
        wide = [
            values[f.name] if f.type is Type.CATEGORICAL else values[f.name][..., None]
            for f in here
        ]
        return jnp.concatenate(wide, axis=-1)


def dense(features: Sequence[Feature], values: Mapping[str, Array], nodes: int, dtype=jnp.float32):
    """Values as numbers a network can read: pointers become rows of 0 and 1."""
    return {
        f.name: jax.nn.one_hot(values[f.name], nodes, dtype=dtype)
        if f.type is Type.POINTER
        else values[f.name].astype(dtype)
        for f in features
    }


def attention_support(
    features: Sequence[Feature], values: Mapping[str, Array]
) -> Bool[Array, "batch nodes nodes"]:
    """Which pairs may attend to each other along the graph.

    Every node to itself, along every edge mask in either direction, and, as dm-clrs has it,
    along every pointer that is fed to the network (where ``p_ij + p_ji > 0.5``).
    """
    nodes = values["pos"].shape[-1]
    support = jnp.eye(nodes, dtype=bool)[None]
    for f in features:
        value = values[f.name]
        if f.location is Location.EDGE and f.type is Type.MASK:
            support = support | (value + value.mT > 0)
        elif f.location is Location.NODE and f.type is Type.POINTER:
            support = support | (value + value.mT > 0.5)
    return support
