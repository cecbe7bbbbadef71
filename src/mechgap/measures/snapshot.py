"""A network on its way: what is measured at fixed steps of training, and kept of every seed.

One pass over the test graphs and one over the deep ones. The numbers and a fingerprint of attention
are small enough to be kept of all seeds that were ever trained; the networks are not.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from mechgap.measures.baselines import uniform_attention
from mechgap.measures.breaking import Breaking, Runs, runs_of
from mechgap.measures.causal import hardened_score
from mechgap.measures.data import DEEP_NODES, Data, GroundTruth, deep_graphs, make_data
from mechgap.measures.external import Margins, hits_by_sample, trace_hits
from mechgap.measures.fingerprint import Places
from mechgap.measures.internal import (
    Headline,
    as_parts,
    at_steps,
    compared_steps,
    headline_by_sample,
    internal_gap,
    mean_of_graphs,
)
from mechgap.measures.own_state import FromOwnState, headline_from_own_state
from mechgap.network.network import Network, unroll
from mechgap.network.trace import run
from mechgap.tasks.batch import Batch
from mechgap.tasks.scores import output_scores, right_graphs
from mechgap.training.population import test_graphs
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store
from mechgap.typed import plain, rounded, typed

BLOCK = 100
"""Deep graphs that are run at once."""
STEPS = (250, 500, 1000, 2000, 5000, 10_000)
"""When training is looked at if nobody says otherwise."""


@dataclass(frozen=True)
class MechanismSeen:
    """How attention stands to one mechanism; see `measures.internal`."""

    agreement: float | None
    agreement_strict: float | None
    misplaced: float | None
    tv: float | None
    parts: Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True)
class Seen:
    """What a network does on one set of graphs."""

    accuracy: float | None
    graph_accuracy: float | None
    """Share of graphs with every output right."""
    hints: float | None
    """Share of the trace that is predicted; None where none is."""
    mechanisms: Mapping[str, MechanismSeen]

    @property
    def nearest(self) -> str | None:
        """The mechanism that attention agrees with most, the first of equals; None where none is
        known."""
        return max(self.mechanisms, key=lambda m: self.mechanisms[m].agreement or 0.0, default=None)


@dataclass(frozen=True)
class SeenRun(Seen):
    """The same, and where its runs go wrong."""

    by_phase: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Agreement in each phase of every mechanism. Empty in older numbers."""
    breaking: Breaking | None = None
    """None where no hint is predicted, and in older numbers."""
    from_own_state: Mapping[str, FromOwnState] = field(default_factory=dict)
    """By mechanism; see `measures.own_state`. Empty where no hint is predicted, where networks ran
    on lists of edges, and in older numbers."""


@dataclass(frozen=True)
class Snapshot:
    """One seed at one step. `which` is `step`, or `best` for the best validation score."""

    seed: int
    step: int
    which: str
    test: Seen
    deep: Seen | None
    hardened: float | None
    """Accuracy on the test graphs with every row of attention hardened to its largest entry."""

    def data(self) -> dict[str, Any]:
        """As plain values; what is not a number is None."""
        return plain(self)

    @staticmethod
    def of(data: Mapping[str, Any]) -> "Snapshot":
        """From plain values."""
        return typed(Snapshot, data)


class Observer:
    """Looks at networks of one recipe. Calling it gives numbers as JSON, and a fingerprint.

    `test` are graphs in place of the recipe's own test set. `deep` is how many graphs the
    `deep` set has.
    """

    def __init__(self, recipe: Recipe, test: Batch | None = None, deep: int | None = None):
        test = test_graphs(recipe) if test is None else test
        self.test = make_data("test", test, recipe.mechanisms)
        deep_nodes = recipe.validation_nodes if recipe.use_pre_att_bias else DEEP_NODES
        graphs = deep_graphs(recipe.posed, deep_nodes, deep)
        blocks = [graphs[slice(k, k + BLOCK)] for k in range(0, graphs.size, BLOCK)]
        self.deep = [make_data("deep", block, recipe.mechanisms) for block in blocks]
        self.places = Places.of(
            self.test, recipe.nb_msg_passing_steps, recipe.network_config.attends_to_all
        )

    def __call__(self, network: Network) -> tuple[str, bytes]:
        """What training keeps of a network."""
        attention = run(network, self.test.batch).attention
        seen = self.see(network, attention)
        text = json.dumps(rounded(plain(seen)), allow_nan=False)
        return text, self.fingerprint(attention).tobytes()

    def fingerprint(
        self, attention: Float[Array, "time batch heads receivers senders"]
    ) -> UInt8[np.ndarray, "entries"]:
        """What is kept of an attention on the test graphs."""
        return self.places.fingerprint(np.asarray(self.places.rows(attention)))

    def see(self, network: Network, attention: Array | None = None) -> "Observed":
        """The numbers of a network; `attention` is its own on the test graphs if it is known."""
        attention = run(network, self.test.batch).attention if attention is None else attention
        steps = tuple(compared_steps(attention, t, self.test) for t in self.test.truths)
        return Observed(
            test=_seen_on([self.test], network, steps),
            deep=_seen_on(self.deep, network, steps),
            hardened=hardened_score(network, self.test),
        )


class _Graphs(NamedTuple):
    """What was seen on each graph of a block."""

    score: Float[Array, ""]
    right: Bool[Array, "batch"]
    hints: Float[Array, "hints batch"]
    mechanisms: tuple[Headline, ...]


class SeenBlock(NamedTuple):
    """What a network does on each graph of a block: so many graphs as have room at once."""

    graphs: _Graphs
    mechanisms: tuple[str, ...]
    runs: Runs | None
    from_own_state: tuple[Headline, ...]
    """By mechanism; none where no hint is predicted."""


