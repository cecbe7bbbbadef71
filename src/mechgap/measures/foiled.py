"""What a foil would change: the next hint, had one step of a mechanism attended to a wrong sender.

The mechanism's program is run with the foil in one phase of one hint step, from the true state
before it; later phases of the step select for themselves. A *case* is a hint of a node, in that
step, that comes out otherwise than the true one. A network that works as the program does gives the
other answer there, too, when it is made to attend to the foil; one that does not read this part of
its attention still gives the true one.
"""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mechgap.measures.data import Data, GroundTruth
from mechgap.programs.components import Kind
from mechgap.programs.evaluation import pointed
from mechgap.programs.interpreter import foiled_states, interpret
from mechgap.tasks.specs import Feature, Location, Type

Answers = Float[Array, "*steps batch nodes"]
"""One number for every node's hint: a flag, a class, a node, or the number that it is."""

Where = Mapping[str, Bool[Array, "steps batch nodes"]]

_SAME_NUMBER = 1e-3


class FoiledHints(eqx.Module):
    """The next hints with a foil in one step, beside the true ones, by hint."""

    numbers: frozenset[str] = eqx.field(static=True)
    """The hints that are numbers."""
    truth: Mapping[str, Answers]
    foiled: Mapping[str, Answers]
    counted: Mapping[str, Bool[Array, "steps batch nodes"]]
    """Where they are different, in steps that count."""

    @property
    def cases(self) -> int:
        """How many hints of nodes a foil changes."""
        return sum(int(jnp.sum(each)) for each in self.counted.values())

    def right(self, said: Mapping[str, Answers]) -> Where:
        """Where a network's answers are the true ones: numbers, if they are nearer to these."""
        return self._nearer(said, self.truth, self.foiled)

    def follows(self, said: Mapping[str, Answers]) -> Where:
        """Where a network's answers are what the program makes of the foil."""
        return self._nearer(said, self.foiled, self.truth)

    def _nearer(
        self,
        said: Mapping[str, Answers],
        this: Mapping[str, Answers],
        that: Mapping[str, Answers],
    ) -> Where:
        found = {}
        for name in this.keys() & said.keys():
            answer = said[name][: len(this[name])]
            off = jnp.abs(answer - this[name])
            found[name] = off < jnp.abs(answer - that[name]) if name in self.numbers else off == 0
        return found

    def share(self, which: Where) -> float:
        """The share of cases, as a mean over a graph's cases and then over graphs with any."""
        if not which or not self.cases:
            return float("nan")
        hits = sum(jnp.sum(which[n] & self.counted[n], axis=(0, 2)) for n in which)
        cases = sum(jnp.sum(self.counted[n], axis=(0, 2)) for n in which)
        return float(jnp.nanmean(jnp.where(cases > 0, hits / jnp.maximum(1, cases), jnp.nan)))


class FoiledPart(NamedTuple):
    """A part of a mechanism that can be wrong: the key or the mask of a phase's selection."""

    part: str
    phase: int


Foiled = Mapping[str, Mapping[FoiledPart, FoiledHints]]
"""By mechanism, and by the part that is wrong."""


def foiled_hints(data: Data) -> Foiled:
    """What the foils of every mechanism would change on some graphs."""
    return {truth.mechanism: _foiled_hints(truth, data) for truth in data.truths}


def answers(data: Data, predictions: Mapping[str, Array]) -> Mapping[str, Answers]:
    """A network's raw hint predictions ``[steps, batch, …]`` as answers."""
    return {
        feature.name: answer_of(feature, predictions[feature.name])
        for feature in _of_nodes(data)
        if feature.name in predictions
    }


def _foiled_hints(truth: GroundTruth, data: Data) -> Mapping[FoiledPart, FoiledHints]:
    batch, program = data.batch, truth.program
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    positions = np.asarray(inputs["pos"], np.float64)
    run = interpret(program, inputs, batch.steps)
    live = jnp.arange(1, batch.max_hints)[:, None, None] < batch.lengths[:, None]
    claimed = [f for f in _of_nodes(data) if f.name in program.hints.keys() - program.unclaimed]
    numbers = frozenset(f.name for f in claimed if f.type is Type.SCALAR)

    def hints(states: Mapping[str, np.ndarray]) -> Mapping[str, Answers]:
        found = {}
        for feature in claimed:
            component = program.hints[feature.name]
            values = states[component.name][: batch.max_hints - 1]
            if component.kind is Kind.POINTER:
                values = pointed(values, positions)
            found[feature.name] = jnp.asarray(values, jnp.float32)
        return found

    true = {f.name: true_answer(f, batch.hints[f.name][1:]) for f in claimed}
    found = {}
    for phase in range(program.selections):
        for part, foils in run.foils._asdict().items():
            foiled = hints(foiled_states(program, inputs, run, foils, phase))
            counted = {
                name: live & (jnp.abs(value - true[name]) > _SAME_NUMBER)
                for name, value in foiled.items()
            }
            found[FoiledPart(part, phase)] = FoiledHints(numbers, true, foiled, counted)
    return found


def _of_nodes(data: Data) -> list[Feature]:
    return [f for f in data.batch.task.hints if f.location is Location.NODE]


def true_answer(feature: Feature, hint: Array) -> Answers:
    """A hint or output of the nodes as one number for each."""
    value = jnp.argmax(hint, axis=-1) if feature.type is Type.CATEGORICAL else hint
    return value.astype(jnp.float32)


def answer_of(feature: Feature, raw: Array) -> Answers:
    """A network's raw prediction of something of the nodes as one number for each."""
    match feature.type:
        case Type.SCALAR:
            return raw
        case Type.MASK:
            return 1.0 * (raw > 0)
        case Type.MASK_ONE:
            return jax.nn.one_hot(jnp.argmax(raw, axis=-1), raw.shape[-1])
        case _:
            return 1.0 * jnp.argmax(raw, axis=-1)
