"""Compile a program with phases into a network: the passes, in order."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.attention import margin
from mechgap.compiler.ballast import Ballast
from mechgap.compiler.domain import Domain
from mechgap.compiler.gadgets import Unit
from mechgap.compiler.layout import Layout, check_size
from mechgap.compiler.phased.certificate import PhasedCertificate
from mechgap.compiler.phased.constants import POINTER_SHARE, Decided, decide
from mechgap.compiler.phased.decoders import decoder
from mechgap.compiler.phased.errors import Errors, balance, errors
from mechgap.compiler.phased.reading import Reading
from mechgap.compiler.phased.registers import (
    ROOM,
    Flag,
    Gated,
    Moved,
    Place,
    Register,
    reads,
    registers,
)
from mechgap.compiler.rounding import gamma
from mechgap.compiler.target import Target
from mechgap.compiler.write import write_processor, zeros
from mechgap.errors import InvalidInput
from mechgap.network.linear import Linear
from mechgap.network.network import Network
from mechgap.programs.components import Kind
from mechgap.programs.conclusions import Grows, Linked
from mechgap.programs.expressions import Side
from mechgap.programs.program import Program
from mechgap.tasks.specs import Location, get_task


def build(
    program: Program, target: Target, domain: Domain, hidden_size: int
) -> tuple[Network, Layout, PhasedCertificate]:
    """The network of a program that can be compiled, and what it guarantees."""
    reading = Reading(program, domain.largest_value, domain.largest_weight)
    state = registers(reading, domain.position_gap)
    norm = balance(reading, state, domain, hidden_size) if target.layer_norm else None
    m = margin(domain)
    leak = domain.nodes * float(np.exp(-m))
    off = errors(reading, state, domain, leak, norm)
    _certify(reading, target, domain, state, off)
    decided = decide(reading, domain, m, off, state)
    _check_races(program, target, domain, decided)
    units = tuple(part.unit for part in decided.units)
    layout = _layout(reading, state, units, hidden_size, norm)
    config = replace(
        target.config(hidden_size, domain.nodes), nb_msg_passing_steps=len(program.phases)
    )
    key = jax.eval_shape(lambda: jax.random.key(0))
    blank = eqx.filter_eval_shape(Network.initial, program.posed(), key, config)
    network = _write(reading, domain, layout, off, norm, m, blank)
    certificate = PhasedCertificate(
        domain=domain,
        weights=decided.weights,
        logit_error=decided.logit_error,
        attention_error=leak,
        flag_errors=dict(off.registers),
        total_each_step=_totals(reading, domain, off),
        number_each_hop={
            name: error for name, error in off.numbers.items() if name in program.components
        },
        races=decided.races,
    )
    return network, layout, certificate


def _certify(
    reading: Reading, target: Target, domain: Domain, state: tuple[Register, ...], off: Errors
) -> None:
    """Refuse what cannot be guaranteed."""
    where = f"{reading.program.name} cannot be certified for {target.name} in {domain.dtype}"
    for register in state:
        match register:
            case Flag():
                decides = (*register.forms, *register.less)
            case Gated():
                decides = (register.holds,)
            case _:
                continue
        worst = max(off.form(form) for form in decides)
        if worst > ROOM:
            raise InvalidInput(
                f"{where}: what sets '{register.name}' can be off by {worst:.2g}; at most "
                f"{ROOM} is allowed. Use float64 or another hidden_size"
            )
    allowed = POINTER_SHARE * domain.position_gap
    places = [r.name for r in state if isinstance(r, Place | Moved)]
    seen = max((off.registers[name] for name in places), default=0.0)
    if seen > allowed:
        raise InvalidInput(
            f"{where}: a pointer can be off by {seen:.2g}; at most {allowed:.2g} is allowed, a "
            f"third of position_gap = {domain.position_gap:.2g}. Use float64, or positions further "
            "apart"
        )


def _check_races(program: Program, target: Target, domain: Domain, decided: Decided) -> None:
    """Refuse a domain whose competing values are closer than can be told apart."""
    certified = max(race.start + domain.steps * race.each_hop for race in decided.races)
    if domain.value_gap is not None and certified > domain.value_gap:
        raise InvalidInput(
            f"{program.name} cannot be certified for {target.name} in {domain.dtype} with "
            f"{domain.nodes} nodes and {domain.steps} steps: value_gap must be at least "
            f"{certified:.2g}; got {domain.value_gap:.2g}. Use float64, fewer nodes or fewer steps"
        )


def _totals(reading: Reading, domain: Domain, off: Errors) -> dict[str, float]:
    """What a hint step adds to the error of every total: its flags', and rounding the sum."""
    found = {}
    for name, conclusion in reading.program.conclude.items():
        if isinstance(conclusion, Grows):
            flags = [reading.literal(flag, reading.phases) for flag in conclusion.flags]
            largest = conclusion.by * len(flags) * domain.steps
            summed = gamma(2 * len(flags) + 4, domain.rounding) * largest
            found[name] = conclusion.by * sum(off.form(flag) for flag in flags) + summed
    return found


