"""A network's attention beside what the language sees: what is to be explained, phase by phase.

The state that rules speak of is the true trace's. A network is fed its own predictions of it, so an
explanation is worth what these are: `Watched.attention` is what it did all the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.decompiler.scenes import Scenes, scenes_of
from mechgap.decompiler.words import words_of
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.expressions import Name, Side
from mechgap.tasks.batch import Batch

Attention = Float[np.ndarray, "scenes receivers senders"]
_TINY = 1e-12


@dataclass(frozen=True)
class Watched:
    """One message-passing step of every hint, in all scenes."""

    scenes: Scenes
    attention: Attention
    """Along the graph and true pointers: what goes to others, by pointers that were predicted
    wrongly, is left out and the rest of the row made one."""

    @property
    def strongest(self) -> Int[np.ndarray, "scenes receivers"]:
        """Whom every node attends to most."""
        return self.attention.argmax(-1)

    def some(self, most: int) -> "Watched":
        """At most so many of the scenes, evenly."""
        chosen = np.unique(np.linspace(0, len(self.attention) - 1, most).round().astype(int))
        return Watched(self.scenes.some(chosen), self.attention[chosen])

    @cached_property
    def uniform(self) -> Attention:
        """All in sight alike."""
        reach = self.scenes.reach
        return reach / reach.sum(-1, keepdims=True)

    @property
    def sharpness(self) -> float:
        """1 - entropy / log(number in sight): 1 is a decision, 0 is uniform."""
        neighbours = self.scenes.reach.sum(-1)
        choice = neighbours > 1
        entropy = -(self.attention * self.logarithm).sum(-1)
        return float(1 - (entropy[choice] / np.log(neighbours[choice])).mean())

    @cached_property
    def receivers(self) -> Mapping[str, Bool[np.ndarray, "scenes receivers"]]:
        """Kinds of receivers to tell by; every receiver is of one."""
        return receiver_kinds(self.scenes)

    @cached_property
    def weights(self) -> Float[np.ndarray, "scenes receivers"]:
        """What a row counts: half by rows, half by kinds of receivers alike; 1 in all."""
        found = np.full(self.attention.shape[:2], 0.5 / self.attention[..., 0].size)
        for chosen in self.receivers.values():
            found[chosen] += 0.5 / len(self.receivers) / chosen.sum()
        return found

    @cached_property
    def logarithm(self) -> Attention:
        """Of attention."""
        return np.log(np.maximum(self.attention, _TINY))

    @cached_property
    def from_uniform(self) -> Float[np.ndarray, "scenes receivers"]:
        """What there is to explain: every row's divergence from attending to all alike."""
        return self.divergence(self.uniform)

    def divergence(self, model: Attention) -> Float[np.ndarray, "scenes receivers"]:
        """Of every row from a model's, in nats; the model is allowed to err one time in 1,000."""
        model = 0.999 * model + 0.001 * self.uniform
        return (self.attention * (self.logarithm - np.log(np.maximum(model, _TINY)))).sum(-1)

    def explained(self, model: Attention, among: np.ndarray | None = None) -> float:
        """The share of the divergence from uniform attention that a model explains."""
        among = np.ones(self.attention.shape[:2], bool) if among is None else among
        whole = self.from_uniform[among].mean()
        if not whole > _TINY:
            return 0.0
        return float(1 - self.divergence(model)[among].mean() / whole)


def watched(
    batch: Batch,
    attention: Float[np.ndarray, "time batch receivers senders"],
    sees_all: bool = False,
    without: Sequence[str] = (),
) -> tuple[Watched, ...]:
    """What there is to explain, phase by phase.

    Args:
        batch: Graphs with their true traces.
        attention: Of one head, or the mean of all, at every message-passing step.
        sees_all: Whether nodes attend to all others, not to neighbours alone.
        without: Hints that rules are not to speak of.

    Raises:
        InvalidInput: the task's trace says nothing about nodes.
    """
    words = words_of(batch.task, without)
    if not words.hints:
        raise InvalidInput(
            f"the trace of '{batch.task.name}' has no hints of nodes, and rules speak of a "
            "node's state. Give the program hints"
        )
    scenes = scenes_of(words, batch, sees_all)
    phases = len(attention) // batch.steps
    by_phase = attention.reshape(batch.steps, phases, *attention.shape[1:])
    found: list[Watched] = []
    for phase in range(phases):
        seen = by_phase[scenes.step, phase, scenes.graph] * scenes.reach
        total = seen.sum(-1, keepdims=True)
        oneself = np.eye(scenes.nodes)
        seen = np.where(total > _TINY, seen / np.maximum(total, _TINY), oneself)
        found.append(Watched(scenes, seen))
        scenes = scenes.after_phase(phase, found[-1].strongest)
    return tuple(found)


def spread(
    batch: Batch, scenes: Scenes, by_phase: Sequence[Attention]
) -> Float[np.ndarray, "time batch 1 receivers senders"]:
    """Attention of scenes, at every message-passing step of a batch; oneself where none counts."""
    nodes = batch.nodes
    shape = (batch.steps, len(by_phase), batch.size, nodes, nodes)
    full = np.broadcast_to(np.eye(nodes, dtype=np.float32), shape).copy()
    for phase, attention in enumerate(by_phase):
        full[scenes.step, phase, scenes.graph] = attention
    return full.reshape(-1, batch.size, 1, nodes, nodes)


def receiver_kinds(scenes: Scenes) -> dict[str, Bool[np.ndarray, "scenes receivers"]]:
    """Kinds of receivers by what the trace says of them, those that there are.

    Where nodes are reached from a source: the source, and nodes that are reached, that are being
    reached (a neighbour is) and that are out of reach. Else by the first flag or class.
    """
    shape = scenes.given.positions.shape
    flags = {name: scenes.state[name] > 0.5 for name in scenes.words.flags if name in scenes.state}
    start = np.zeros(shape, bool)
    if "start" in scenes.words.inputs:
        start = scenes.values(Name(Side.SELF, "start"))[..., 0] > 0.5
    if "visit" in flags:
        reached = flags["visit"]
        sees = (scenes.support & reached[:, None, :]).any(-1)
        found = {
            "reached": reached,
            "being reached": ~reached & sees,
            "out of reach": ~reached & ~sees,
        }
    else:
        lasting = [c for c in scenes.words.hints.values() if c.kind in (Kind.CLASS, Kind.BOOL)]
        if not lasting:
            found = {"all": np.ones(shape, bool)}
        elif lasting[0].kind is Kind.CLASS:
            found = {label: flags[label] for label in lasting[0].classes}
        else:
            name = lasting[0].name
            found = {name: flags[name], f"not {name}": ~flags[name]}
    found = {"source": start, **{name: rows & ~start for name, rows in found.items()}}
    return {name: rows for name, rows in found.items() if rows.any()}
