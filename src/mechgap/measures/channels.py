"""Is softness noise or message? Numbers that come to a node by how much it attends.

Attention that should only say *whom* a node attends to can also say a number: the lighter an edge,
the more is attended along it, and the receiver's state tells how much that was. dm-clrs's GATv2 has
no other way for weights to get into a state. So its attention must be soft, and a network whose
attention is right may have no distances.

Weights are interchanged among the edges of each graph; edges, positions and source stay. Two
questions are asked with them:

- *Carried*: after the first step, can the weight of the edge from the source be read, by a linear
  map, from the attention of the node at its other end to the source? From its hidden state?
- *Followed*: a network runs on the true weights with the attention that it has on the other ones.
  Whose number does it predict then, that of the true weights, which it sees along edges, or that of
  the other ones, which only its attention can have told it?

In the first step every neighbour of the source has nobody else to hear of, whatever the weights:
attention differs in how much, not in whom. At the end of a run it differs in both, and so a number
that follows the other weights there may do so by selection alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mechgap.measures.baselines import fixed_baselines
from mechgap.measures.causal import run_forced, run_hardened
from mechgap.measures.data import Data
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import make_batch
from mechgap.tasks.specs import Location, Type

DRAWS = 4
"""How often weights are interchanged for the first step, which is soon run; for whole runs once."""
RIDGE = 1e-3
"""The penalty of a linear read-out, whose inputs have spread 1."""
LEAST = 1e-6
"""Less attention than this is not told apart from none: its logarithm is taken from here on."""
SAME = 1e-6
"""Numbers that spread less than this, for their size, are the same."""
CARRIES, ROOM = 0.5, 0.05
"""A way carries a number if half of what a network predicts of it comes along it; and it must
predict something."""


@dataclass(frozen=True)
class Follows:
    """Squared correlations of a predicted number with what it should be."""

    true: float
    """With the weights of the graph that the network runs on."""
    other: float
    """With the other weights of the same edges."""


@dataclass(frozen=True)
class Followed:
    """What a predicted number follows after some steps."""

    cases: int
    """Nodes that it is predicted of."""
    shared: float
    """Squared correlation between the numbers of the true and of the other weights: who follows
    the one entirely follows the other so far."""
    under: Mapping[str, Follows]
    """By attention: `own`; `interchanged`, its own on the other weights; `hardened`, its own with
    the largest entry of each row alone; `uniform`; `self`; and in the first step `source`: all
    that a neighbour of the source has is on it, and others attend to themselves."""


@dataclass(frozen=True)
class Number:
    """How a number of the trace, such as a distance, comes to the nodes."""

    first: Followed
    """In the first step, at the neighbours of the source."""
    end: Followed
    """In each graph's last step, at all nodes whose number has changed by then."""

    ALSO_TOLD: ClassVar = ("verdict",)

    @property
    def verdict(self) -> str:
        """The way that it comes in the first step: `attention`, `edges`, `both` or `neither`."""
        own, interchanged = self.first.under["own"].true, self.first.under["interchanged"]
        if not own >= ROOM:
            return "cannot tell"
        attention, edges = (
            each >= CARRIES * own for each in (interchanged.other, interchanged.true)
        )
        if attention and edges:
            return "both"
        return "attention" if attention else "edges" if edges else "neither"


@dataclass(frozen=True)
class Channels:
    """What attention carries of a task's weights, and which numbers follow it."""

    rows: int
    """Neighbours of a source, over all graphs and drawn weights; half of the graphs are fitted."""
    attention: float
    """R² on the other half of the weight of the edge from the source, read from the attention to
    the source in the first step; 0 where that is no better than the mean."""
    hidden: float
    """The same, read from the hidden state after the first step."""
    numbers: Mapping[str, Number]
    """By hint; nothing for a network that does not predict hints."""


def channels(network: Network, data: Data) -> Channels | None:
    """What a network's attention carries of the weights of some graphs.

    None where there is nothing to carry: in a task without weights (`bfs`, depth-first search), in
    one that marks no source, and on graphs whose weights are all the same, or that end at once.
    """
    batch = data.batch
    if not batch.task.weighted or not batch.task.has_source or batch.max_hints < 2:
        return None
    first = _Pair.of(batch.cut(2), DRAWS)
    if not first.differ:
        return None
    soft = run(network, first.other)
    rows = first.neighbours
    weights = first.weights[rows]
    fitted = np.broadcast_to(first.halves[:, None], rows.shape)[rows]
    return Channels(
        rows=int(rows.sum()),
        attention=_read_out(_attention_read(soft, first.sources)[rows], weights, fitted),
        hidden=_read_out(np.asarray(soft.hidden[-1], np.float64)[rows], weights, fitted),
        numbers=_numbers(network, batch, first, soft) if network.config.decodes_hints else {},
    )


