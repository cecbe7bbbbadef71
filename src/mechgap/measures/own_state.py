"""Does a network do what the program would do from where the network is?

Attention is compared with the program's run, step by step. A network that goes another way once,
and be it as good a way, is compared with a run that it is not in from then on. So it is also
compared with the program from the network's *own* state before every step: the one that its hints
say. What no hint says is what the program itself made of it in the step before. In a step of
several phases, each is compared from where those before it have led the network: by whom nodes
attended to most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from mechgap.measures.data import Data, GroundTruth
from mechgap.measures.internal import (
    Headline,
    at_steps,
    compared_steps,
    headline_by_sample,
    mean_of_graphs,
)
from mechgap.network.decoders import postprocess
from mechgap.network.network import Network
from mechgap.network.trace import Trace
from mechgap.programs.components import Component, Kind
from mechgap.programs.interpreter import selections_from
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Type


@dataclass(frozen=True)
class FromOwnState:
    """The headline beside a mechanism that goes on from the network's own state."""

    agreement: float | None
    misplaced: float | None
    by_phase: tuple[float, ...]

    @staticmethod
    def of(blocks: Sequence[Headline]) -> "FromOwnState":
        """The means over the graphs of one or several blocks."""
        return FromOwnState(
            agreement=float(mean_of_graphs([h.agreement for h in blocks])),
            misplaced=float(mean_of_graphs([h.misplaced for h in blocks])),
            by_phase=tuple(mean_of_graphs([h.by_phase for h in blocks]).tolist()),
        )


def own_truth(
    program: Program,
    batch: Batch,
    predictions: Mapping[str, Array],
    attention: Float[Array, "time batch heads receivers senders"],
) -> GroundTruth:
    """Whom a program would select from where a network is.

    Args:
        program: To compare with.
        batch: The graphs.
        predictions: What the network has made of hints, raw.
        attention: Its own, in as many steps as the program has phases.
    """
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    positions = np.asarray(batch.inputs["pos"], np.float64)
    hints = with_own_hints(batch, predictions).hints
    told = {
        component.name: _state(component, np.asarray(hints[hint])[: batch.steps], positions)
        for hint, component in program.hints.items()
        if hint in predictions
    }
    attended = np.asarray(attention).mean(2).argmax(-1)
    found = jax.tree.map(jnp.asarray, selections_from(program, inputs, told, attended))
    return GroundTruth(program, found.senders, found.acceptable, found.updated, found.foils)


@eqx.filter_jit
def with_own_hints(batch: Batch, predictions: Mapping[str, Array]) -> Batch:
    """The same graphs with the trace that a network has made of them in place of the true one.

    Args:
        batch: The graphs. Their first hints are given to a network, so they stay.
        predictions: What it has made of the others, raw. Hints that it does not predict stay, too.
    """

    def own(feature: Feature) -> Array:
        hint = batch.hints[feature.name]
        if feature.name not in predictions:
            return hint
        raw = predictions[feature.name][: batch.max_hints - 1]
        if feature.type is Type.POINTER:
            decided = jnp.argmax(raw, axis=-1)
        else:
            decided = postprocess([feature], {feature.name: raw}, hard=True)[feature.name]
        return jnp.concatenate([hint[:1], decided.astype(hint.dtype)])

    hints = {feature.name: own(feature) for feature in batch.task.hints}
    return Batch(batch.task, batch.inputs, hints, batch.outputs, batch.lengths)


def _state(
    component: Component,
    hint: Num[np.ndarray, "steps batch ..."],
    positions: Float[np.ndarray, "batch nodes"],
) -> Float[np.ndarray, "steps batch nodes"]:
    """What a component is before every step, by a hint that has been decided."""
    shape = (len(hint), *positions.shape)
    match component.kind:
        case Kind.POINTER:
            return np.take_along_axis(np.broadcast_to(positions, shape), hint.astype(int), axis=-1)
        case Kind.CLASS:
            return hint.argmax(-1).astype(np.float64)
        case Kind.TOTAL:
            return np.broadcast_to(hint[..., None], shape).astype(np.float64)
    return hint.astype(np.float64)


def from_own_state(network: Network, data: Data, trace: Trace) -> dict[str, FromOwnState]:
    """A network's attention on some graphs beside every mechanism; nothing without hints."""
    if not network.config.decodes_hints:
        return {}
    found = ((t.mechanism, headline_from_own_state(data, t, trace)) for t in data.truths)
    return {name: FromOwnState.of([headline]) for name, headline in found}


def headline_from_own_state(data: Data, truth: GroundTruth, trace: Trace) -> Headline:
    """Every graph's own numbers, beside a mechanism that goes on from the network's own state."""
    chosen = compared_steps(trace.attention, truth, data)
    compared = at_steps(trace.attention, chosen, data.batch.steps)
    own = own_truth(truth.program, data.batch, trace.hints, compared)
    return jax.tree.map(np.asarray, _headline(compared, own, data.valid))


_headline = eqx.filter_jit(headline_by_sample)
