"""What the language sees of a batch: every step of every graph, side by side, in float64.

The state before a step is the trace's own, not what a network has predicted of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.decompiler.words import LEVEL, MET, WAS, Words
from mechgap.programs.components import Component, Kind
from mechgap.programs.evaluation import Given, at_sender, evaluate, of_pairs
from mechgap.programs.expressions import Expression, Name, Side
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Location, Type

Of_nodes = Float[np.ndarray, "scenes nodes"]


@dataclass(frozen=True)
class Scenes:
    """Steps that count, each with its graph; a row is one receiver in one of them."""

    words: Words
    given: Given
    reach: Bool[np.ndarray, "scenes receivers senders"]
    """Whom a node can attend to: who is in sight, and who is at either end of a pointer that is a
    hint, since a network that is fed its hints attends along them, too."""
    state: Mapping[str, Of_nodes]
    """Flags, numbers and pointers (as positions) before the step."""
    after: Mapping[str, Of_nodes]
    """The same of hints, after it, where the trace tells."""
    told: Bool[np.ndarray, "scenes"]
    """Whether it does: a trace of one hint has a step all the same."""
    step: Int[np.ndarray, "scenes"]
    graph: Int[np.ndarray, "scenes"]
    attended: tuple[Int[np.ndarray, "scenes nodes"], ...] = ()
    """Whom nodes attended to in the phases before."""

    @property
    def last_senders(self) -> Int[np.ndarray, "scenes nodes"]:
        """Whom nodes attended to in the phase before."""
        return self.attended[-1]

    @property
    def nodes(self) -> int:
        """How many nodes every graph has."""
        return self.given.positions.shape[-1]

    @property
    def support(self) -> Bool[np.ndarray, "scenes receivers senders"]:
        """Who is in sight: of these the language selects."""
        return self.given.support

    def values(self, expression: Expression) -> Float[np.ndarray, "scenes receivers senders"]:
        """What an expression is worth for every receiver and sender."""
        found = evaluate(expression, of_pairs(self.given, self.state))
        return np.broadcast_to(found, self.support.shape)

    def seen(self, expression: Expression, senders: Int[np.ndarray, "scenes nodes"]) -> Of_nodes:
        """What an expression is worth for every receiver, with whom it attends to as `other`."""
        return at_sender(expression, of_pairs(self.given, self.state), senders, np)

    def after_phase(self, phase: int, senders: Int[np.ndarray, "scenes nodes"]) -> "Scenes":
        """The same in the next phase, when nodes know whom they attended to in this one."""
        words = self.words.after_phase(phase)
        new = {f"{MET}{phase}": np.take_along_axis(self.given.positions, senders, axis=-1)}
        for name, source in words.sources.items():
            if name not in self.words.sources:
                new[name] = self.seen(Name(Side.OTHER, source), senders)
        return replace(
            self,
            words=words,
            state={**self.state, **new},
            attended=(*self.attended, senders),
        )

    def some(self, chosen: Int[np.ndarray, "chosen"]) -> "Scenes":
        """Some of the scenes."""
        given = self.given
        named = {name: value[chosen] for name, value in given.named.items()}
        return replace(
            self,
            given=Given(named, given.positions[chosen], given.support[chosen]),
            reach=self.reach[chosen],
            state={name: value[chosen] for name, value in self.state.items()},
            after={name: value[chosen] for name, value in self.after.items()},
            told=self.told[chosen],
            step=self.step[chosen],
            graph=self.graph[chosen],
            attended=tuple(senders[chosen] for senders in self.attended),
        )

    @cached_property
    def oneself(self) -> Int[np.ndarray, "scenes nodes"]:
        """Every node itself."""
        return np.broadcast_to(np.arange(self.nodes), self.given.positions.shape)


def scenes_of(words: Words, batch: Batch, sees_all: bool = False) -> Scenes:
    """All steps of a batch that count."""
    lengths = np.asarray(batch.lengths)
    counted = np.arange(batch.steps)[:, None] < np.maximum(1, lengths - 1)
    step, graph = np.nonzero(counted)
    inputs = {name: np.asarray(value, np.float64) for name, value in batch.inputs.items()}
    positions = inputs["pos"]
    adjacent = inputs["adj"] > 0
    support = adjacent | adjacent.swapaxes(-1, -2) | np.eye(batch.nodes, dtype=bool) | sees_all
    traced: dict[str, np.ndarray] = {}
    for name, component in words.hints.items():
        traced |= _traced(component, np.asarray(batch.hints[name], np.float64), positions)
    before = {name: values[step, graph] for name, values in traced.items()}
    at_next = np.minimum(step + 1, batch.max_hints - 1)
    after = {name: values[at_next, graph] for name, values in traced.items()}
    for name, source in words.sources.items():
        history = traced[source]
        derived = _level(history) if name == LEVEL else np.concatenate([history[:1], history[:-1]])
        assert name == LEVEL or name.startswith(WAS)
        before[name] = derived[step, graph]
    named = {ours: inputs[theirs][graph] for ours, theirs in words.inputs.items()}
    given = Given(named, positions[graph], support[graph])
    reach = given.support | _along_pointers(batch)[step, graph]
    return Scenes(words, given, reach, before, after, step + 1 < lengths[graph], step, graph)


def _along_pointers(batch: Batch) -> Bool[np.ndarray, "steps batch nodes nodes"]:
    """Who is at either end of a pointer that is a hint, before every step."""
    shape = (max(batch.steps, batch.max_hints), batch.size, batch.nodes, batch.nodes)
    found = np.zeros(shape, bool)
    for feature in batch.task.hints:
        if feature.type is Type.POINTER and feature.location is Location.NODE:
            found[: batch.max_hints] |= np.eye(batch.nodes, dtype=bool)[
                np.asarray(batch.hints[feature.name], int)
            ]
    return found | found.swapaxes(-1, -2)


def _traced(
    component: Component, hint: np.ndarray, positions: Float[np.ndarray, "batch nodes"]
) -> dict[str, np.ndarray]:
    """A hint as the language holds it: classes as flags, pointers as positions."""
    if component.kind is Kind.CLASS:
        return {label: hint[..., k] for k, label in enumerate(component.classes)}
    if component.kind is Kind.POINTER:
        pointed = hint.astype(int)
        everywhere = np.broadcast_to(positions, pointed.shape)
        return {component.name: np.take_along_axis(everywhere, pointed, axis=-1)}
    return {component.name: hint}


def _level(flags: Float[np.ndarray, "steps batch nodes"]) -> np.ndarray:
    """In which step a flag was set first, by then; 0 while it is not."""
    steps = np.arange(len(flags))[:, None, None]
    first = np.minimum.accumulate(np.where(flags > 0.5, steps, len(flags)), axis=0)
    return np.where(first < len(flags), first, 0).astype(np.float64)
