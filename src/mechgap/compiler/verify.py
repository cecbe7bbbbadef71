"""Is it exact? Interpreter = compiled network = CLRS's trace, at every hint of every step.

A miss counts where two of the three disagree. A graph lies outside the certificate where the
interpreter's own run shows it: values closer than certified, too many nodes or steps, too large
distances. Exact means: not one miss inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np

from mechgap.compiler.compile import Compiled
from mechgap.network.trace import Trace, run
from mechgap.programs.interpreter import Execution, execution_batch, interpret, pointed
from mechgap.programs.language import Component, GraphProgram, Kind
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import TEST_P, sample
from mechgap.tasks.specs import get_task


@dataclass(frozen=True)
class Disagreement:
    """One place where interpreter, network and CLRS's trace are not the same."""

    graph: int
    name: str
    step: int | None
    """None for the output."""
    node: int
    interpreter: float
    network: float
    clrs: float | None
    inside: bool


@dataclass(frozen=True)
class Verification:
    """What was compared, and how it went."""

    graphs: int
    nodes: int
    outputs: Mapping[str, float]
    """Share of nodes where all agree, by output."""
    hints: Mapping[str, float]
    """Share of nodes and steps where all agree, by hint."""
    attention: float
    """The largest difference between the network's attention and the interpreter's selection, on
    graphs inside the certificate."""
    outside_certificate: int
    """How many graphs lie outside."""
    missed_graphs_inside: int
    missed_graphs_outside: int
    first: Disagreement | None

    @property
    def exact(self) -> bool:
        """Whether nothing was missed on any graph inside the certificate."""
        return self.missed_graphs_inside == 0


def fresh_graphs(program: GraphProgram, nodes: int, graphs: int, seed: int) -> Batch:
    """Graphs with the distribution of CLRS's test sets, traced by CLRS or by the program."""
    clrs = sample(
        get_task(program.task),
        jax.random.key(seed),
        batch_size=graphs,
        nodes=nodes,
        p=TEST_P,
        random_pos=False,
    ).trim()
    return posed_batch(program, clrs)


def posed_batch(program: GraphProgram, clrs: Batch) -> Batch:
    """A batch of the program's CLRS task as a batch of the task that it poses."""
    if program.posed() == clrs.task:
        return clrs
    return execution_batch(program, {k: np.asarray(v) for k, v in clrs.inputs.items()})


def verify(compiled: Compiled, batch: Batch) -> Verification:
    """Compare interpreter, compiled network and trace on a batch of the program's task."""
    program = compiled.program
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    meaning = interpret(program, inputs, steps=batch.steps)
    trace = run(compiled.network, batch)
    lengths = np.asarray(batch.lengths)
    reasons = compiled.certificate.outside(program, inputs, meaning, lengths)
    inside = ~np.any(list(reasons.values()), axis=0)
    comparing = _Comparison(compiled, batch, meaning, trace, inside)
    hints = {name: comparing.hint(name, c) for name, c in program.hints.items()}
    outputs = {name: comparing.output(name, c) for name, c in program.output.items()}
    valid = np.asarray(trace.valid)
    off = np.abs(np.asarray(trace.attention).mean(2) - meaning.attention).max((-1, -2))
    missed = comparing.missed
    return Verification(
        graphs=batch.size,
        nodes=batch.nodes,
        outputs=outputs,
        hints=hints,
        attention=float(np.max(off * valid * inside, initial=0.0)),
        outside_certificate=int((~inside).sum()),
        missed_graphs_inside=int((missed & inside).sum()),
        missed_graphs_outside=int((missed & ~inside).sum()),
        first=comparing.first,
    )


class _Comparison:
    """Compares one named prediction after the other and remembers what was missed."""

    def __init__(
        self, compiled: Compiled, batch: Batch, meaning: Execution, trace: Trace, inside: np.ndarray
    ):
        self.compiled, self.batch, self.meaning, self.trace = compiled, batch, meaning, trace
        self.inside = inside
        self.missed = np.zeros(batch.size, bool)
        self.first: Disagreement | None = None
        self.positions = np.asarray(batch.inputs["pos"], float)

    def hint(self, name: str, component: Component) -> float:
        steps = self.batch.max_hints - 1
        lengths = np.asarray(self.batch.lengths)
        valid = (np.arange(1, steps + 1)[:, None] < lengths)[..., None]
        return self._agree(
            name,
            component,
            self.meaning.states[component.name][1 : steps + 1],
            np.asarray(self.trace.hints[name])[:steps],
            np.asarray(self.batch.hints[name])[1:],
            np.broadcast_to(valid, (steps, self.batch.size, self.batch.nodes)),
        )

    def output(self, name: str, component: Component) -> float:
        last = np.maximum(1, np.asarray(self.batch.lengths) - 1)
        states = self.meaning.states[component.name]
        return self._agree(
            name,
            component,
            states[last, np.arange(self.batch.size)][None],
            np.asarray(self.trace.outputs[name])[None],
            np.asarray(self.batch.outputs[name])[None],
            np.ones((1, self.batch.size, self.batch.nodes), bool),
        )

    def _agree(
        self,
        name: str,
        component: Component,
        meant: np.ndarray,
        predicted: np.ndarray,
        traced: np.ndarray,
        valid: np.ndarray,
    ) -> float:
        if component.kind is Kind.POINTER:
            meant, predicted = pointed(meant, self.positions), predicted.argmax(-1)
        elif component.kind is Kind.BOOL:
            predicted = (predicted > 0).astype(float)
        tolerance = 0.0
        if component.kind is Kind.FLOAT:  # CLRS's traces here are float32 themselves
            tolerance = self.compiled.certificate.errors(self.batch.steps)[component.name] + 1e-6
        wrong = valid & (
            (np.abs(meant - predicted) > tolerance) | (np.abs(meant - traced) > tolerance)
        )
        self.missed |= wrong.any((0, 2))
        places = np.argwhere(wrong)
        if len(places) and self.first is None:
            step, graph, node = places[0]
            self.first = Disagreement(
                graph=int(graph),
                name=name,
                step=int(step) + 1 if name in self.batch.hints else None,
                node=int(node),
                interpreter=float(meant[step, graph, node]),
                network=float(predicted[step, graph, node]),
                clrs=float(traced[step, graph, node]),
                inside=bool(self.inside[graph]),
            )
        return float(1.0 - wrong.sum() / max(1, valid.sum()))
