"""What a network makes of an interchange: does it come to what the program comes to?"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.measures.foiled import answer_of
from mechgap.measures.interchange.cases import Cases, Told
from mechgap.network.decoders import postprocess
from mechgap.network.network import Network, Unrolled, unroll
from mechgap.network.swap import Swap
from mechgap.tasks.specs import Feature, Location, Stage, Type


@dataclass(frozen=True)
class Share:
    """Of cases in which the change makes a difference."""

    cases: int
    follows: float
    """Share in which the network answers as the program does with the change, wherever it makes a
    difference."""
    keeps: float
    """Share in which it answers there as the program does without."""


@dataclass(frozen=True)
class Agreement:
    """In how many cases a network comes to what the program comes to."""

    outputs: Share
    """At the end of the run."""
    hints: Share
    """After the step that the change falls into."""


class Moment(eqx.Module):
    """What a network holds of the source runs at the moments of some cases."""

    hidden: Float[Array, "cases nodes hidden"]
    hints: Mapping[str, Array]

    def __getitem__(self, some: Int[Array, "chosen"]) -> "Moment":
        """Of some of the cases."""
        return jax.tree.map(lambda x: x[some], self)


@eqx.filter_jit
def at_moment(network: Network, cases: Cases) -> Moment:
    """Run a network on the source graphs, up to the moment of each case."""
    config = network.config
    ran = unroll(network, cases.source, training=False, keep_steps=True)
    assert ran.steps is not None
    case = jnp.arange(cases.count)
    per_hint = config.nb_msg_passing_steps
    hidden = ran.steps.hidden.reshape(-1, *ran.steps.hidden.shape[2:])
    # The first moment is after one hint step, or after one message-passing step.
    before = hidden[cases.time * per_hint + cases.phase - 1, case]
    fed = network.task.hints if config.encodes_hints else ()
    raw = {f.name: ran.hints[f.name][jnp.maximum(0, cases.time - 1), case] for f in fed}
    return Moment(before, postprocess(fed, raw, config.hardens_hints(False)))


def agreement(
    network: Network, cases: Cases, moment: Moment, part: Float[Array, "hidden hidden"]
) -> Agreement:
    """What a network makes of the cases, with the part of its state that carries the variable."""
    return Agreement(*(_share(each) for each in _agreeing(network, cases, moment, part)))


class _Agreeing(eqx.Module):
    follows: Bool[Array, "cases"]
    keeps: Bool[Array, "cases"]
    counted: Bool[Array, "cases"]


def _share(of: _Agreeing) -> Share:
    cases = int(jnp.sum(of.counted))
    if not cases:
        return Share(0, float("nan"), float("nan"))
    return Share(cases, *(float(jnp.sum(x & of.counted)) / cases for x in (of.follows, of.keeps)))


@eqx.filter_jit
def _agreeing(
    network: Network, cases: Cases, moment: Moment, part: Float[Array, "hidden hidden"]
) -> tuple[_Agreeing, _Agreeing]:
    said = interchanged(network, cases, moment, part)
    outputs = {f.name: answer_of(f, said.outputs[f.name]) for f in network.task.outputs}
    at = (cases.time, jnp.arange(cases.count))
    hints = {
        f.name: _spread(f, said.hints[f.name][at], cases)
        for f in network.task.hints
        if f.name in said.hints
    }
    return (
        _agreed(cases.outputs, outputs, _scalars(network, Stage.OUTPUT), cases.count),
        _agreed(cases.hints, hints, _scalars(network, Stage.HINT), cases.count),
    )


def interchanged(network: Network, cases: Cases, moment: Moment, part: Array) -> Unrolled:
    """The network's run on the base graphs, with a part of the source runs put in."""
    fed = {name: cases.fed.get(name, jnp.bool_(False)) for name in moment.hints}
    swap = Swap(cases.time, cases.phase, cases.nodes, moment.hidden, part, moment.hints, fed)
    return unroll(network, cases.base, training=False, swap=swap)


def _spread(feature: Feature, raw: Array, cases: Cases) -> Array:
    if feature.location is Location.GRAPH:
        return jnp.broadcast_to(raw[:, None], cases.nodes.shape)
    return answer_of(feature, raw)


def _scalars(network: Network, stage: Stage) -> set[str]:
    return {f.name for f in network.task.stage(stage) if f.type is Type.SCALAR}


def _agreed(
    told: Mapping[str, Told], said: Mapping[str, Array], numbers: set[str], count: int
) -> _Agreeing:
    def like(this: Array, that: Array, name: str) -> Array:
        """Numbers are like this one if they are nearer to it."""
        off = jnp.abs(said[name] - this)
        return off < jnp.abs(said[name] - that) if name in numbers else off == 0

    told = {name: each for name, each in told.items() if name in said}
    if not told:  # a network that predicts no hints
        nowhere = jnp.zeros(count, bool)
        return _Agreeing(nowhere, nowhere, nowhere)
    differs = jnp.stack([t.differs for t in told.values()])
    follows = jnp.stack([like(t.changed, t.base, n) for n, t in told.items()])
    keeps = jnp.stack([like(t.base, t.changed, n) for n, t in told.items()])
    everywhere = partial(jnp.all, axis=(0, 2))
    return _Agreeing(
        follows=everywhere(follows | ~differs),
        keeps=everywhere(keeps | ~differs),
        counted=jnp.any(differs, axis=(0, 2)),
    )
