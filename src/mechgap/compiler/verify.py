"""Is it exact? Interpreter = compiled network = CLRS's trace, at every hint of every step.

A miss counts where two of the three disagree. A graph lies outside the certificate where the
interpreter's own run shows it: values closer than certified, too many nodes or steps, too large
distances. Exact means: not one miss inside, of all that the program claims; what it does not claim
is reported with its reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from mechgap.compiler.compile import Compiled
from mechgap.network.trace import run
from mechgap.programs.components import Component, Kind
from mechgap.programs.evaluation import pointed
from mechgap.programs.interpreter import execution_batch
from mechgap.programs.program import Program
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
class Unclaimed:
    """A hint that the program does not claim."""

    why: str
    share: float | None
    """Share of nodes and steps where network and CLRS agree; None if it is not predicted."""


@dataclass(frozen=True)
class Verification:
    """What was compared, and how it went."""

    graphs: int
    nodes: int
    outputs: Mapping[str, float]
    """Share of nodes where all agree, by output."""
    hints: Mapping[str, float]
    """Share of nodes and steps where all agree, by hint."""
    unclaimed: Mapping[str, Unclaimed]
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


def fresh_graphs(program: Program, nodes: int, graphs: int, seed: int) -> Batch:
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


def posed_batch(program: Program, clrs: Batch) -> Batch:
    """A batch of the program's CLRS task as a batch of the task that it poses."""
    if program.posed() == clrs.task:
        return clrs
    return execution_batch(program, {k: np.asarray(v) for k, v in clrs.inputs.items()})


_MOST_ATTENTION = 2**25
"""How many numbers one piece of a batch may attend with: every value of a run is kept."""


