"""Compile a graph program into a network: the passes, in order.

    validate     every reason why it cannot be done
    reading      which inputs, hints and registers a name means in which phase
    registers    the state as registers, and registers as hidden units
    errors       how far registers can be off, by rounding and by layer norm
    logits       every phase's selection as attention units
    noise        how far logits can be off
    constants    the weights of the logits, from the domain
    layout       which unit of the network is what; what nobody reads has none
    decoders     what is concluded, as predictions
    write        encoders, processor and decoders
    certificate  what is guaranteed, and on which inputs

The result is an ordinary `Network`: it runs with its own predicted hints fed back, takes one
message-passing step per phase, and predicts every hint and output.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool

from mechgap.compiler.certificate import Certificate
from mechgap.compiler.constants import POINTER_SHARE, decide, margin, slack
from mechgap.compiler.decoders import decoder
from mechgap.compiler.domain import Domain
from mechgap.compiler.errors import Errors, balance, errors, of_totals
from mechgap.compiler.gadgets import Unit
from mechgap.compiler.layout import Layout, lay_out
from mechgap.compiler.logits import Itself, flags_of, tells_itself
from mechgap.compiler.reading import Reading
from mechgap.compiler.registers import (
    ROOM,
    Flag,
    Gated,
    HiddenUnit,
    Moved,
    Place,
    Register,
    registers,
)
from mechgap.compiler.target import Target
from mechgap.compiler.validate import compile_problems
from mechgap.compiler.write import write
from mechgap.display import html_table, png, showable
from mechgap.errors import InvalidInput
from mechgap.network.network import Network
from mechgap.programs.interpreter import Execution, interpret
from mechgap.programs.program import Program
from mechgap.programs.validate import problems, refuse
from mechgap.tasks.batch import Batch


@dataclass(frozen=True)
class Compiled:
    """A compiled program: the network and how it was made."""

    program: Program
    target: Target
    network: Network
    certificate: Certificate
    layout: Layout

    @property
    def hidden_units(self) -> tuple[HiddenUnit, ...]:
        """The units that hold the state, in the network's order."""
        return self.layout.state

    def plot(self) -> Any:
        """The paper's figure of the main parameters."""
        # Reports look at compilers, not the other way round; a notebook asks for this by name.
        return showable(import_module("mechgap.report.parameters").main_figure(self))

    def _repr_png_(self) -> bytes:
        return png(self.plot())

    def _repr_html_(self) -> str:
        rows = [
            ("program", self.program.name),
            ("target", f"{self.target.name}: {self.target.summary}"),
            ("hidden units", self.network.config.hidden_size),
            ("parameters", f"{self.network.parameters:,}"),
            ("certified nodes", self.certificate.domain.nodes),
            ("misplaced attention, at most", f"{self.certificate.attention_error:.1e}"),
        ]
        return html_table(["", ""], rows, "compiled network")

    @property
    def attention_units(self) -> tuple[Unit, ...]:
        """The units whose sum is the logit, in the network's order."""
        return self.layout.attention

    def interpreted(self, batch: Batch) -> tuple[Execution, dict[str, Bool[np.ndarray, "batch"]]]:
        """The interpreter's run, and which graphs it shows to lie outside the certificate."""
        inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
        lengths = np.asarray(batch.lengths)
        meaning = interpret(self.program, inputs, steps=batch.steps)
        return meaning, self.certificate.outside(self.program, inputs, meaning, lengths)

    def outside(self, batch: Batch) -> dict[str, Bool[np.ndarray, "batch"]]:
        """Which graphs lie outside the certificate, by reason; costs a run of the interpreter."""
        return self.interpreted(batch)[1]

    def check_inputs(self, batch: Batch) -> None:
        """Refuse graphs outside the certificate: ``run(network, batch, within=compiled)``."""
        found = {why: np.flatnonzero(where) for why, where in self.outside(batch).items()}
        listed = [f"{why} (sample {', '.join(map(str, w[:5]))}{', …' if len(w) > 5 else ''})"
                  for why, w in found.items() if len(w)]  # fmt: skip
        if listed:
            count = len(set(np.concatenate(list(found.values())).tolist()))
            raise InvalidInput(
                f"{count} of {batch.size} graphs lie outside the certificate of "
                f"{self.program.name} in {self.target.name}: {'; '.join(listed)}. Compile for a "
                "larger domain, or run without the check"
            )


