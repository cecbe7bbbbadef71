"""A network on large graphs, as lists of edges: outputs, whole graphs and attention.

The numbers are those of `internal`, from segments in place of matrices. There predicted pointers
are decisions before they are fed back, so that who attends to whom stays a list; on small graphs
both can be compared. Attention is compared where a network passes as many messages as a mechanism
has phases, and both look at neighbours; hints have no share here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mechgap.measures.internal import KINDS, ROWS, as_parts
from mechgap.measures.snapshot import MechanismSeen, SeenRun
from mechgap.network.lists import Pairs
from mechgap.network.network import Network
from mechgap.network.sparse import Attended, run_on_edges
from mechgap.programs.on_edges import RunOnEdges
from mechgap.programs.on_edges import run_on_edges as run_program
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.edge_lists import EdgeLists, roomy
from mechgap.tasks.scores import output_scores, right_graphs
from mechgap.tasks.specs import Type


class OfStep(eqx.Module):
    """Sums over the rows of one message-passing step, by class of rows."""

    count: Float[Array, "classes"]
    credit: Float[Array, "classes"]
    credit_strict: Float[Array, "classes"]
    other: Float[Array, "classes"]
    kinds: Float[Array, "classes kinds"]


class Beside(eqx.Module):
    """A mechanism's run on one graph, to compare each step's attention with."""

    senders: Int[Array, "time receivers"]
    updated: Bool[Array, "time receivers"]
    tied: Bool[Array, "time listed"]

    @staticmethod
    def of(run: RunOnEdges, room: int) -> "Beside":
        """Of a program whose nodes look at neighbours, on a list that is so long."""
        assert run.tied is not None
        tied = np.pad(run.tied[:, 0], [(0, 0), (0, room - run.tied.shape[-1])])
        return Beside(*(jnp.asarray(x) for x in (run.senders[:, 0], run.updated[:, 0], tied)))

    def __call__(self, attended: Attended, time: Int[Array, ""], graph: Int[Array, ""]) -> OfStep:
        """See `internal`: what is misplaced in every row, by class of rows and kind."""
        del graph
        pairs, attention = attended.pairs, jnp.mean(attended.attention, axis=0)
        chosen_of, updated = self.senders[time], self.updated[time]
        nodes = len(chosen_of)

        def total(values: Float[Array, "pairs"]) -> Float[Array, "receivers"]:
            return jax.ops.segment_sum(values, pairs.receivers, num_segments=nodes + 1)[:nodes]

        chosen = chosen_of.at[pairs.receivers].get(mode="fill", fill_value=-1) == pairs.senders
        tied = self.tied[time].at[pairs.listed].get(mode="fill", fill_value=False)
        acceptable = tied | chosen
        largest = jax.ops.segment_max(attention, pairs.receivers, num_segments=nodes + 1)
        largest = largest[pairs.receivers]
        is_largest = (attention == largest) & (pairs.receivers < nodes)
        shares = total(1.0 * is_largest)
        credit = total(1.0 * (is_largest & acceptable)) / shares
        strict = total(1.0 * (is_largest & chosen)) / shares
        on_chosen, on_acceptable = total(attention * chosen), total(attention * acceptable)
        other = total(attention) - on_acceptable
        soft = other * credit
        kinds = jnp.stack([on_acceptable - on_chosen, soft, other - soft], axis=-1)
        active = chosen_of != jnp.arange(nodes)
        classes = jnp.stack([updated, active & ~updated, ~active & ~updated])

        def among(values: Float[Array, "receivers *more"]) -> Float[Array, "classes *more"]:
            return jnp.einsum("cr,r...->c...", 1.0 * classes, values)

        return OfStep(among(jnp.ones(nodes)), among(credit), among(strict), among(other),
                      among(kinds))  # fmt: skip


class Together(eqx.Module):
    """Several mechanisms' runs, compared with one run of the network."""

    besides: tuple[Beside, ...]

    def __call__(
        self, attended: Attended, time: Int[Array, ""], graph: Int[Array, ""]
    ) -> tuple[OfStep, ...]:
        """What each of them shows."""
        return tuple(beside(attended, time, graph) for beside in self.besides)


@dataclass(frozen=True)
class LargeGraph:
    """One graph as a list, its answers, and the mechanisms' runs on it."""

    lists: EdgeLists
    answers: Batch
    """Without what is told of edges, and without a trace."""
    length: int
    besides: Mapping[str, Beside]

    @staticmethod
    def of(batch: Batch, programs: Sequence[Program]) -> "LargeGraph":
        """A batch of one graph, with the programs' runs whose nodes look at neighbours."""
        graph = batch.trim()
        lists = EdgeLists.of(graph.pad(1 + roomy(graph.steps)))
        edges, inputs = lists.graph(0)
        room = lists.receivers.shape[-1]
        besides = {
            program.name: Beside.of(run_program(program, edges, inputs, lists.steps), room)
            for program in programs
            if not program.sees_all
        }
        pos = {"pos": graph.inputs["pos"]}
        answers = Batch(graph.task, pos, {}, graph.outputs, graph.lengths)
        return LargeGraph(lists, answers, int(graph.lengths[0]), besides)

    def counting(self, program: Program, kept: OfStep) -> OfStep:
        """The steps that count of those of a run, by a program's phases."""
        live = max(1, self.length - 1) * program.selections
        return jax.tree.map(lambda of_all: np.asarray(of_all)[:live], kept)