def see_on(network: Network, data: Data) -> SeenRun:
    """The numbers of a network on some graphs."""
    return seen_together([see_block(network, data)])


def see_block(network: Network, data: Data, *, own_state: bool = True) -> SeenBlock:
    """The same, of every graph; also from the network's own state, which takes longest."""
    trace = run(network, data.batch)
    steps = tuple(compared_steps(trace.attention, truth, data) for truth in data.truths)
    graphs = jax.tree.map(np.asarray, _graphs(network, data, steps))
    names = tuple(truth.mechanism for truth in data.truths)
    truths = data.truths if own_state and network.config.decodes_hints else ()
    own = (headline_from_own_state(data, t, trace) for t in truths)
    return SeenBlock(graphs, names, runs_of(network, data, trace), tuple(own))


def seen_together(blocks: Sequence[SeenBlock]) -> SeenRun:
    """The numbers of a network on the graphs of one or several blocks."""
    names = blocks[0].mechanisms
    each = zip(names, zip(*(b.graphs.mechanisms for b in blocks), strict=True), strict=True)
    own = zip(names, zip(*(b.from_own_state for b in blocks), strict=True), strict=False)
    runs = [block.runs for block in blocks if block.runs is not None]
    return SeenRun(
        **vars(_seen([block.graphs for block in blocks], names)),
        by_phase={
            name: tuple(mean_of_graphs([h.by_phase for h in headlines]).tolist())
            for name, headlines in each
        },
        breaking=Breaking.of(runs) if runs else None,
        from_own_state={name: FromOwnState.of(headlines) for name, headlines in own},
    )


def uniform_on(data: Data) -> SeenRun:
    """The numbers of attention to all neighbours alike."""
    gaps = [internal_gap(uniform_attention(data), truth, data) for truth in data.truths]
    return SeenRun(
        accuracy=None,
        graph_accuracy=None,
        hints=None,
        mechanisms={
            g.mechanism: MechanismSeen(g.agreement, g.agreement_strict, g.misplaced, g.tv, g.parts)
            for g in gaps
        },
        by_phase={gap.mechanism: tuple(gap.agreement_by_phase.tolist()) for gap in gaps},
    )


@dataclass(frozen=True)
class Observed:
    """A snapshot's numbers without whose they are."""

    test: Seen
    deep: Seen | None
    hardened: float | None


def snapshot(seed: int, step: int, which: str, text: str) -> Snapshot:
    """What an observer wrote, as a snapshot of a seed."""
    return Snapshot.of({"seed": seed, "step": step, "which": which, **json.loads(text)})


def load_snapshots(folder: Path) -> list[Snapshot]:
    """Everything that was seen while a run was trained, by seed and step; the best come last."""
    with Store.reading(folder) as store:
        rows = store.observations()
    return [snapshot(row.seed, row.step, row.which, row.measures) for row in rows]


def load_fingerprints(folder: Path, which: str, step: int | None = None) -> dict[int, np.ndarray]:
    """The fingerprints of a run's seeds: at their `best`, or at one `step` of training."""
    with Store.reading(folder) as store:
        rows = store.observations()
    chosen = [row for row in rows if row.which == which and step in (None, row.step)]
    return {row.seed: np.frombuffer(row.fingerprint, np.uint8) for row in chosen}


def _seen_on(
    blocks: Sequence[Data], network: Network, steps: tuple[Int[Array, "phases"], ...]
) -> Seen:
    found = [jax.tree.map(np.asarray, _graphs(network, block, steps)) for block in blocks]
    return _seen(found, tuple(truth.mechanism for truth in blocks[0].truths))


def _seen(blocks: Sequence[_Graphs], mechanisms: tuple[str, ...]) -> Seen:
    def mean(values: Sequence[Any]) -> float:
        return float(mean_of_graphs(values))

    headlines = zip(*(block.mechanisms for block in blocks), strict=True)
    hints = [mean(rows) for rows in zip(*(block.hints for block in blocks), strict=True)]
    sizes = [len(block.right) for block in blocks]
    return Seen(
        accuracy=float(np.average([block.score for block in blocks], weights=sizes)),
        graph_accuracy=mean([block.right for block in blocks]),
        hints=float(np.mean(hints)) if hints else None,
        mechanisms={
            name: MechanismSeen(
                agreement=mean([h.agreement for h in each]),
                agreement_strict=mean([h.agreement_strict for h in each]),
                misplaced=mean([h.misplaced for h in each]),
                tv=mean([h.tv for h in each]),
                parts=as_parts(np.concatenate([h.parts for h in each]).mean(0)),
            )
            for name, each in zip(mechanisms, headlines, strict=True)
        },
    )


@eqx.filter_jit
def _graphs(network: Network, data: Data, steps: tuple[Int[Array, "phases"], ...]) -> _Graphs:
    batch = data.batch
    ran = unroll(network, batch, training=False, keep_steps=True)
    assert ran.steps is not None
    attention = ran.steps.attention.reshape(-1, *ran.steps.attention.shape[2:])

    def headline(truth: GroundTruth, chosen: Int[Array, "phases"]) -> Headline:
        return headline_by_sample(at_steps(attention, chosen, batch.steps), truth, data.valid)

    hints = []
    if network.config.decodes_hints and batch.max_hints > 1:
        hints = [
            hits_by_sample(trace_hits(f, batch, ran.hints[f.name], Margins()), batch)
            for f in batch.task.hints
        ]
    return _Graphs(
        score=output_scores(batch, ran.outputs)["score"],
        right=right_graphs(batch, ran.outputs),
        hints=jnp.stack(hints) if hints else jnp.zeros((0, batch.size)),
        mechanisms=tuple(map(headline, data.truths, steps)),
    )