def compile_program(
    program: Program,
    target: Target,
    domain: Domain,
    *,
    hidden_size: int = 128,
    simplify_decoders: bool = False,
) -> Compiled:
    """Compile a program for a target on a domain: `mechgap.compile`, with everything chosen.

    Args:
        program: What the network is to run.
        target: The architecture; `TARGETS` has them by name.
        domain: For which graphs it is to be exact: how many nodes and steps, how large numbers,
            which dtype. `Domain.regular(program, nodes)` is that of CLRS's test graphs.
        hidden_size: Hidden units of the network.
        simplify_decoders: The paper's pointer decoder.

    Returns:
        The network, with a certificate that says where it is exact.

    Raises:
        InvalidInput: the program makes no sense, the target cannot run it, or the domain cannot be
            met; all reasons at once, or the quantity that fails.
    """
    if domain.dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise InvalidInput(
            "float64 needs JAX's 64-bit mode: call jax.config.update('jax_enable_x64', True) first"
        )
    if hidden_size < 1:
        raise InvalidInput(f"hidden_size must be at least 1; got {hidden_size}")
    refuse(program, list(problems(program)))
    refuse(program, compile_problems(program, target, simplify_decoders))
    reading = Reading(program, domain.largest_value, domain.largest_weight, domain.position_grid)
    state = registers(reading, domain.position_gap)
    norm = balance(reading, state, domain, hidden_size) if target.layer_norm else None
    m = margin(domain)
    leak = domain.nodes * float(np.exp(-m))
    off = errors(reading, state, domain, leak, norm)
    where = f"{program.name} cannot be certified for {target.name} in {domain.dtype}"
    _check_registers(where, domain, state, off)
    _check_masks(where, reading, off)
    itself = tells_itself(reading, target, hidden_size)
    decided = decide(reading, domain, m, off, state, itself)
    units = [part.unit for part in decided.units]
    layout = lay_out(reading, state, units, hidden_size, normed=norm is not None)
    config = target.config(hidden_size, domain.nodes, simplify_decoders)
    config = replace(config, nb_msg_passing_steps=len(program.phases))
    sharpness = config.simplified_sharpness if simplify_decoders else None
    decoders = {
        name: decoder(reading, domain, layout, off, m, component, sharpness)
        for name, component in {**program.hints, **program.output}.items()
    }
    network = write(program, config, layout, itself is Itself.BIAS, norm, decoders, domain.dtype)
    certificate = Certificate(
        domain=domain,
        weights=decided.weights,
        logit_error=decided.logit_error,
        attention_error=leak,
        flag_errors=dict(off.registers),
        total_each_step=of_totals(reading, domain, off),
        numbers={name: each for name, each in off.numbers.items() if name in program.components},
        races=decided.races,
    )
    _check_races(where, certificate)
    return Compiled(program, target, network, certificate, layout)


def _check_registers(where: str, domain: Domain, state: tuple[Register, ...], off: Errors) -> None:
    """Refuse flags and pointers that could be mistaken."""
    for register in state:
        match register:
            case Flag():
                decides = (*register.forms, *register.subtracted)
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


def _check_masks(where: str, reading: Reading, off: Errors) -> None:
    """Refuse masks that could let somebody pass who does not."""
    allowed = slack(off.normed) / (1 + slack(off.normed))
    for i, phase in enumerate(reading.program.phases):
        worst = off.form(reading.conjunction(flags_of(phase), i))
        if worst > allowed:
            raise InvalidInput(
                f"{where}: the mask of phase {i} can be off by {worst:.2g}; at most "
                f"{allowed:.2g} is allowed. Use float64 or another hidden_size"
            )


def _check_races(where: str, certificate: Certificate) -> None:
    """Refuse a domain whose competing values are closer than can be told apart."""
    domain = certificate.domain
    certified = certificate.value_gap(domain.steps)
    if domain.value_gap is not None and certified > domain.value_gap:
        raise InvalidInput(
            f"{where} with {domain.nodes} nodes and {domain.steps} steps: value_gap must be at "
            f"least {certified:.2g}; got {domain.value_gap:.2g}. Use float64, fewer nodes or fewer "
            "steps"
        )