def _layout(
    reading: Reading,
    state: tuple[Register, ...],
    attention: tuple[Unit, ...],
    hidden_size: int,
    norm: Ballast | None,
) -> Layout:
    program = reading.program
    units = tuple(unit for register in state for unit in register.units)
    locations = {f.name: f.location for f in get_task(program.task).inputs}
    nodes = [n for n, theirs in program.inputs.items() if locations[theirs] is Location.NODE]
    edges = [n for n, theirs in program.inputs.items() if locations[theirs] is Location.EDGE]
    for component in dict.fromkeys(program.hints.values()):
        if component.kind is Kind.CLASS:
            nodes += component.classes
        elif component.kind in {Kind.CHOICE, Kind.BOOL, Kind.FLOAT}:
            nodes.append(component.name)
    edges += dict.fromkeys(name for phase in program.phases for name in phase.followed)
    linked = any(isinstance(c, Linked) for c in program.conclude.values())
    check_size(
        program.name,
        hidden_size,
        {
            "state": len(units) + 2 * (norm is not None),
            "attention": len(attention),
            "node inputs": len(nodes),
            "edge inputs": len(edges),
            "pointer decoder": 5 if linked else 3,
        },
    )
    found = reads(units)
    return Layout(
        initial={
            **dict.fromkeys(found, Affine()),
            **{r.name: term(Side.SELF, reading.position) for r in state if isinstance(r, Moved)},
        },
        reads=found,
        nodes={name: i for i, name in enumerate(nodes)},
        edges={name: i for i, name in enumerate(edges)},
        state=units,
        attention=attention,
        hidden_size=hidden_size,
        reference=len(units) if norm is not None else None,
    )


def _write(
    reading: Reading,
    domain: Domain,
    layout: Layout,
    off: Errors,
    norm: Ballast | None,
    m: float,
    blank: Network,
) -> Network:
    """Fill a network's parameters; every one that is not written is 0."""
    program, dtype = reading.program, np.dtype(domain.dtype)
    zero = zeros(blank, dtype)
    decoders = {
        **zero.decoders,
        **{
            name: decoder(reading, domain, layout, off, m, component)
            for name, component in {**program.hints, **program.output}.items()
        },
    }
    network = eqx.tree_at(
        lambda net: (net.encoders.linears, net.processor, net.decoders),
        zero,
        (
            _encoders(program, layout, zero),
            write_processor(layout, 0.0, norm, zero.processor),
            decoders,
        ),
    )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), network)


def _encoders(program: Program, layout: Layout, zero: Network) -> dict[str, Linear]:
    """Inputs and hints into the units that they are read from."""
    channels = {
        theirs: [layout.nodes[ours] if ours in layout.nodes else layout.edges[ours]]
        for ours, theirs in program.inputs.items()
    }
    for hint, component in program.hints.items():
        if component.kind is Kind.TOTAL:
            channels[hint] = [0]
            continue
        names = component.classes or (component.name,)
        at = layout.edges if component.kind is Kind.POINTER else layout.nodes
        if hint not in program.unclaimed and all(name in at for name in names):
            channels[hint] = [at[name] for name in names]
    linears = dict(zero.encoders.linears)
    for feature, units in channels.items():
        weight = np.zeros(linears[feature].weight.shape)
        weight[np.arange(len(units)), units] = 1.0
        linears[feature] = Linear(jnp.asarray(weight), jnp.zeros(layout.hidden_size))
    return linears