def verify(compiled: Compiled, batch: Batch) -> Verification:
    """Compare interpreter, compiled network and trace on a batch of the program's task."""
    program = compiled.program
    each = batch.steps * compiled.network.config.nb_msg_passing_steps * batch.nodes**2
    size = max(1, _MOST_ATTENTION // each)
    pieces = [
        _Comparison(compiled, batch[first : first + size], first)
        for first in range(0, batch.size, size)
    ]

    def share(name: str, compare: Callable[["_Comparison", str], Agreement]) -> float:
        agreements = [compare(piece, name) for piece in pieces]
        return 1.0 - sum(a.wrong for a in agreements) / max(1, sum(a.of for a in agreements))

    claimed = [name for name in program.hints if name not in program.unclaimed]
    outputs = {name: share(name, _Comparison.output) for name in program.output}
    hints = {name: share(name, _Comparison.hint) for name in claimed}
    unclaimed = {
        name: Unclaimed(why, share(name, _Comparison.guess) if name in program.hints else None)
        for name, why in program.unclaimed.items()
    }
    inside = np.concatenate([piece.inside for piece in pieces])
    missed = np.concatenate([piece.missed for piece in pieces])
    return Verification(
        graphs=batch.size,
        nodes=batch.nodes,
        outputs=outputs,
        hints=hints,
        unclaimed=unclaimed,
        attention=max(piece.attention for piece in pieces),
        outside_certificate=int((~inside).sum()),
        missed_graphs_inside=int((missed & inside).sum()),
        missed_graphs_outside=int((missed & ~inside).sum()),
        first=next((piece.first for piece in pieces if piece.first is not None), None),
    )


class Agreement(NamedTuple):
    """How many values disagree, of how many."""

    wrong: int
    of: int


class _Comparison:
    """Compares one named prediction after the other and remembers what was missed."""

    def __init__(self, compiled: Compiled, batch: Batch, first_graph: int):
        self.compiled, self.batch, self.first_graph = compiled, batch, first_graph
        self.meaning, reasons = compiled.interpreted(batch)
        self.inside = ~np.any(list(reasons.values()), axis=0)
        trace = run(compiled.network, batch)
        self.predicted = {name: np.asarray(raw) for name, raw in trace.hints.items()}
        self.outputs = {name: np.asarray(raw) for name, raw in trace.outputs.items()}
        off = attention_off(np.asarray(trace.attention).mean(2), self.meaning.senders)
        counted = np.asarray(trace.valid) * self.inside
        self.attention = float(np.max(off * counted, initial=0.0))
        self.missed = np.zeros(batch.size, bool)
        self.first: Disagreement | None = None
        self.positions = np.asarray(batch.inputs["pos"], float)

    def hint(self, name: str) -> Agreement:
        """How a hint agrees, in every step that counts."""
        component = self.compiled.program.hints[name]
        meant, predicted, traced, valid = self._of_hint(name)
        wrong = self._differ(component, meant, predicted) | self._differ(component, meant, traced)
        return self._note(name, meant, predicted, traced, valid & wrong, valid)

    def guess(self, name: str) -> Agreement:
        """How network and trace agree on a hint that is not claimed; a choice counts once."""
        component = self.compiled.program.hints[name]
        _, predicted, traced, valid = self._of_hint(name)
        wrong = valid & self._differ(component, predicted, traced)
        if component.kind is Kind.CHOICE:
            wrong, valid = wrong.any(-1), valid[..., 0]
        return Agreement(int(wrong.sum()), int(valid.sum()))

    def output(self, name: str) -> Agreement:
        """How an output agrees, at each sample's own end."""
        component = self.compiled.program.output[name]
        last = np.maximum(1, np.asarray(self.batch.lengths) - 1)
        states = self.meaning.states[component.name]
        meant = self._meant(component, states[last, np.arange(self.batch.size)][None])
        predicted = self._decided(component, self.outputs[name][None])
        traced = self._traced(component, np.asarray(self.batch.outputs[name])[None])
        valid = np.ones(meant.shape, bool)
        wrong = self._differ(component, meant, predicted) | self._differ(component, meant, traced)
        return self._note(name, meant, predicted, traced, wrong, valid)

    def _of_hint(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What was meant, predicted and traced, and what counts."""
        component = self.compiled.program.hints[name]
        steps = self.batch.max_hints - 1
        lengths = np.asarray(self.batch.lengths)
        valid = (np.arange(1, steps + 1)[:, None] < lengths)[..., None]
        return (
            self._meant(component, self.meaning.states[component.name][1 : steps + 1]),
            self._decided(component, self.predicted[name][:steps]),
            self._traced(component, np.asarray(self.batch.hints[name])[1:]),
            np.broadcast_to(valid, (steps, self.batch.size, self.batch.nodes)),
        )

    def _meant(self, component: Component, state: np.ndarray) -> np.ndarray:
        return pointed(state, self.positions) if component.kind is Kind.POINTER else state

    def _decided(self, component: Component, raw: np.ndarray) -> np.ndarray:
        """A raw prediction as a value of every node."""
        match component.kind:
            case Kind.POINTER | Kind.CLASS:
                return raw.argmax(-1)
            case Kind.CHOICE:
                return np.eye(raw.shape[-1])[raw.argmax(-1)]
            case Kind.BOOL:
                return (raw > 0).astype(float)
            case Kind.TOTAL:
                return self._at_every_node(raw)
        return raw

    def _traced(self, component: Component, values: np.ndarray) -> np.ndarray:
        if component.kind is Kind.TOTAL:
            return self._at_every_node(values)
        return values.argmax(-1) if component.kind is Kind.CLASS else values

    def _at_every_node(self, of_graph: np.ndarray) -> np.ndarray:
        return np.broadcast_to(of_graph[..., None], (*of_graph.shape, self.batch.nodes))

    def _differ(self, component: Component, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        tolerance = 0.0
        if component.kind in {Kind.FLOAT, Kind.TOTAL}:  # CLRS's traces here are float32 themselves
            certified = self.compiled.certificate.errors(self.batch.steps)
            tolerance = certified[component.name] + 1e-6
        return np.abs(one - other) > tolerance

    def _note(
        self,
        name: str,
        meant: np.ndarray,
        predicted: np.ndarray,
        traced: np.ndarray,
        wrong: np.ndarray,
        valid: np.ndarray,
    ) -> Agreement:
        """Remember which graphs were missed, and the first place."""
        self.missed |= wrong.any((0, 2))
        places = np.argwhere(wrong)
        if len(places) and self.first is None:
            step, graph, node = places[0]
            self.first = Disagreement(
                graph=self.first_graph + int(graph),
                name=name,
                step=int(step) + 1 if name in self.batch.hints else None,
                node=int(node),
                interpreter=float(meant[step, graph, node]),
                network=float(predicted[step, graph, node]),
                clrs=float(traced[step, graph, node]),
                inside=bool(self.inside[graph]),
            )
        return Agreement(int(wrong.sum()), int(valid.sum()))


def attention_off(
    attention: Float[np.ndarray, "time batch receivers senders"],
    senders: Int[np.ndarray, "time batch receivers"],
) -> Float[np.ndarray, "time batch"]:
    """The largest difference from attention to these senders alone. Overwrites the attention."""
    there = senders[..., None]
    missing = np.abs(1 - np.take_along_axis(attention, there, axis=-1))
    np.put_along_axis(attention, there, missing, axis=-1)
    return attention.max((-1, -2))
