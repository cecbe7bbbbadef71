"""Compile a graph program into a network: the passes, in order.

    facts       what the mask says; which flags stay; when a node keeps its state
    attention   sharpness, mask weight and self-bonus, from the domain
    units       the logit as attention units, the state as hidden units
    layout      which unit of the network is which input, variable and logit term
    write       encoders, processor and decoders

The result is an ordinary `Network`: it runs with its own predicted hints fed back, and predicts
every hint and output.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np

from mechgap.compiler.affine import Affine, affine
from mechgap.compiler.attention import Logits, logits
from mechgap.compiler.domain import Domain
from mechgap.compiler.facts import Mask, read_mask, receiver_cases
from mechgap.compiler.gadgets import (
    Unit,
    diagonal_constant,
    linear,
    merged,
    self_flag,
    tent,
)
from mechgap.compiler.target import Target
from mechgap.compiler.updates import HiddenUnit, hidden_units
from mechgap.errors import InvalidInput
from mechgap.network.decoders import NodeDecoder, PointerDecoder, SimplifiedPointerDecoder
from mechgap.network.linear import Linear
from mechgap.network.network import Network
from mechgap.programs.expressions import Name, Side
from mechgap.programs.language import Component, GraphProgram, Kind
from mechgap.tasks.specs import Location, get_task


@dataclass(frozen=True)
class Compiled:
    """A compiled program: the network and how it was made."""

    program: GraphProgram
    target: Target
    domain: Domain
    network: Network
    logits: Logits
    attention_units: tuple[Unit, ...]
    hidden_units: tuple[HiddenUnit, ...]


def compile_program(
    program: GraphProgram,
    target: Target,
    domain: Domain,
    *,
    hidden_size: int = 128,
    simplify_decoders: bool = False,
) -> Compiled:
    """Compile a program for a target on a domain."""
    mask = read_mask(program)
    selection = logits(program, mask, domain)
    diagonal, units = _attention_units(program, target, domain, selection, mask)
    state = hidden_units(program, mask, domain)
    layout = Layout.of(program, state, units, hidden_size)
    if not target.edge_information:
        _refuse_edge_values(program, target, state)
    config = target.config(hidden_size, domain.nodes, simplify_decoders)
    network = _write(
        program,
        domain,
        layout,
        diagonal,
        Network.initial(program.posed(), jax.random.key(0), config),
    )
    return Compiled(program, target, domain, network, selection, tuple(units), tuple(state))


def _attention_units(
    program: GraphProgram, target: Target, domain: Domain, selection: Logits, mask: Mask
) -> tuple[float, list[Unit]]:
    """The pre-attention bias's diagonal and the units whose sum is the logit."""
    has_bias = target.pre_attention_bias
    bonus = selection.self_bonus
    constant, scale, width = _bonus_parts(program, mask, bonus, fold=not has_bias)
    if has_bias:
        diagonal = diagonal_constant(constant, scale)
        low = selection.low - max(0.0, -diagonal)
        units = [linear(selection.linear, low)]
        if scale:
            units.append(self_flag(width, diagonal, scale, "keep"))
        return diagonal, units
    units = [linear(selection.linear, selection.low)]
    if constant:
        one = Affine({}, 1.0)
        units += tent(_position(program), domain.position_gap, one, constant, "self")
    if scale:
        units += tent(_position(program), domain.position_gap, width, scale, "keep")
    return 0.0, merged(units)


def _bonus_parts(
    program: GraphProgram, mask: Mask, bonus: Affine, fold: bool
) -> tuple[float, float, Affine]:
    """The self-bonus as ``constant + scale · width``, with a width between 0 and 1 in every case.

    With `fold` the constant is taken into the width where that leaves it between 0 and 1: a tent
    of varying width carries both.
    """
    worth = [
        bonus.constant + sum(value * case[name.name] for name, value in bonus.terms.items())
        for case in receiver_cases(program, mask)
    ]
    if not bonus.terms:
        return bonus.constant, 0.0, Affine()
    constant = 0.0 if fold and min(worth) * max(worth) == 0.0 else bonus.constant
    ends = [value - constant for value in worth]
    if min(ends) * max(ends) < 0:
        raise InvalidInput(f"{program.name}: the bonus {bonus} for oneself has two signs")
    scale = max(ends, key=abs)
    return constant, scale, (1 / scale) * (bonus - constant)


def _position(program: GraphProgram) -> str:
    for ours, theirs in program.inputs.items():
        if theirs == "pos":
            return ours
    raise InvalidInput(f"{program.name} must name the input 'pos': it tells nodes apart")


def _refuse_edge_values(program: GraphProgram, target: Target, state: Sequence[HiddenUnit]) -> None:
    for unit in state:
        for name in unit.before_relu.terms:
            if name.side is Side.EDGE:
                raise InvalidInput(
                    f"{program.name} cannot compile to {target.name}: the update of "
                    f"'{unit.component}' reads {name}, and without edge information the values "
                    "that attention selects are a function of nodes alone. Use the target general "
                    "or paper"
                )


