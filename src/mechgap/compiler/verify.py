"""Is it exact? Interpreter = compiled network = CLRS's trace, at every hint of every step.

A miss counts where two of the three disagree. A graph lies outside the certificate where the
interpreter's own run shows it: values closer than certified, too many nodes or steps, too large
distances. Exact means: not one miss inside, of all that the program claims; what it does not claim
is reported with its reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from mechgap.compiler.compile import Compiled
from mechgap.compiler.running import BothRan, run_large, run_small
from mechgap.network.sparse import prefers_lists
from mechgap.programs.components import Component, Kind
from mechgap.programs.interpreter import execution_batch
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.kinds import ER
from mechgap.tasks.memory import check_drawing
from mechgap.tasks.sampling import TEST_P, sample
from mechgap.tasks.specs import get_task
from mechgap.typed import plain


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


class Verdict(Enum):
    """What a comparison of interpreter, network and trace shows."""

    EXACT = "exact"
    NOTHING_INSIDE = "nothing inside the certificate"
    NETWORK_IS_NOT_PROGRAM = "the network is not the program"
    PROGRAM_IS_NOT_TASK = "the program is not the task's algorithm"


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
    whole: float
    """Share of graphs where all agree on every output of every node."""
    hints: Mapping[str, float]
    """Share of nodes and steps where all agree, by hint."""
    unclaimed: Mapping[str, Unclaimed]
    attention: float
    """The largest difference between the network's attention and the interpreter's selection, on
    graphs inside the certificate."""
    inside_certificate: int
    """How many graphs lie inside: what is promised is about these."""
    outside_certificate: int
    outside_reasons: Mapping[str, int]
    """Why graphs lie outside, and how many for each reason."""
    missed_graphs_inside: int
    """On how many graphs the network is not the program, of those inside."""
    missed_graphs_outside: int
    unlike_trace_inside: int
    """On how many graphs the program is not the task's algorithm, of those inside."""
    first: Disagreement | None

    ALSO_TOLD: ClassVar = ("exact", "verdict", "sentence")

    def to_json(self) -> dict[str, Any]:
        """As plain values, with the verdict."""
        return plain(self)

    @property
    def verdict(self) -> Verdict:
        """What the comparison shows."""
        if self.missed_graphs_inside:
            return Verdict.NETWORK_IS_NOT_PROGRAM
        if self.unlike_trace_inside:
            return Verdict.PROGRAM_IS_NOT_TASK
        return Verdict.EXACT if self.inside_certificate else Verdict.NOTHING_INSIDE

    @property
    def exact(self) -> bool:
        """Whether all three agree on every graph inside the certificate, and some are inside."""
        return self.verdict is Verdict.EXACT

    @property
    def sentence(self) -> str:
        """The verdict, with how many graphs it is about."""
        of = f"{self.graphs} graphs of {self.nodes} nodes"
        inside, outside = self.inside_certificate, self.outside_certificate
        if not outside:
            about = f"{of}, all inside the certificate"
        else:
            about = (
                f"the {inside} of {of} that lie inside the certificate; of {outside} outside, "
                f"{self.missed_graphs_outside} are missed"
            )
        match self.verdict:
            case Verdict.EXACT:
                return f"exact on {about}"
            case Verdict.NOTHING_INSIDE:
                why = "; ".join(f"{why} ({n})" for why, n in self.outside_reasons.items())
                return f"nothing is promised here: all {of} lie outside the certificate: {why}"
            case Verdict.NETWORK_IS_NOT_PROGRAM:
                return f"NOT exact: the network misses {self.missed_graphs_inside} of {about}"
            case Verdict.PROGRAM_IS_NOT_TASK:
                return (
                    "the network is the program, but the program is not the task's algorithm: "
                    f"they differ on {self.unlike_trace_inside} of {about}"
                )


def fresh_graphs(
    program: Program,
    nodes: int,
    graphs: int,
    seed: int,
    kind: str = ER,
    position_grid: float | None = None,
) -> Batch:
    """Graphs with the distribution of CLRS's test sets, traced by CLRS or by the program.

    Args:
        program: Of the task.
        nodes: Of each graph.
        graphs: How many.
        seed: Same seed, same graphs.
        kind: Other kinds of graphs; see `tasks.kinds`.
        position_grid: What positions are multiples of, if they are not i / nodes.

    Raises:
        InvalidInput: there is no such kind, or so many such graphs do not fit.
    """
    task = get_task(program.task)
    check_drawing(task, graphs, nodes, "Take fewer (--graphs) or smaller ones (--nodes)")
    clrs = sample(
        task,
        jax.random.key(seed),
        batch_size=graphs,
        nodes=nodes,
        p=TEST_P,
        random_pos=False,
        graphs=kind,
    ).trim()
    return posed_batch(program, clrs.on_grid(position_grid))


def posed_batch(program: Program, clrs: Batch) -> Batch:
    """A batch of the program's CLRS task as a batch of the task that it poses."""
    if posed(program) == clrs.task:
        return clrs
    return execution_batch(program, {k: np.asarray(v) for k, v in clrs.inputs.items()})


_MOST_ATTENTION = 2**25
"""How many numbers one piece of a batch may attend with: every value of a run is kept."""


