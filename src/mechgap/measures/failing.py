"""Why it fails: what is first wrong at nodes that are answered wrongly, and what nodes these are.

Of every wrong output of a node on the test graphs: is the node's attention wrong first, or one of
its hints? Attention is wrong in a step that updates the node by the exact mechanism, if its largest
entry is on a sender that no correct run could have chosen. Hints are those that the mechanism
claims and that are no numbers. And of what kind are these nodes, beside all nodes?
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.measures.data import Data, GroundTruth
from mechgap.measures.foiled import answer_of, true_answer
from mechgap.network.trace import Trace
from mechgap.tasks.scores import right_nodes
from mechgap.tasks.specs import Location, Type

FIRSTS = ("attention", "a hint", "both in one step", "nothing before the output")
QUARTER = 75
"""Far and high are the last quarter of all nodes."""
CLOSE = 0.05
"""Two offers to a node that differ by less than this share of the better one are close."""

Nodes = Bool[np.ndarray, "batch nodes"]


@dataclass(frozen=True)
class OfKind:
    """How common a kind of node is."""

    wrong: float
    """Share of the wrong nodes."""
    all: float
    """Share of all nodes."""


@dataclass(frozen=True)
class Failing:
    """Why a network's outputs are wrong."""

    mechanism: str
    nodes: int
    """That are answered wrongly."""
    of: int
    first: Mapping[str, float]
    """What was first wrong at a wrong node, in shares of them."""
    elsewhere_before: float
    """Share of the wrong nodes before whose first mistake another of the graph had made one."""
    kinds: Mapping[str, OfKind]


def failing(data: Data, truth: GroundTruth, trace: Trace) -> Failing:
    """Why outputs are wrong, beside one mechanism.

    Attention counts where the network passes as many messages as the mechanism has phases, else
    its hints alone.
    """
    wrong, never = wrong_nodes(data, trace), data.batch.steps
    at, ht = first_mistakes(data, truth, trace)
    mistake = np.minimum(at, ht)
    order = [(at < ht), (ht < at), (at == ht) & (at < never), (mistake == never)]
    count = max(1, int(wrong.sum()))
    before = mistake.min(axis=1, keepdims=True) < mistake
    return Failing(
        mechanism=truth.mechanism,
        nodes=int(wrong.sum()),
        of=wrong.size,
        first={n: float((wrong & o).sum() / count) for n, o in zip(FIRSTS, order, strict=True)},
        elsewhere_before=float((wrong & before).sum() / count),
        kinds={
            name: OfKind(float((wrong & kind).sum() / count), float(kind.mean()))
            for name, kind in _kinds(data, truth).items()
        },
    )


def wrong_nodes(data: Data, trace: Trace) -> Nodes:
    """The nodes that are answered wrongly."""
    return ~np.asarray(right_nodes(data.batch, trace.outputs))


def first_mistakes(
    data: Data, truth: GroundTruth, trace: Trace
) -> tuple[Int[np.ndarray, "batch nodes"], Int[np.ndarray, "batch nodes"]]:
    """The first step in which each node's attention is wrong, and that in which a hint of it is.

    Where neither ever is: as many steps as there are.
    """
    never = data.batch.steps
    attention, hint = _attention_wrong(data, truth, trace), _hint_wrong(data, truth, trace)
    return _first(attention, never), _first(hint, never)


def _first(wrong: Bool[np.ndarray, "steps batch nodes"], never: int) -> Int[np.ndarray, "..."]:
    """The first step in which something is wrong at each node."""
    return np.where(wrong.any(0), wrong.argmax(0), never)


def _attention_wrong(
    data: Data, truth: GroundTruth, trace: Trace
) -> Bool[np.ndarray, "steps batch nodes"]:
    """In which steps a node that is updated attends most to whom no correct run could choose."""
    steps, batch, nodes = data.batch.steps, data.batch.size, data.batch.nodes
    if len(trace.attention) != len(truth.senders):
        return np.zeros((steps, batch, nodes), bool)
    largest = np.asarray(trace.attention).mean(2).argmax(-1)
    accepted = np.take_along_axis(np.asarray(truth.acceptable), largest[..., None], -1)[..., 0]
    wrong = _counted(data, truth) & np.asarray(truth.updated) & ~accepted
    return np.array(wrong.reshape(steps, truth.phases, batch, nodes).any(1))


def _hint_wrong(
    data: Data, truth: GroundTruth, trace: Trace
) -> Bool[np.ndarray, "steps batch nodes"]:
    batch = data.batch
    found = np.zeros((batch.steps, batch.size, batch.nodes), bool)
    for feature in batch.task.hints:
        told = feature.location is Location.NODE and feature.type is not Type.SCALAR
        if told and feature.name in trace.hints and feature.name not in truth.program.unclaimed:
            said = np.asarray(answer_of(feature, trace.hints[feature.name]))
            true = np.asarray(true_answer(feature, batch.hints[feature.name][1:]))
            found[: len(true)] |= said[: len(true)] != true
    return found & np.asarray(data.valid)[..., None]


def _kinds(data: Data, truth: GroundTruth) -> dict[str, Nodes]:
    """Kinds of nodes; one can be of several."""
    updated = np.asarray(truth.updated & _counted(data, truth))
    support = np.asarray(data.support)
    tied = (np.asarray(truth.acceptable) & support).sum(-1) > 1
    reached = np.where(updated.any(0), updated.argmax(0), 0)
    degree = support.sum(-1) - 1
    return {
        "a tie": np.array((tied & updated).any(0)),
        "reached late": np.array(reached > np.percentile(reached, QUARTER)),
        "many neighbours": np.array(degree > np.percentile(degree, QUARTER)),
        "never updated": np.array(~updated.any(0)),
        **_close(data),
    }


def _counted(data: Data, truth: GroundTruth) -> Bool[np.ndarray, "time batch 1"]:
    """Which selections are before a graph's end."""
    return np.repeat(np.asarray(data.valid), truth.phases, axis=0)[..., None]


def _close(data: Data) -> dict[str, Nodes]:
    """Where the two best ways to a node are nearly as long: in tasks with weights and distances."""
    lengths = data.batch.hints.get("d")
    if not data.batch.task.weighted or lengths is None:
        return {}
    A = np.asarray(data.batch.inputs["A"], np.float64)
    last = np.maximum(0, np.asarray(data.batch.lengths) - 1)
    distance = np.asarray(lengths, np.float64)[last, np.arange(data.batch.size)]
    return {"two ways nearly as long": _nearly_as_long(A, distance)}


def _nearly_as_long(
    A: Float[np.ndarray, "batch nodes nodes"], distance: Float[np.ndarray, "batch nodes"]
) -> Nodes:
    nodes = A.shape[-1]
    edges = (A != 0) & ~np.eye(nodes, dtype=bool)
    offers = np.where(edges, distance[:, None, :] + A, np.inf)
    best, second = np.moveaxis(np.partition(offers, 1, axis=-1)[..., :2], -1, 0)
    with np.errstate(invalid="ignore"):
        return np.array(np.isfinite(second) & (second - best < CLOSE * best))
