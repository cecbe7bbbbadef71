"""The smallest graph on which a network is wrong: by nodes, then edges, then lexicographically.

First *all* graphs up to a size are tried, in that order (`tasks.enumerated` says what all means),
so that "none" is a statement with a number in it. Then larger ones: new random graphs, and from the
one that was answered most narrowly others with one edge more or less, while the margin falls. What
is found there loses edges for as long as it stays wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mechgap.measures.data import make_data
from mechgap.measures.examples import example_graphs, example_run
from mechgap.measures.foiled import answer_of, true_answer
from mechgap.network.network import Network
from mechgap.network.trace import Trace, outputs, run
from mechgap.programs.interpreter import interpret
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.enumerated import check_enumerable, every_graph
from mechgap.tasks.sampling import make_batch, sample
from mechgap.tasks.scores import SCALAR_MARGIN, right_graphs
from mechgap.tasks.specs import Feature, Location, Task, Type
from mechgap.typed import Arrays

BEYOND = (8, 16, 32, 64)
"""Sizes that are searched if all smaller graphs are answered rightly."""
KINDS = "er+er-sparse"
RANDOM = 256
"""New graphs of each size."""
NEIGHBOURS, CLIMBS = 64, 16
"""Graphs with another edge that are tried in one climbing step, and so many steps."""
MOST_DRAWN = 16
"""Graphs of more nodes are told in words alone."""


@dataclass(frozen=True)
class WrongAnswer:
    """An output of a node that is not what it should be."""

    output: str
    node: int
    answered: float
    right: float


@dataclass(frozen=True)
class WentWrong:
    """Where a run was first wrong."""

    step: int
    hint: str
    node: int
    attended: tuple[int, ...]
    """Whom the node attended to most in that step, by message-passing step."""
    exact: tuple[int, ...]
    """Whom it attends to by the exact mechanism, by phase; nothing where none is known."""


@dataclass(frozen=True)
class Counterexample:
    """A graph on which a network is wrong."""

    nodes: int
    edges: tuple[tuple[int, int, float], ...]
    """From, to, weight; of undirected graphs each edge once."""
    source: int | None
    wrong: tuple[WrongAnswer, ...]
    went_wrong: WentWrong | None
    """None if every hint is right, or none is predicted."""
    graph: Arrays = field(default_factory=dict, compare=False)
    """The graph and the exact run over it, as in `measures.examples`; none of larger graphs."""
    run: Arrays = field(default_factory=dict, compare=False)
    """What the network did on it."""

    ALSO_TOLD: ClassVar = ("sentence",)

    @property
    def sentence(self) -> str:
        """The graph and what is wrong about it, in a line."""
        edges = ", ".join(f"{a}-{b}" + ("" if w == 1 else f" ({w:g})") for a, b, w in self.edges)
        start = "" if self.source is None else f" from {self.source}"
        asked = f"{self.nodes} nodes, edges {edges or 'none'}{start}"
        if not self.wrong:  # alone it is rounded otherwise than among others
            return f"{asked}: a tie that rounding decides"
        first = self.wrong[0]
        more = f" and {len(self.wrong) - 1} more" if len(self.wrong) > 1 else ""
        return (
            f"{asked}: {first.output}({first.node}) is "
            f"answered {first.answered:g} and is {first.right:g}{more}"
        )


@dataclass(frozen=True)
class Searched:
    """What was tried with one network, and the smallest graph on which it was wrong."""

    all_of: Mapping[int, int]
    """Of which sizes all graphs were tried, with their number, up to the first wrong one."""
    tried: Mapping[int, int]
    """How many of larger sizes were tried."""
    found: Counterexample | None

    ALSO_TOLD: ClassVar = ("sentence",)

    @property
    def sentence(self) -> str:
        """What was found, and among how many."""
        every = sum(self.all_of.values())
        if self.found is not None and not self.tried:
            return f"{self.found.sentence} (none among the {every - 1:,} graphs before it)"
        up_to = f"none among all {every:,} graphs up to {max(self.all_of, default=0)} nodes"
        if not self.tried:
            return up_to
        more = sum(self.tried.values())
        if self.found is not None:
            return f"{up_to}; among {more:,} larger ones: {self.found.sentence}"
        return f"{up_to}, nor among {more:,} larger ones up to {max(self.tried, default=0)} nodes"


def smallest_wrong(
    network: Network,
    task: Task,
    max_nodes: int,
    mechanisms: Sequence[Program] = (),
    beyond: Sequence[int] = BEYOND,
) -> Searched:
    """Search for the smallest graph on which a network's output is wrong.

    Args:
        network: Learned, compiled or imported.
        task: With an algorithm that traces it.
        max_nodes: Up to this size all graphs are tried.
        mechanisms: To show beside the network's run; the first says whom a node should have
            attended to.
        beyond: Sizes that are searched by chance and by climbing if none of these is wrong.

    Raises:
        InvalidInput: there are too many graphs of that size.
    """
    check_enumerable(task, max_nodes)
    all_of: dict[int, int] = {}
    for nodes in range(1, max_nodes + 1):
        all_of[nodes] = 0
        for batch in every_graph(task, nodes):
            wrong = np.flatnonzero(_narrowness(network, batch)[1])
            if wrong.size:
                all_of[nodes] += int(wrong[0]) + 1
                return Searched(all_of, {}, _told(network, batch, int(wrong[0]), mechanisms))
            all_of[nodes] += batch.size
    tried: dict[int, int] = {}
    for nodes in (n for n in beyond if n > max_nodes):
        tried[nodes] = 0
        for batch in _larger(network, task, nodes):
            tried[nodes] += batch.size
            wrong = np.flatnonzero(_narrowness(network, batch)[1])
            if wrong.size:
                edges = (np.asarray(batch.inputs["A"])[wrong] != 0).sum((1, 2))
                fewest = batch[jnp.asarray(wrong[[edges.argmin()]])]
                found = _told(network, _without_edges(network, fewest), 0, mechanisms)
                return Searched(all_of, tried, found)
    return Searched(all_of, tried, None)


def _larger(network: Network, task: Task, nodes: int) -> Iterator[Batch]:
    """Random graphs, then those next to the most narrowly answered."""
    key = jax.random.key(0xC0)
    batch = sample(task, key, batch_size=RANDOM, nodes=nodes, random_pos=False, graphs=KINDS)
    yield batch
    best = batch[_narrowest(network, batch)]
    rng = np.random.default_rng(nodes)
    for _ in range(CLIMBS):
        batch = _with_another_edge(best, rng)
        yield batch
        nearer = batch[_narrowest(network, batch)]
        if _narrowness(network, nearer)[0][0] >= _narrowness(network, best)[0][0]:
            return
        best = nearer


def _without_edges(network: Network, one: Batch) -> Batch:
    """A graph that is answered wrongly, with fewer and fewer edges."""
    undirected = not (one.task.directed or one.task.acyclic)
    while True:
        A = np.asarray(one.inputs["A"][0])
        edges = np.argwhere(np.triu(A) != 0 if undirected else A != 0)
        if not len(edges):
            return one
        # Edges come again until they are a multiple: graphs of many sizes share a program.
        places = np.resize(edges, (-(-len(edges) // NEIGHBOURS) * NEIGHBOURS, 2))
        each = np.repeat(A[None], len(places), axis=0)
        each[np.arange(len(places)), places[:, 0], places[:, 1]] = 0
        if undirected:
            each[np.arange(len(places)), places[:, 1], places[:, 0]] = 0
        fewer = _like(one, each)
        wrong = np.flatnonzero(_narrowness(network, fewer)[1])
        if not wrong.size:
            return one
        one = fewer[jnp.asarray(wrong[:1])]


def _like(one: Batch, A: Float[np.ndarray, "graphs nodes nodes"]) -> Batch:
    """Other edges between the nodes of a batch of one, from the same source."""
    source = jnp.argmax(one.inputs["s"], -1) if one.task.has_source else jnp.zeros(1, int)
    return make_batch(
        one.task,
        jnp.asarray(A),
        jnp.broadcast_to(source, len(A)).astype(jnp.int32),
        jnp.broadcast_to(one.inputs["pos"], (len(A), one.nodes)),
    )


def _narrowest(network: Network, batch: Batch) -> Array:
    return jnp.asarray([int(_narrowness(network, batch)[0].argmin())])


def _with_another_edge(batch: Batch, rng: np.random.Generator) -> Batch:
    """The graph of a batch of one so many times, each with one edge more or less."""
    task, nodes = batch.task, batch.nodes
    A = np.repeat(np.asarray(batch.inputs["A"]), NEIGHBOURS, axis=0)
    one, step = rng.integers(0, nodes, NEIGHBOURS), rng.integers(1, nodes, NEIGHBOURS)
    a, b = one, (one + step) % nodes
    if task.acyclic:  # an edge in the order of the others keeps it so
        place = _order(A[0])
        a, b = np.where(place[a] < place[b], a, b), np.where(place[a] < place[b], b, a)
    each = np.arange(NEIGHBOURS)
    weight = rng.choice(A[A != 0], NEIGHBOURS) if (A != 0).any() else np.ones(NEIGHBOURS)
    A[each, a, b] = np.where(A[each, a, b] != 0, 0, weight)
    if not (task.directed or task.acyclic):
        A[each, b, a] = A[each, a, b]
    return _like(batch, A)


def _order(A: Float[np.ndarray, "nodes nodes"]) -> np.ndarray:
    """The place of every node in an order along the edges of a graph without cycles."""
    place = np.zeros(len(A), int)
    for _ in range(len(A)):
        place = np.maximum(place, np.where(A != 0, place[:, None] + 1, 0).max(0))
    return np.argsort(np.argsort(place, kind="stable"))


def _narrowness(network: Network, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """By graph: the smallest margin of an answer, and whether any is wrong."""
    margin, right = _margins(network, batch)
    return np.asarray(margin), ~np.asarray(right)


@eqx.filter_jit
def _margins(network: Network, batch: Batch) -> tuple[Array, Array]:
    said = outputs(network, batch)
    margins = [_margin(f, batch.outputs[f.name], said[f.name]) for f in batch.task.outputs]
    flat = [m.reshape(batch.size, -1) for m in margins]
    return jnp.min(jnp.concatenate(flat, axis=1), axis=1), right_graphs(batch, said)


def _margin(feature: Feature, truth: Array, raw: Array) -> Array:
    """By how much the right answer leads."""
    if feature.type is Type.SCALAR:
        return -jnp.abs(raw - truth)
    if feature.type is Type.MASK:
        return jnp.where(truth > 0.5, raw, -raw)
    is_right = truth if feature.type is not Type.POINTER else jax.nn.one_hot(truth, raw.shape[-1])
    right = jnp.max(jnp.where(is_right > 0.5, raw, -jnp.inf), axis=-1)
    return right - jnp.max(jnp.where(is_right > 0.5, -jnp.inf, raw), axis=-1)


def _told(network: Network, batch: Batch, at: int, mechanisms: Sequence[Program]) -> Counterexample:
    one = batch[jnp.asarray([at])].trim()
    task, trace = batch.task, run(network, one)
    A = np.asarray(one.inputs["A"][0])
    shown = A if task.directed or task.acyclic else np.triu(A)
    edges = tuple((int(a), int(b), float(A[a, b])) for a, b in np.argwhere(shown != 0))
    wrong = []
    for feature in task.outputs:
        said = np.asarray(answer_of(feature, trace.outputs[feature.name]))[0]
        true = np.asarray(true_answer(feature, one.outputs[feature.name]))[0]
        wrong += [
            WrongAnswer(feature.name, int(i), float(said[i]), float(true[i]))
            for i in np.flatnonzero(np.abs(said - true) > _tolerance(feature))
        ]
    source = int(jnp.argmax(one.inputs["s"][0])) if task.has_source else None
    went_wrong = _went_wrong(one, trace, next(iter(mechanisms), None))
    told = Counterexample(one.nodes, edges, source, tuple(wrong), went_wrong)
    if one.nodes > MOST_DRAWN:
        return told
    data = make_data("counterexample", one, mechanisms)
    return replace(told, graph=example_graphs(data), run=example_run(data, trace))


def _went_wrong(one: Batch, trace: Trace, mechanism: Program | None) -> WentWrong | None:
    """The first wrong hint of a run, of those of the nodes that are no numbers and are claimed."""
    unclaimed = mechanism.unclaimed if mechanism is not None else {}
    steps = int(one.lengths[0]) - 1
    first: tuple[int, str, int] | None = None
    for feature in one.task.hints:
        told = feature.location is Location.NODE and feature.type is not Type.SCALAR
        if not told or feature.name in unclaimed or feature.name not in trace.hints:
            continue
        said = np.asarray(answer_of(feature, trace.hints[feature.name]))[:steps, 0]
        true = np.asarray(true_answer(feature, one.hints[feature.name]))[1 : steps + 1, 0]
        places = np.argwhere(said != true)
        if places.size and (first is None or places[0][0] < first[0]):
            first = int(places[0][0]), feature.name, int(places[0][1])
    if first is None:
        return None
    step, hint, node = first
    per_hint = len(trace.attention) // trace.steps
    now = slice(step * per_hint, (step + 1) * per_hint)
    attended = np.asarray(trace.attention).mean(2)[now, 0, node].argmax(-1)
    exact: tuple[int, ...] = ()
    if mechanism is not None:
        inputs = {name: np.asarray(value) for name, value in one.inputs.items()}
        phases = mechanism.selections
        senders = interpret(mechanism, inputs, one.steps).senders[step * phases :][:phases]
        exact = tuple(map(int, senders[:, 0, node]))
    return WentWrong(step, hint, node, tuple(map(int, attended)), exact)


def _tolerance(feature: Feature) -> float:
    """`output_scores` counts a number within this, and anything else if it is the same."""
    return SCALAR_MARGIN if feature.type is Type.SCALAR else 0.0
