"""What measures are taken on: graphs, and every exact mechanism's attention on them.

Three sets. `test` is what accuracy is counted on: the official graphs of 64 nodes, which a search
crosses in two or three steps. `deep` are a thousand sparse graphs of 32 nodes with long traces,
where accuracy does not come to its ceiling. `long` are a few such graphs of 16 nodes, small enough
to be looked at.

Rows are counted by one rule everywhere: the mean over a graph's rows, then over graphs that have
any.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from mechgap.errors import InvalidInput
from mechgap.programs.interpreter import Foils, interpret
from mechgap.programs.library import mechanisms
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import Task, get_task

LONG_NODES, LONG_GRAPHS = 16, 32
DEEP_NODES, DEEP_GRAPHS = 32, 1000
_SEARCHED_TIMES, _SEARCHED_AT_LEAST = 4, 512
"""Of how many times as many graphs the longest traces are taken, and of how many at least."""
_DEGREES = (1.5, 2.0, 2.5, 3.0)
"""Mean numbers of neighbours for which a search of a random graph goes deep."""


class GroundTruth(eqx.Module):
    """Whom an exact mechanism attends to on some graphs: the interpreter's selection α*.

    Time is hint steps times the mechanism's phases.
    """

    program: Program = eqx.field(static=True)
    senders: Int[Array, "time batch receivers"]
    acceptable: Bool[Array, "time batch receivers senders"]
    """Whom another correct run could have chosen: ties broken otherwise."""
    updated: Bool[Array, "time batch receivers"]
    """Whose state changes by whom it attends to: the rows that the algorithm is about."""
    foils: Foils
    """For every part of its selection, a sender that is wrong in that part alone."""

    @property
    def mechanism(self) -> str:
        """Its program's name."""
        return self.program.name

    @property
    def phases(self) -> int:
        """How often it selects in a hint step."""
        return self.program.selections

    @property
    def active(self) -> Bool[Array, "time batch receivers"]:
        """Where it attends to somebody else."""
        return self.senders != jnp.arange(self.senders.shape[-1])

    @property
    def attention(self):
        """α*, shaped as a trace's attention: ``[time, batch, 1, receivers, senders]``."""
        return jax.nn.one_hot(self.senders, self.senders.shape[-1])[:, :, None]


class Data(eqx.Module):
    """Graphs with the ground truths of every exact mechanism."""

    name: str = eqx.field(static=True)
    batch: Batch
    truths: tuple[GroundTruth, ...]

    @property
    def support(self) -> Bool[Array, "batch receivers senders"]:
        """Who is whose neighbour in the graph that was given, or oneself."""
        adjacent = self.batch.inputs["adj"] > 0
        return adjacent | adjacent.mT | jnp.eye(self.batch.nodes, dtype=bool)

    @property
    def valid(self) -> Bool[Array, "time batch"]:
        """Which steps of which sample count."""
        return jnp.arange(self.batch.steps)[:, None] < jnp.maximum(1, self.batch.lengths - 1)


def ground_truth(program: Program, batch: Batch) -> GroundTruth:
    """A program's selection on the graphs of a batch, for as many steps as a network takes."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    run = interpret(program, inputs, batch.steps)
    arrays = jax.tree.map(jnp.asarray, (run.senders, run.acceptable, run.updated, run.foils))
    return GroundTruth(program, *arrays)


def make_data(name: str, batch: Batch, programs: Sequence[Program] | None = None) -> Data:
    """A batch with its ground truths; there are none where no exact mechanism is known."""
    programs = mechanisms(batch.task) if programs is None else programs
    return Data(name, batch, tuple(ground_truth(program, batch) for program in programs))


def long_traces(task: Task | str, nodes: int = LONG_NODES, graphs: int = LONG_GRAPHS) -> Batch:
    """Of many sparse graphs, those with the longest traces; regular positions."""
    if nodes < 1 or graphs < 1:
        raise InvalidInput(f"nodes and graphs must be at least 1; got {nodes} and {graphs}")
    task = get_task(task)
    many = sample(
        task,
        jax.random.key(0x10E6),
        batch_size=max(_SEARCHED_AT_LEAST, _SEARCHED_TIMES * graphs),
        nodes=nodes,
        p=[_edge_parameter(task, nodes, degree) for degree in _DEGREES],
        random_pos=False,
    )
    longest = np.argsort(-np.asarray(many.lengths), kind="stable")[:graphs]
    return many[jnp.asarray(longest)].trim()


def deep_graphs(task: Task | str, nodes: int = DEEP_NODES, graphs: int | None = None) -> Batch:
    """The `deep` set: if nobody says how many, as many as make a percentage with two digits."""
    return long_traces(task, nodes, DEEP_GRAPHS if graphs is None else graphs)


def _edge_parameter(task: Task, nodes: int, degree: float) -> float:
    """CLRS's p for a mean degree: undirected graphs have an edge with probability p²."""
    probability = min(1.0, degree / max(1, nodes - 1))
    return probability if task.directed else probability**0.5
