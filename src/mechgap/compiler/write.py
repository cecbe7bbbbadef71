"""Write a compiled program's parameters into a network: encoders, processor, decoders."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mechgap.compiler.affine import Affine
from mechgap.compiler.ballast import Ballast
from mechgap.compiler.layout import Layout
from mechgap.network.config import NetworkConfig
from mechgap.network.decoders import Decoder
from mechgap.network.gatv2 import GATv2
from mechgap.network.linear import LayerNorm, Linear
from mechgap.network.network import Network
from mechgap.programs.components import Kind
from mechgap.programs.expressions import Side
from mechgap.programs.posing import posed
from mechgap.programs.program import Program


def write(
    program: Program,
    config: NetworkConfig,
    layout: Layout,
    told: bool,
    norm: Ballast | None,
    decoders: Mapping[str, Decoder],
    dtype: str,
) -> Network:
    """The network; every parameter that is not written is 0.

    `told` says that the pre-attention bias tells oneself.
    """
    key = jax.eval_shape(lambda: jax.random.key(0))
    blank = eqx.filter_eval_shape(Network.initial, posed(program), key, config)
    zero = jax.tree.map(lambda leaf: np.zeros(leaf.shape, dtype), blank)
    network = eqx.tree_at(
        lambda net: (net.encoders.linears, net.processor, net.decoders),
        zero,
        (
            _encoders(program, layout, zero),
            _processor(layout, told, norm, zero.processor),
            {**zero.decoders, **decoders},
        ),
    )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), network)


def _encoders(program: Program, layout: Layout, zero: Network) -> dict[str, Linear]:
    """Inputs and hints into the units that they are read from."""
    channels: dict[str, list[int]] = {}
    units = {**layout.nodes, **layout.edges}
    for ours, theirs in program.inputs.items():
        if ours in units:
            channels[theirs] = [units[ours]]
    for hint, component in program.hints.items():
        if component.kind is Kind.TOTAL:
            channels[hint] = [0]
            continue
        names = component.classes or (component.name,)
        at = layout.edges if component.kind is Kind.POINTER else layout.nodes
        if hint not in program.unclaimed and all(name in at for name in names):
            channels[hint] = [at[name] for name in names]
    linears = dict(zero.encoders.linears)
    for feature, found in channels.items():
        weight = np.zeros(linears[feature].weight.shape)
        weight[np.arange(len(found)), found] = 1.0
        linears[feature] = Linear(jnp.asarray(weight), jnp.zeros(layout.hidden_size))
    return linears


def _processor(layout: Layout, told: bool, norm: Ballast | None, gat: GATv2) -> GATv2:
    """Fill the parameters of a processor that is all 0."""
    hidden, dtype = layout.hidden_size, gat.value.weight.dtype

    def filled(shape: Linear, rows: dict[int, np.ndarray], bias: dict[int, float]) -> Linear:
        weight, offset = np.zeros(shape.weight.shape, dtype), np.zeros(shape.bias.shape, dtype)
        for unit, row in rows.items():
            weight[:, unit] = row
        for unit, value in bias.items():
            offset[unit] = value
        return Linear(jnp.asarray(weight), jnp.asarray(offset))

    wide = 2 * hidden
    attention, state = list(enumerate(layout.attention)), list(enumerate(layout.state))

    def of_node(form: Affine, side: Side) -> np.ndarray:
        return layout.node_row(form.side(side), hidden, wide)

    processor = eqx.tree_at(
        lambda g: (g.sender, g.receiver, g.edge, g.value, g.skip, g.attention),
        gat,
        (
            filled(gat.sender, {i: of_node(u.zeta, Side.OTHER) for i, u in attention}, {}),
            filled(
                gat.receiver,
                {i: of_node(u.zeta, Side.SELF) for i, u in attention},
                {i: layout.constant(u.zeta) for i, u in attention},
            ),
            filled(
                gat.edge, {i: layout.edge_row(u.zeta.side(Side.EDGE)) for i, u in attention}, {}
            ),
            filled(gat.value, {i: of_node(u.before_relu, Side.OTHER) for i, u in state}, {}),
            filled(
                gat.skip,
                {i: of_node(u.before_relu, Side.SELF) for i, u in state},
                {i: layout.constant(u.before_relu) for i, u in state}
                | ({layout.reference + 1: norm.weight} if norm and layout.reference else {}),
            ),
            np.array([[u.omega for _, u in attention] + [0.0] * (hidden - len(attention))], dtype),
        ),
    )
    if gat.info is not None:
        info = np.zeros((hidden, hidden), dtype)
        for i, unit in state:
            info[:, i] = layout.edge_row(unit.before_relu.side(Side.EDGE))
        processor = eqx.tree_at(lambda g: g.info, processor, info)
    if gat.pre_attention_bias is not None:
        identity = told * np.eye(len(gat.pre_attention_bias), dtype=dtype)
        processor = eqx.tree_at(lambda g: g.pre_attention_bias, processor, identity)

    if norm is not None:
        used = np.arange(hidden) <= len(state)  # the state's units and the reference
        scale, offset = norm.scale * used, norm.offset * used
        normed = LayerNorm(jnp.asarray(scale, dtype), jnp.asarray(offset, dtype))
        processor = eqx.tree_at(lambda g: g.norm, processor, normed)
    return processor