def _numbers(network: Network, batch: Batch, first: "_Pair", soft: Trace) -> Mapping[str, Number]:
    """How every number comes; `soft` is the first step on the other weights."""
    in_first = _followed(network, first, soft, first.neighbours, first.to_source)
    whole = _Pair.of(batch, 1)
    at_end = _followed(network, whole, run(network, whole.other), ~whole.is_source)
    return {name: Number(in_first[name], at_end[name]) for name in in_first}


class _Pair(NamedTuple):
    """The same graphs with their own weights and with others, and as many steps."""

    own: Batch
    other: Batch
    graphs: int
    """So many; if there are more in a batch, they are those again."""

    @staticmethod
    def of(batch: Batch, draws: int) -> "_Pair":
        """A batch so many times, beside as many ways to interchange the weights of each graph."""
        own = _at_most(batch[jnp.tile(jnp.arange(batch.size), draws)], batch.max_hints)
        rng = np.random.default_rng(0xC4A7)
        weights = np.stack([interchanged(A, rng) for A in np.asarray(own.inputs["A"])])
        sources = jnp.argmax(own.inputs["s"], axis=-1)
        other = make_batch(batch.task, jnp.asarray(weights), sources, own.inputs["pos"])
        return _Pair(own, _at_most(other, batch.max_hints), batch.size)

    @property
    def differ(self) -> bool:
        """Whether there are other weights at all."""
        return bool(jnp.any(self.own.inputs["A"] != self.other.inputs["A"]))

    @property
    def sources(self) -> Int[np.ndarray, "batch"]:
        return np.asarray(self.own.inputs["s"]).argmax(-1)

    @property
    def is_source(self) -> Bool[np.ndarray, "batch nodes"]:
        return np.asarray(self.own.inputs["s"]) > 0

    @property
    def weights(self) -> Float[np.ndarray, "batch nodes"]:
        """The other weight of each node's edge to the source; 0 where there is none."""
        return np.asarray(self.other.inputs["A"])[np.arange(len(self.sources)), :, self.sources]

    @property
    def neighbours(self) -> Bool[np.ndarray, "batch nodes"]:
        """Who has an edge from the source."""
        return (self.weights != 0) & ~self.is_source

    @property
    def halves(self) -> Bool[np.ndarray, "batch"]:
        """Every other graph, in all of its draws."""
        return np.arange(self.own.size) % self.graphs % 2 == 0

    @property
    def to_source(self) -> Float[Array, "steps batch 1 receivers senders"]:
        """Neighbours of the source attend to it, and all others to themselves."""
        alone = np.arange(self.own.nodes)[None]
        senders = jnp.asarray(np.where(self.neighbours, self.sources[:, None], alone))
        attention = jax.nn.one_hot(senders, self.own.nodes)[None, :, None]
        return jnp.broadcast_to(attention, (self.own.steps, *attention.shape[1:]))


def interchanged(
    weights: Float[np.ndarray, "nodes nodes"], rng: np.random.Generator
) -> Float[np.ndarray, "nodes nodes"]:
    """The same undirected graph, its weights permuted among its edges; self-loops keep theirs.

    >>> A = np.array([[0.5, 1, 2], [1, 0, 0], [2, 0, 0]])
    >>> interchanged(A, np.random.default_rng(3)).tolist()
    [[0.5, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    ends = np.nonzero(np.triu(weights, k=1))
    changed = weights.copy()
    changed[ends] = rng.permutation(weights[ends])
    changed[ends[::-1]] = changed[ends]
    return changed


def _at_most(batch: Batch, hints: int) -> Batch:
    """The first hints of a batch, as if no graph had more."""
    return eqx.tree_at(lambda b: b.lengths, batch, jnp.minimum(batch.lengths, hints)).cut(hints)


def _attention_read(
    trace: Trace, sources: Int[np.ndarray, "batch"]
) -> Float[np.ndarray, "batch nodes units"]:
    """Each node's attention to the source by each head and message-passing step, and its log."""
    attention = np.asarray(trace.attention, np.float64)  # [time, batch, heads, receivers, senders]
    paid = attention[:, np.arange(len(sources)), :, :, sources]  # [batch, time, heads, receivers]
    paid = np.moveaxis(paid, -1, 1).reshape(len(sources), attention.shape[-1], -1)
    return np.concatenate([paid, np.log(np.maximum(paid, LEAST))], axis=-1)


