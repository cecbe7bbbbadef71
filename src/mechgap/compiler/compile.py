"""Compile a graph program into a network: the passes, in order.

    validate    every reason why it cannot be done
    facts       what the mask says; which flags stay; when a node keeps its state
    updates     the state as hidden units
    sharpness   the logit as attention units; its constants, from the domain
    layout      which unit of the network is what
    write       encoders, processor and decoders

The result is an ordinary `Network`: it runs with its own predicted hints fed back, and predicts
every hint and output. These passes are for programs in the short form whose target has a
pre-attention bias, or whose form the general passes (`phased`) refuse; all others go through those.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool

from mechgap.compiler.ballast import Ballast, ballast
from mechgap.compiler.certificate import Certificate
from mechgap.compiler.domain import Domain
from mechgap.compiler.gadgets import Unit
from mechgap.compiler.layout import Layout
from mechgap.compiler.phased.build import build
from mechgap.compiler.phased.certificate import PhasedCertificate
from mechgap.compiler.phased.validate import phase_problems
from mechgap.compiler.sharpness import sharpen
from mechgap.compiler.target import Target
from mechgap.compiler.updates import HiddenUnit, hidden_units
from mechgap.compiler.validate import check_target
from mechgap.compiler.write import write
from mechgap.display import html_table, png, showable
from mechgap.errors import InvalidInput
from mechgap.network.network import Network
from mechgap.programs.expressions import Name, Side
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
    certificate: Certificate | PhasedCertificate
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
            ("attention elsewhere, at most", f"{self.certificate.attention_error:.1e}"),
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
    """Compile a program for a target on a domain."""
    if domain.dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise InvalidInput(
            "float64 needs JAX's 64-bit mode: call jax.config.update('jax_enable_x64', True) first"
        )
    if hidden_size < 1:
        raise InvalidInput(f"hidden_size must be at least 1; got {hidden_size}")
    refuse(program, list(problems(program)))
    in_phases = phase_problems(program, target, simplify_decoders)
    # A bias on the diagonal tells what oneself is without any unit: only the short form uses it.
    short_form = program.is_short and (in_phases or target.pre_attention_bias)
    if not short_form:
        refuse(program, in_phases)
        network, layout, certificate = build(program, target, domain, hidden_size)
        return Compiled(program, target, network, certificate, layout)
    mask = check_target(program, target, domain)
    state = hidden_units(program, mask, domain)
    norm = _ballast(program, domain, state, hidden_size) if target.layer_norm else None
    diagonal, units, certificate = sharpen(program, target, domain, mask, state, norm)
    layout = Layout.of(program, state, units, hidden_size, normed=norm is not None)
    config = target.config(hidden_size, domain.nodes, simplify_decoders)
    key = jax.eval_shape(lambda: jax.random.key(0))
    blank = eqx.filter_eval_shape(Network.initial, program.posed(), key, config)
    network = write(program, domain, layout, diagonal, norm, blank)
    return Compiled(program, target, network, certificate, layout)


def _ballast(
    program: Program, domain: Domain, state: Sequence[HiddenUnit], hidden_size: int
) -> Ballast:
    largest = {
        unit.component: domain.bounds(program, Name(Side.SELF, unit.component))[1] for unit in state
    }
    # Of a component's two units at most one is above zero.
    return ballast(sum(largest.values()), max(largest.values()), hidden_size, domain.rounding)