@dataclass(frozen=True)
class Layout:
    """Which unit of the network is what."""

    program: GraphProgram
    nodes: dict[str, int]
    """Node inputs (the program's names) to units of the node features."""
    edges: dict[str, int]
    """Edge inputs to units of the edge features."""
    state: tuple[HiddenUnit, ...]
    attention: tuple[Unit, ...]
    hidden_size: int

    @staticmethod
    def of(
        program: GraphProgram,
        state: Sequence[HiddenUnit],
        attention: Sequence[Unit],
        hidden_size: int,
    ) -> "Layout":
        """Units in order of appearance, or an error that says how many are needed."""
        locations = {f.name: f.location for f in get_task(program.task).inputs}
        nodes = [n for n, theirs in program.inputs.items() if locations[theirs] is Location.NODE]
        edges = [n for n, theirs in program.inputs.items() if locations[theirs] is Location.EDGE]
        needed = {
            "state": len(state),
            "attention": len(attention),
            "node inputs": len(nodes),
            "edge inputs": len(edges),
            "pointer decoder": 3 if any(c.kind is Kind.POINTER for c in program.hidden) else 0,
        }
        if max(needed.values()) > hidden_size:
            listed = ", ".join(f"{count} for {what}" for what, count in needed.items())
            raise InvalidInput(
                f"{program.name} needs hidden_size of at least {max(needed.values())} here "
                f"({listed}); got {hidden_size}"
            )
        return Layout(
            program,
            {name: i for i, name in enumerate(nodes)},
            {name: i for i, name in enumerate(edges)},
            tuple(state),
            tuple(attention),
            hidden_size,
        )

    def node_row(self, form: Affine, offset: int, width: int) -> np.ndarray:
        """An affine form of one node's values, as weights over ``[features | … | hidden]``.

        `offset` is where the hidden state begins. The constant is left to the caller; a
        component's initial value contributes through the inputs.
        """
        row = np.zeros(width)
        for name, coefficient in form.terms.items():
            if name.name in self.nodes:
                row[self.nodes[name.name]] += coefficient
                continue
            for i, unit in enumerate(self.state):
                if unit.component == name.name:
                    row[offset + i] += coefficient * unit.sign
            initial = affine(self.program.init[name.name])
            for at, value in initial.terms.items():
                row[self.nodes[at.name]] += coefficient * value
        return row

    def constant(self, form: Affine) -> float:
        """The constant of a form, with that of the components' initial values."""
        total = form.constant
        for name, coefficient in form.terms.items():
            if name.name in self.program.components:
                total += coefficient * affine(self.program.init[name.name]).constant
        return total

    def edge_row(self, form: Affine) -> np.ndarray:
        """An affine form of an edge's values, as weights over the edge features."""
        row = np.zeros(self.hidden_size)
        for name, coefficient in form.terms.items():
            row[self.edges[name.name]] += coefficient
        return row


def _write(
    program: GraphProgram, domain: Domain, layout: Layout, diagonal: float, blank: Network
) -> Network:
    """Fill a network's parameters; every one that is not written is 0."""
    dtype = np.dtype(domain.dtype)
    hidden = layout.hidden_size
    zero = jax.tree.map(lambda leaf: np.zeros(leaf.shape, dtype), blank)

    def filled(shape: Linear, rows: dict[int, np.ndarray], bias: dict[int, float]) -> Linear:
        weight, offset = np.zeros(shape.weight.shape, dtype), np.zeros(shape.bias.shape, dtype)
        for unit, row in rows.items():
            weight[:, unit] = row
        for unit, value in bias.items():
            offset[unit] = value
        return Linear(weight, offset)  # pyright: ignore[reportArgumentType]

    wide = 2 * hidden
    gat = zero.processor
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
                {i: layout.constant(u.before_relu) for i, u in state},
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

    encoders = dict(zero.encoders.linears)
    for units in (layout.nodes, layout.edges):
        for ours, unit in units.items():
            theirs = program.inputs[ours]
            row = np.zeros((1, hidden), dtype)
            row[0, unit] = 1.0
            encoders[theirs] = Linear(row, np.zeros(hidden, dtype))  # pyright: ignore[reportArgumentType]
    decoders = {
        name: _decoder(program, domain, layout, component, zero.decoders[name])
        for name, component in {**program.hints, **program.output}.items()
    }
    network = eqx.tree_at(
        lambda net: (net.encoders.linears, net.processor, net.decoders),
        zero,
        (encoders, processor, decoders),
    )
    return jax.tree.map(lambda leaf: jax.numpy.asarray(leaf, dtype), network)


def _decoder(program: GraphProgram, domain: Domain, layout: Layout, component: Component, blank):
    """The decoder that reads one component off the inputs and the new hidden state."""
    hidden = layout.hidden_size
    dtype = np.dtype(domain.dtype)
    value = Affine({Name(Side.SELF, component.name): 1.0})
    row = layout.node_row(value, 2 * hidden, 3 * hidden).astype(dtype)
    constant = layout.constant(value)

    def single(weight: np.ndarray, bias: float) -> Linear:
        return Linear(weight[:, None].astype(dtype), np.array([bias], dtype))  # pyright: ignore[reportArgumentType]

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
    position[layout.nodes[_position(program)]] = 1.0
    pointing, pointed = np.zeros((3 * hidden, hidden)), np.zeros((3 * hidden, hidden))
    pointing_bias, score = np.zeros(hidden), np.zeros((hidden, 1))
    pointing[:, 0], pointed[:, 0], pointing_bias[0] = row, position, constant
    pointing[:, 1], pointing_bias[1] = row, constant + 2.0
    pointed[:, 2], pointing_bias[2] = position, -2.0
    score[:3, 0] = -2 * sharp, sharp, sharp

    def cast(weight: np.ndarray, bias: np.ndarray) -> Linear:
        return Linear(weight.astype(dtype), bias.astype(dtype))  # pyright: ignore[reportArgumentType]

    return PointerDecoder(
        pointing=cast(pointing, pointing_bias),
        pointed=cast(pointed, np.zeros(hidden)),
        edge=cast(np.zeros((hidden, hidden)), np.zeros(hidden)),
        score=cast(score, np.array([-2 * sharp])),
    )
