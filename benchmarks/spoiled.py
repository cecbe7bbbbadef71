"""Controls: networks that run no program, or not quite the one that was compiled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mechgap.compiler.compile import Compiled
from mechgap.compiler.target import TARGETS
from mechgap.decompiler.decompile import Decompiled
from mechgap.decompiler.explanation import AGREES, EXPLAINS, MARGIN
from mechgap.decompiler.graphs import Graphs, graphs_for
from mechgap.decompiler.soft import SoftForm, Word
from mechgap.decompiler.watched import Watched
from mechgap.measures.own_state import with_own_hints
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.expressions import parse
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.tasks.batch import Batch
from recovered import (
    held_out,
    rule_of,
)
from round_trips import compiled_for, said, seen, sizes_of, timed_decompile

CLAIMS = ("program", "soft", "small")
UNTRAINED, SHUFFLED, NOISE = "untrained", "shuffled", "noise"
NOISES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the root mean square of each array of parameters."""
CONTROLLED = ("bfs", "bellman_ford", "reachability", "smallest_label", "strongest_neighbour")
"""Programs whose networks are spoiled; untrained ones have the same tasks."""


@dataclass(frozen=True)
class Control:
    """What was claimed of a network of which there is little or nothing to claim."""

    kind: str
    program: str
    target: str
    seed: int
    noise: float | None = None
    failed: str | None = None
    claim: str = ""
    false: bool = False
    holds: Mapping[int, float] = field(default_factory=dict)
    """By number of nodes: how far a claim holds on new graphs."""
    found: tuple[str, ...] = ()
    seconds: float = 0.0
    search_seconds: float = 0.0

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from others."""
        return (self.kind, self.seed)


@cache
def _to_spoil(name: str) -> tuple[Compiled, Graphs]:
    """A compiled network of which controls are made, and graphs to decompile them on."""
    target = TARGETS["general"]
    return compiled_for(LIBRARY[name], target), graphs_for(posed(LIBRARY[name]), *sizes_of(target))


def shuffled(batch: Batch, attention: np.ndarray, seed: int = 0) -> np.ndarray:
    """The same attention, given to others in sight: every row is permuted by itself."""
    adjacent = np.asarray(batch.inputs["adj"]) > 0
    support = adjacent | adjacent.swapaxes(-1, -2) | np.eye(batch.nodes, dtype=bool)
    support = np.broadcast_to(support[:, None], attention.shape)
    chance = np.random.default_rng([seed, attention.size]).random(attention.shape)
    # Those in sight come first in both orders; the k-th by chance gets what the k-th one had.
    given = np.argsort(~support, axis=-1, kind="stable")
    to = np.argsort(np.where(support, chance, 2.0), axis=-1, kind="stable")
    changed = np.array(attention)
    np.put_along_axis(changed, to, np.take_along_axis(attention, given, -1), -1)
    return changed


def noisy(network: Network, size: float, seed: int) -> Network:
    """A network with noise on every parameter."""
    rng = np.random.default_rng(seed)

    def spoiled(leaf: np.ndarray) -> np.ndarray:
        return leaf + size * np.sqrt(np.mean(leaf**2)) * rng.standard_normal(leaf.shape)

    return jax.tree.map(lambda leaf: jnp.asarray(spoiled(np.asarray(leaf)), leaf.dtype), network)


def control(kind: str, seed: int) -> Control:
    """One network that runs no program, or one that is not quite what it was."""
    name = CONTROLLED[seed % len(CONTROLLED)]
    compiled, graphs = _to_spoil(name)
    network, options = compiled.network, dict[str, Any]()
    row = Control(kind, name, compiled.target.name, seed)
    if kind == UNTRAINED:
        network = Network.initial(graphs.fit.task, jax.random.key(seed), network.config)
    elif kind == SHUFFLED:
        options = {"in_place": partial(shuffled, seed=seed)}
    else:
        size = NOISES[seed // len(CONTROLLED) % len(NOISES)]
        network, row = noisy(network, size, seed), replace(row, noise=size)
    try:
        timed = timed_decompile(network, graphs, **options)
    except Exception as error:  # what a decompiler must not do is a finding of its own
        return replace(row, failed=said(error))
    found = timed.found
    claim = found.explanation.claim
    holds = _holds(found, network, compiled, claim) if kind == NOISE and claim in CLAIMS else {}
    needed = (EXPLAINS if claim == "soft" else AGREES) - MARGIN
    return replace(
        row,
        claim=claim,
        false=claim in CLAIMS and (kind != NOISE or min(holds.values()) < needed),
        holds=holds,
        found=tuple(phase.rule for phase in found.explanation.phases),
        seconds=timed.seconds,
        search_seconds=timed.search_seconds,
    )


def _holds(found: Decompiled, network: Network, compiled: Compiled, claim: str) -> dict[int, float]:
    """How far a claim holds on new graphs, by their number of nodes, if it is about so many: of the
    worst phase, from the trace's state or from the network's own."""
    sizes = sizes_of(compiled.target)
    shares: dict[int, float] = {}
    for nodes in sizes[:1] if claim == "small" else sizes:
        batch = held_out(compiled.program, nodes, 48, 0xD00D)
        trace = run(network, batch)
        shares[nodes] = max(
            _least_told(found, seen(network, told, trace), claim)
            for told in (batch, with_own_hints(batch, trace.hints))
        )
    return shares


def _least_told(found: Decompiled, seen: Sequence[Watched], claim: str) -> float:
    """How much of attention a claim tells, in the phase of which it tells least."""
    return min(
        w.explained(
            SoftForm(
                tuple(Word(parse(word.word), word.receivers) for word in phase.soft),
                tuple(word.weight for word in phase.soft),
            ).attention(w)
        )
        if claim == "soft"
        else float((rule_of(phase.rule).senders(w.scenes) == w.strongest).mean())
        for phase, w in zip(found.explanation.phases, seen, strict=True)
    )