def see_on_lists(
    network: Network, graphs: Sequence[LargeGraph], programs: Sequence[Program]
) -> SeenRun:
    """The numbers of a network on some graphs, one after the other.

    Args:
        network: Compiled or learned.
        graphs: Of its task.
        programs: The exact mechanisms to compare attention with, where that is possible.
    """
    compared = [
        program
        for program in programs
        if program.selections == network.config.nb_msg_passing_steps
        and not (program.sees_all or network.config.attends_to_all)
    ]
    scores, right = list[float](), list[float]()
    steps = list[tuple[OfStep, ...]]()
    for graph in graphs:
        keep = Together(tuple(graph.besides[program.name] for program in compared))
        ran = run_on_edges(network, graph.lists, keep)
        outputs = ran.outputs
        steps.append(
            tuple(
                graph.counting(program, jax.tree.map(lambda x: x[:, 0], kept))
                for program, kept in zip(compared, ran.kept, strict=True)
            )
        )
        answers = graph.answers
        raw = {
            f.name: jax.nn.one_hot(outputs[f.name], answers.nodes)
            if f.type is Type.POINTER
            else outputs[f.name]
            for f in answers.task.outputs
        }
        scores.append(float(output_scores(answers, raw)["score"]))
        right.append(float(right_graphs(answers, raw)[0]))
    return _seen(compared, steps, float(np.mean(scores)), float(np.mean(right)))


def uniform_on_lists(graphs: Sequence[LargeGraph], programs: Sequence[Program]) -> SeenRun:
    """The numbers of attention to all neighbours alike, beside programs that look at those."""
    compared = [program for program in programs if not program.sees_all]
    steps = list[tuple[OfStep, ...]]()
    for graph in graphs:
        alike = _alike(graph.lists)
        besides = (graph.besides[program.name] for program in compared)
        kept = [_at_every_step(beside, alike) for beside in besides]
        steps.append(tuple(map(graph.counting, compared, kept)))
    return _seen(compared, steps, None, None)


def _alike(lists: EdgeLists) -> Attended:
    receivers, senders = lists.receivers[0], lists.senders[0]
    places = jnp.arange(len(receivers), dtype=jnp.int32)
    degrees = jax.ops.segment_sum(jnp.ones(len(receivers)), receivers, lists.nodes + 1)
    return Attended((1 / degrees[receivers])[None], Pairs(receivers, senders, places))


@eqx.filter_jit
def _at_every_step(beside: Beside, attended: Attended) -> OfStep:
    times = jnp.arange(len(beside.senders))
    return jax.lax.map(lambda time: beside(attended, time, jnp.zeros((), int)), times)


def _seen(
    compared: Sequence[Program],
    graphs: Sequence[tuple[OfStep, ...]],
    accuracy: float | None,
    graph_accuracy: float | None,
) -> SeenRun:
    steps = {program.name: [each[k] for each in graphs] for k, program in enumerate(compared)}
    return SeenRun(
        accuracy=accuracy,
        graph_accuracy=graph_accuracy,
        hints=None,
        mechanisms={name: _headline(found) for name, found in steps.items()},
        by_phase={p.name: _by_phase(steps[p.name], p.selections) for p in compared},
    )


def _headline(graphs: Sequence[OfStep]) -> MechanismSeen:
    """The means over a graph's rows, then over graphs that have any."""
    updated = ROWS.index("updated")

    def of_updated(name: str) -> float:
        found = [
            getattr(g, name)[:, updated].sum() / g.count[:, updated].sum()
            for g in graphs
            if g.count[:, updated].sum()
        ]
        return float(np.mean(found)) if found else float("nan")

    parts = np.mean([g.kinds.sum(0) / g.count.sum() for g in graphs], axis=0)
    assert parts.shape == (len(ROWS), len(KINDS))
    return MechanismSeen(
        agreement=of_updated("credit"),
        agreement_strict=of_updated("credit_strict"),
        misplaced=of_updated("other"),
        tv=float(parts.sum()),
        parts=as_parts(parts),
    )


def _by_phase(graphs: Sequence[OfStep], phases: int) -> tuple[float, ...]:
    updated = ROWS.index("updated")

    def of(phase: int) -> float:
        rows = [(g.credit[phase::phases, updated].sum(), g.count[phase::phases, updated].sum())
                for g in graphs]  # fmt: skip
        shares = [credit / count for credit, count in rows if count]
        return float(np.mean(shares)) if shares else float("nan")

    return tuple(of(phase) for phase in range(phases))