def _read_out(
    inputs: Float[np.ndarray, "rows units"],
    number: Float[np.ndarray, "rows"],
    fitted: Bool[np.ndarray, "rows"],
) -> float:
    """R² of the best linear map on the rows that it is not fitted on, at least 0."""
    if not fitted.any() or fitted.all() or _is_constant(number[~fitted]):
        return float("nan")
    mean, spread = inputs[fitted].mean(0), inputs[fitted].std(0)
    tells = spread > SAME * np.maximum(1, np.abs(mean))
    x = (inputs - mean)[:, tells] / spread[tells]
    y = number.astype(np.float64) - number[fitted].mean()
    gram = x[fitted].T @ x[fitted] + RIDGE * fitted.sum() * np.eye(x.shape[1])
    read = x @ np.linalg.solve(gram, x[fitted].T @ y[fitted])
    error = np.mean((read - y)[~fitted] ** 2)
    return max(0.0, float(1 - error / np.var(y[~fitted])))


def _followed(
    network: Network,
    pair: _Pair,
    giver: Trace,
    among: Bool[np.ndarray, "batch nodes"],
    to_source: Float[Array, "..."] | None = None,
) -> dict[str, Followed]:
    """What every predicted number follows in the last step of a pair, by attention.

    `giver` is the network's run on the other weights, and `among` are the nodes to look at.
    """
    data = Data("interchanged", pair.own, ())
    given = {**fixed_baselines(data), **({} if to_source is None else {"source": to_source})}
    last = np.asarray(jnp.maximum(1, pair.own.lengths - 1))

    def predicted(trace: Trace) -> Mapping[str, np.ndarray]:
        hints = {name: np.asarray(trace.hints[name]) for name in _number_hints(pair.own)}
        return {name: hint[last - 1, np.arange(len(last))] for name, hint in hints.items()}

    said = {
        "own": predicted(run(network, pair.own)),
        "interchanged": predicted(run(network, pair.own, replace={"attention": giver.attention})),
        "hardened": predicted(run_hardened(network, data)),
        **{name: predicted(run_forced(network, data, each)) for name, each in given.items()},
    }
    found = {}
    for name in said["own"]:
        true, other = (_truth(batch, name, last) for batch in (pair.own, pair.other))
        start = np.asarray(pair.own.hints[name][0])
        counted = among & (true != start) & (other != start)
        true, other = true[counted], other[counted]
        found[name] = Followed(
            cases=int(counted.sum()),
            shared=_squared_correlation(true, other),
            under={
                under: Follows(
                    true=_squared_correlation(each[name][counted], true),
                    other=_squared_correlation(each[name][counted], other),
                )
                for under, each in said.items()
            },
        )
    return found


def _number_hints(batch: Batch) -> list[str]:
    """The hints that are a number of every node."""
    return [
        f.name for f in batch.task.hints if f.location is Location.NODE and f.type is Type.SCALAR
    ]


def _truth(
    batch: Batch, name: str, time: Int[np.ndarray, "batch"]
) -> Float[np.ndarray, "batch nodes"]:
    """What a number is at a time of each graph's own, or in its last hint if that is earlier."""
    time = np.minimum(time, np.asarray(batch.lengths) - 1)
    return np.asarray(batch.hints[name])[time, np.arange(len(time))]


def _squared_correlation(
    predicted: Float[np.ndarray, "cases"], truth: Float[np.ndarray, "cases"]
) -> float:
    """0 where the prediction is always the same, and NaN where the truth is."""
    if _is_constant(truth):
        return float("nan")
    return 0.0 if _is_constant(predicted) else float(np.corrcoef(predicted, truth)[0, 1] ** 2)


def _is_constant(values: Float[np.ndarray, "cases"]) -> bool:
    values = values.astype(np.float64)
    return len(values) < 2 or bool(values.std() <= SAME * max(1.0, abs(values.mean())))
