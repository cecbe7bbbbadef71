"""Write a compiled program's parameters into a network: encoders, processor, decoders."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mechgap.compiler.affine import Affine
from mechgap.compiler.ballast import Ballast
from mechgap.compiler.domain import Domain
from mechgap.compiler.layout import Layout
from mechgap.network.decoders import (
    Decoder,
    NodeDecoder,
    PointerDecoder,
    SimplifiedPointerDecoder,
)
from mechgap.network.gatv2 import GATv2
from mechgap.network.linear import LayerNorm, Linear
from mechgap.network.network import Network
from mechgap.programs.components import Component, Kind
from mechgap.programs.expressions import Name, Side
from mechgap.programs.program import Program


def write(
    program: Program,
    domain: Domain,
    layout: Layout,
    diagonal: float,
    norm: Ballast | None,
    blank: Network,
) -> Network:
    """Fill a network's parameters; every one that is not written is 0."""
    dtype = np.dtype(domain.dtype)
    hidden = layout.hidden_size
    zero = zeros(blank, dtype)
    processor = write_processor(layout, diagonal, norm, zero.processor)
    encoders = dict(zero.encoders.linears)
    for units in (layout.nodes, layout.edges):
        for ours, unit in units.items():
            theirs = program.inputs[ours]
            row = np.zeros((1, hidden), dtype)
            row[0, unit] = 1.0
            encoders[theirs] = Linear(jnp.asarray(row), jnp.asarray(np.zeros(hidden, dtype)))
    decoders = {
        name: _decoder(program, domain, layout, component, zero.decoders[name])
        for name, component in {**program.hints, **program.output}.items()
    }
    network = eqx.tree_at(
        lambda net: (net.encoders.linears, net.processor, net.decoders),
        zero,
        (encoders, processor, decoders),
    )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), network)


def zeros(blank: Network, dtype: np.dtype) -> Network:
    """A network of the same shape whose parameters are all 0."""
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, dtype), blank)


def write_processor(layout: Layout, diagonal: float, norm: Ballast | None, gat: GATv2) -> GATv2:
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
        identity = diagonal * np.eye(len(gat.pre_attention_bias), dtype=dtype)
        processor = eqx.tree_at(lambda g: g.pre_attention_bias, processor, identity)

    if norm is not None:
        used = np.arange(hidden) <= len(state)  # the state's units and the reference
        scale, offset = norm.scale * used, norm.offset * used
        normed = LayerNorm(jnp.asarray(scale, dtype), jnp.asarray(offset, dtype))
        processor = eqx.tree_at(lambda g: g.norm, processor, normed)
    return processor


def _decoder(
    program: Program, domain: Domain, layout: Layout, component: Component, blank: Decoder
) -> Decoder:
    """The decoder that reads one component off the inputs and the new hidden state."""
    hidden = layout.hidden_size
    dtype = np.dtype(domain.dtype)
    value = Affine({Name(Side.SELF, component.name): 1.0})
    row = layout.node_row(value, 2 * hidden, 3 * hidden).astype(dtype)
    constant = layout.constant(value)

    def single(weight: np.ndarray, bias: float) -> Linear:
        return Linear(jnp.asarray(weight[:, None], dtype), jnp.asarray([bias], dtype))

    if isinstance(blank, NodeDecoder):
        if component.kind is Kind.BOOL:
            sure = 2 * np.log(1 / domain.epsilon)
            return NodeDecoder(single(2 * sure * row, 2 * sure * (constant - 0.5)), True)
        return NodeDecoder(single(row, constant), True)
    if isinstance(blank, SimplifiedPointerDecoder):
        return SimplifiedPointerDecoder(single(row, constant), blank.sharpness)
    assert isinstance(blank, PointerDecoder)
    # -s·|v_i - p_j| = -2s·max(v_i, p_j) + s·v_i + s·p_j, the last two as maxima with constants.
    sharp = float(np.log(domain.nodes / domain.epsilon)) / domain.position_gap
    position = np.zeros(3 * hidden, dtype)
    position[layout.nodes[program.position]] = 1.0
    pointing, pointed = np.zeros((3 * hidden, hidden)), np.zeros((3 * hidden, hidden))
    pointing_bias, score = np.zeros(hidden), np.zeros((hidden, 1))
    pointing[:, 0], pointed[:, 0], pointing_bias[0] = row, position, constant
    pointing[:, 1], pointing_bias[1] = row, constant + 2.0
    pointed[:, 2], pointing_bias[2] = position, -2.0
    score[:3, 0] = -2 * sharp, sharp, sharp

    def cast(weight: np.ndarray, bias: np.ndarray) -> Linear:
        return Linear(jnp.asarray(weight, dtype), jnp.asarray(bias, dtype))

    return PointerDecoder(
        pointing=cast(pointing, pointing_bias),
        pointed=cast(pointed, np.zeros(hidden)),
        edge=cast(np.zeros((hidden, hidden)), np.zeros(hidden)),
        score=cast(score, np.array([-2 * sharp])),
    )