def verify(
    compiled: Compiled,
    batch: Batch | None = None,
    *,
    graphs: int = 256,
    seed: int = 0,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Verification:
    """Compare interpreter, compiled network and trace.

    Graphs of more than `MATRICES_UP_TO` nodes run as lists of edges (see `network.sparse`), and so
    one after the other.

    Args:
        compiled: The network, with its program and certificate.
        batch: Graphs of the program's task; without, so many new `graphs` by this `seed`, with as
            many nodes as the network was compiled for.
        graphs: How many new graphs.
        seed: Same seed, same graphs.
        on_progress: Is told how it goes.

    Returns:
        How often each output and hint agrees, how many graphs lie inside the certificate, and the
        first disagreement. `exact` is true if all agree on every graph inside, and some are inside.

    Raises:
        InvalidInput: the graphs are of another task.
    """
    program = compiled.program
    if batch is None:
        domain = compiled.certificate.domain
        batch = fresh_graphs(
            program, domain.nodes, graphs, seed, position_grid=domain.position_grid
        )
    on_lists = prefers_lists(compiled.network, batch.nodes)
    each = batch.steps * compiled.network.config.nb_msg_passing_steps * batch.nodes**2
    size = 1 if on_lists else max(1, _MOST_ATTENTION // each)
    pieces = []
    for first in range(0, batch.size, size):
        piece = batch[first : first + size]
        if on_lists:
            on_progress(f"graph {first + 1} of {batch.size}", first, batch.size)
        ran = run_large(compiled, piece) if on_lists else run_small(compiled, piece)
        pieces.append(_Comparison(compiled, piece, first, ran))

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
    inside, missed, unlike, whole = (
        np.concatenate([getattr(piece, name) for piece in pieces])
        for name in ("inside", "missed", "unlike", "whole")
    )
    reasons = {
        why: sum(int(piece.reasons[why].sum()) for piece in pieces) for why in pieces[0].reasons
    }
    return Verification(
        graphs=batch.size,
        nodes=batch.nodes,
        outputs=outputs,
        whole=float(whole.mean()),
        hints=hints,
        unclaimed=unclaimed,
        attention=max(piece.attention for piece in pieces),
        inside_certificate=int(inside.sum()),
        outside_certificate=int((~inside).sum()),
        outside_reasons={why: count for why, count in reasons.items() if count},
        missed_graphs_inside=int((missed & inside).sum()),
        missed_graphs_outside=int((missed & ~inside).sum()),
        unlike_trace_inside=int((unlike & inside).sum()),
        first=next((piece.first for piece in pieces if piece.first is not None), None),
    )


class Agreement(NamedTuple):
    """How many values disagree, of how many."""

    wrong: int
    of: int


class _Comparison:
    """Compares one named prediction after the other and remembers what was missed."""

    def __init__(self, compiled: Compiled, batch: Batch, first_graph: int, ran: BothRan):
        self.compiled, self.batch, self.first_graph, self.ran = compiled, batch, first_graph, ran
        self.reasons = ran.reasons
        self.inside = ran.inside
        self.attention = ran.attention
        self.missed = np.zeros(batch.size, bool)
        self.unlike = np.zeros(batch.size, bool)
        self.whole = np.ones(batch.size, bool)
        self.first: Disagreement | None = None

    def hint(self, name: str) -> Agreement:
        """How a hint agrees, in every step that counts."""
        component = self.compiled.program.hints[name]
        return self._note(name, component, *self._of_hint(name))

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
        states = self.ran.states[component.name]
        meant = self._meant(component, states[last, np.arange(self.batch.size)][None])
        predicted = self.ran.outputs[name][None]
        traced = self._traced(component, np.asarray(self.batch.outputs[name])[None])
        differ = [self._differ(component, meant, other) for other in (predicted, traced)]
        self.whole &= ~np.any(differ, axis=(0, 1, 3))
        valid = np.ones(meant.shape, bool)
        return self._note(name, component, meant, predicted, traced, valid)

    def _of_hint(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What was meant, predicted and traced, and what counts."""
        component = self.compiled.program.hints[name]
        steps = self.batch.max_hints - 1
        lengths = np.asarray(self.batch.lengths)
        valid = (np.arange(1, steps + 1)[:, None] < lengths)[..., None]
        return (
            self._meant(component, self.ran.states[component.name][1 : steps + 1]),
            self.ran.hints[name][:steps],
            self._traced(component, np.asarray(self.batch.hints[name])[1:]),
            np.broadcast_to(valid, (steps, self.batch.size, self.batch.nodes)),
        )

    def _meant(self, component: Component, state: np.ndarray) -> np.ndarray:
        return self.ran.nodes_at(state) if component.kind is Kind.POINTER else state

    def _traced(self, component: Component, values: np.ndarray) -> np.ndarray:
        if component.kind is Kind.TOTAL:
            return np.broadcast_to(values[..., None], (*values.shape, self.batch.nodes))
        return values.argmax(-1) if component.kind is Kind.CLASS else values

    def _differ(self, component: Component, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        tolerance = 0.0
        if component.kind in {Kind.FLOAT, Kind.TOTAL}:  # CLRS's traces here are float32 themselves
            certified = self.compiled.certificate.errors(self.batch.steps)
            tolerance = certified[component.name] + 1e-6
        return np.abs(one - other) > tolerance

    def _note(
        self,
        name: str,
        component: Component,
        meant: np.ndarray,
        predicted: np.ndarray,
        traced: np.ndarray,
        valid: np.ndarray,
    ) -> Agreement:
        """Remember which graphs were missed, by whom, and the first place."""
        missed = valid & self._differ(component, meant, predicted)
        unlike = valid & self._differ(component, meant, traced)
        wrong = missed | unlike
        self.missed |= missed.any((0, 2))
        self.unlike |= unlike.any((0, 2))
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
