"""Does a network use what it attends to? Its attention is patched, and accuracy counted again.

- its own at another temperature: `hardened` to its largest entry, `sharper`, `softer`;
- its own, with α* put into one class of rows only: which part of the gap matters?
- α* in all rows, `uniform`, `self`;
- *foils*: α* but for one part of the mechanism's selection, in every row where it selects. The
  foil of the `key` passes the mask and is selected last; the foil of the `mask` does not pass it
  and would be selected first. A part is *used* if its foil costs what the network could lose.

A program can recover from a foil: Bellman-Ford selects again in every step. So a foil is judged by
the hints of the very step that it is in, and among these by the ones that the program itself would
change (`foiled`). The network comes to that step under α*.

Keeping accuracy under α* does not prove that the network uses it: a node can be right whatever is
attended to (the *floor*), and a part of α* can be idle. So every accuracy stands beside the floor,
and every α* beside its foils.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.measures.baselines import fixed_baselines, random_attention
from mechgap.measures.data import Data, GroundTruth
from mechgap.measures.foiled import (
    Answers,
    Foiled,
    FoiledHints,
    FoiledPart,
    answers,
    foiled_hints,
)
from mechgap.measures.internal import ROWS
from mechgap.network.network import Network, unroll
from mechgap.network.patch import Patch
from mechgap.network.trace import Trace, run
from mechgap.tasks.batch import Batch
from mechgap.tasks.scores import output_scores, right_nodes
from mechgap.tasks.specs import Type

Attention = Float[Array, "time batch heads receivers senders"]
Said = Mapping[str, Answers]

TEMPERATURES = {"hardened": 0.0, "sharper": 0.5, "softer": 2.0}
RANDOM_ATTENTIONS = 8
"""The floor is what is right under each of so many."""
RANDOM_STEPS = 2
"""A hint is right under any attention if it is so under each of so many."""
USED, IDLE, ROOM = 0.5, 0.1, 0.05
"""A part is used if its foil costs half of what could be lost, idle if a tenth; and there must be
something to lose."""


@dataclass(frozen=True)
class Foil:
    """A mechanism's attention that is wrong in one part, and what a network makes of it.

    Shares are of cases: hints of a node, in the step of the foil, that the program changes by it.
    """

    part: str
    """key or mask."""
    phase: int
    cases: int
    right: float
    """Share that is right all the same."""
    right_under_exact: float
    """Share that is right under α* itself."""
    right_under_any: float
    """Share that is right under random attention too."""
    follows: float
    """Share that is what the program makes of the foil."""
    accuracy: float
    """Of outputs, with the foil in every step."""
    named: float
    """With the foil in every step, share of outputs that name the foil that the node was last made
    to attend to, where that is not the answer; NaN where outputs are no pointers."""

    ALSO_TOLD: ClassVar = ("verdict",)

    @property
    def verdict(self) -> str:
        """Whether the network uses this part of the mechanism."""
        room = self.right_under_exact - self.right_under_any
        if not room >= ROOM:
            return "cannot tell"
        lost = (self.right_under_exact - self.right) / room
        return "used" if lost >= USED else "idle" if lost <= IDLE else "partly used"


@dataclass(frozen=True)
class ForcedMechanism:
    """Accuracies of a network that is made to attend as a mechanism does."""

    exact: float
    """α* in every row."""
    rows: Mapping[str, float]
    """α* in one class of rows only, and the network's own attention in all others."""
    foils: tuple[Foil, ...]
    """By the part that is wrong; those that change anything."""


@dataclass(frozen=True)
class Causal:
    """A network's accuracy under its own attention, and under others."""

    own: float
    floor: float
    """Share of nodes that are right whatever is attended to."""
    tempered: Mapping[str, float]
    """Its own attention hardened to its largest entry, sharper and softer."""
    fixed: Mapping[str, float]
    """Uniform and self attention."""
    mechanisms: Mapping[str, ForcedMechanism]
    """Those whose phases fit the network's message-passing steps."""

    @property
    def without_mechanism(self) -> dict[str, float]:
        """Accuracies under attention that has nothing to do with a mechanism, by name."""
        return {"own": self.own, "floor": self.floor, **self.tempered, **self.fixed}


def causal(network: Network, data: Data, foiled: Foiled | None = None) -> Causal:
    """Patch a network's attention in every way, and count what it still answers.

    `foiled` is what foils would change on these graphs: `foiled_hints(data)`, the same for all
    networks, and computed here if it is not given.
    """
    foiled = foiled_hints(data) if foiled is None else foiled
    return Causal(
        own=_score_at(network, data, 1.0),
        floor=floor_score(network, data),
        tempered={name: _score_at(network, data, value) for name, value in TEMPERATURES.items()},
        fixed={
            name: accuracy_under(network, data, given)
            for name, given in fixed_baselines(data).items()
        },
        mechanisms={
            truth.mechanism: _forced(network, data, truth, foiled[truth.mechanism])
            for truth in data.truths
            if can_force(network, data, truth.attention)
        },
    )


def _forced(
    network: Network, data: Data, truth: GroundTruth, foiled: Mapping[FoiledPart, FoiledHints]
) -> ForcedMechanism:
    classes = (
        truth.updated,
        truth.active & ~truth.updated,
        ~truth.active & ~truth.updated,
    )
    return ForcedMechanism(
        exact=accuracy_under(network, data, truth.attention),
        rows={
            name: float(
                _right(network, data.batch, _patch(network, data, rows, truth.attention)).score
            )
            for name, rows in zip(ROWS, classes, strict=True)
        },
        foils=foils(network, data, truth, foiled),
    )


def foils(
    network: Network, data: Data, truth: GroundTruth, foiled: Mapping[FoiledPart, FoiledHints]
) -> tuple[Foil, ...]:
    """What a network makes of each part of a mechanism's selection that is wrong.

    `foiled` is what they change, of this mechanism: `foiled_hints(data)[truth.mechanism]`.
    """
    everybody = _rows(network, data, True)
    phase_of = jnp.arange(len(truth.senders))[:, None, None] % truth.phases

    def attending(senders: Int[Array, "..."], rows: Bool[Array, "..."]) -> Patch:
        return _patch(network, data, rows, _one_hot(senders))

    def until(phase: int) -> Bool[Array, "time batch receivers"]:
        """From the next phase on a network attends by itself."""
        return everybody & (phase_of <= phase)

    def foils_of(phase: int) -> list[Foil]:
        """Phase by phase: patches of long traces are large."""
        given = {
            at: _FoilGiven.of(truth, data, at)
            for at, cases in foiled.items()
            if cases.cases and at.phase == phase
        }
        if not given:
            return []
        chance = [random_attention(data, k) for k in range(RANDOM_STEPS)]
        asides = (
            attending(truth.senders, until(phase)),
            *(_patch(network, data, until(phase), each) for each in chance),
            *(attending(each.senders, until(phase)) for each in given.values()),
        )
        # Where a network goes on by itself it needs its own attention, so this is a patch, too.
        ran = _right(network, data.batch, attending(truth.senders, everybody), asides)
        exact, *others = (answers(data, hints) for hints in ran.asides)
        anyhow, wrong = others[:RANDOM_STEPS], others[RANDOM_STEPS:]
        return [
            foil(at, each, exact, anyhow, said)
            for (at, each), said in zip(given.items(), wrong, strict=True)
        ]

    def foil(
        at: FoiledPart, given: _FoilGiven, exact: Said, anyhow: Sequence[Said], said: Said
    ) -> Foil:
        cases = foiled[at]
        by_chance = [cases.right(each) for each in anyhow]
        always_given = answered(network, data, _one_hot(given.senders))
        return Foil(
            part=at.part,
            phase=at.phase,
            cases=cases.cases,
            right=cases.share(cases.right(said)),
            right_under_exact=cases.share(cases.right(exact)),
            right_under_any=cases.share(
                {
                    name: jnp.all(jnp.stack([each[name] for each in by_chance]), axis=0)
                    for name in by_chance[0]
                }
            ),
            follows=cases.share(cases.follows(said)),
            accuracy=float(always_given.score),
            named=_named(data.batch, always_given.outputs, given),
        )

    return tuple(foil for phase in range(truth.phases) for foil in foils_of(phase))


class _FoilGiven(NamedTuple):
    """α* with a foil in one phase of every hint step."""

    senders: Int[Array, "time batch nodes"]
    wrong: Bool[Array, "time batch nodes"]
    """Where the sender is the foil."""

    @staticmethod
    def of(truth: GroundTruth, data: Data, at: FoiledPart) -> "_FoilGiven":
        foil = truth.foils._asdict()[at.part]
        here = jnp.arange(len(foil))[:, None, None] % truth.phases == at.phase
        live = jnp.repeat(data.valid, truth.phases, axis=0)[..., None]
        wrong = (foil != truth.senders) & live & here
        return _FoilGiven(jnp.where(wrong, foil, truth.senders), wrong)

    @property
    def last(self) -> Int[Array, "batch nodes"]:
        """Whom each node was given the last time that it was given a foil."""
        times = jnp.arange(len(self.wrong))[:, None, None]
        when = jnp.argmax(jnp.where(self.wrong, times, -1), axis=0)
        return jnp.take_along_axis(self.senders, when[None], axis=0)[0]


class Answered(eqx.Module):
    """What a patched network answered, and where that is right."""

    score: Float[Array, ""]
    nodes: Bool[Array, "batch nodes"]
    outputs: Mapping[str, Array]
    hints: Mapping[str, Array]
    asides: tuple[Mapping[str, Array], ...]
    """What each step alone would have predicted with other patches."""


@eqx.filter_jit
def _right(
    network: Network, batch: Batch, change: Patch | Attention, asides: tuple[Patch, ...] = ()
) -> Answered:
    """What is answered with a patch, or with an attention in all rows: then a network's own is not
    computed, which is most of the work."""
    steps, substeps = batch.steps, network.config.nb_msg_passing_steps

    def split(change: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape(steps, substeps, *x.shape[1:]), change)

    here = {"patch": change} if isinstance(change, Patch) else {"replace": {"attention": change}}
    every = [split(aside) for aside in asides]
    ran = unroll(network, batch, training=False, asides=every, **split(here))
    return Answered(
        output_scores(batch, ran.outputs)["score"],
        right_nodes(batch, ran.outputs),
        ran.outputs,
        ran.hints,
        ran.asides,
    )


def _patch(
    network: Network, data: Data, rows: Bool[Array, "..."], given: Attention, temperature=1.0
) -> Patch:
    """A patch in every message-passing step, also of what is told for every hint only."""
    fit = partial(_at_every_step, network, data)
    rows, given = fit(rows), fit(jnp.mean(given, axis=2, keepdims=True))
    return Patch(rows, given, jnp.full(rows.shape[0], temperature))


def _everywhere(
    network: Network, data: Data, attention: Attention
) -> Float[Array, "substeps batch every_head receivers senders"]:
    """The mean of its heads, in each head and in every message-passing step."""
    one = _at_every_step(network, data, jnp.mean(attention, axis=2, keepdims=True))
    return jnp.broadcast_to(one, (*one.shape[:2], network.config.nb_heads, *one.shape[3:]))


def _one_hot(senders: Int[Array, "time batch nodes"]) -> Attention:
    return jax.nn.one_hot(senders, senders.shape[-1])[:, :, None]


def _at_every_step(network: Network, data: Data, values: Array) -> Array:
    if len(values) == data.batch.steps:
        return jnp.repeat(values, network.config.nb_msg_passing_steps, axis=0)
    return values


def _rows(network: Network, data: Data, which: bool) -> Bool[Array, "time batch receivers"]:
    time = data.batch.steps * network.config.nb_msg_passing_steps
    return jnp.full((time, data.batch.size, data.batch.nodes), which)


def _named(batch: Batch, outputs: Mapping[str, Array], given: _FoilGiven) -> float:
    meant, among = given.last, jnp.any(given.wrong, axis=0)
    for feature in batch.task.outputs:
        if feature.type is Type.POINTER:
            said = jnp.argmax(outputs[feature.name], axis=-1)
            return _share(said == meant, among & (meant != batch.outputs[feature.name]))
    return float("nan")


def _share(right: Bool[Array, "batch nodes"], among: Bool[Array, "batch nodes"]) -> float:
    """The mean over a graph's nodes, then over graphs that have any."""
    count = jnp.sum(among, axis=1)
    each = jnp.where(count > 0, jnp.sum(right & among, axis=1) / jnp.maximum(1, count), jnp.nan)
    return float(jnp.nanmean(each))


def run_forced(network: Network, data: Data, attention: Attention) -> Trace:
    """Run a network with a given attention: the mean of its heads, in each head."""
    return run(network, data.batch, replace={"attention": _everywhere(network, data, attention)})


def run_hardened(network: Network, data: Data) -> Trace:
    """Run a network with every row of its own attention hardened to its largest entry."""
    return run(network, data.batch, patch=_tempering(network, data, TEMPERATURES["hardened"]))


def floor_score(network: Network, data: Data) -> float:
    """The share of nodes that are right whatever is attended to."""
    always = jnp.ones((data.batch.size, data.batch.nodes), bool)
    for k in range(RANDOM_ATTENTIONS):
        always &= answered(network, data, random_attention(data, k)).nodes
        if not jnp.any(always):
            break  # nothing else can bring any back
    return float(jnp.mean(always))


def accuracy_under(network: Network, data: Data, attention: Attention) -> float:
    """Output accuracy with a given attention."""
    return float(answered(network, data, attention).score)


def answered(network: Network, data: Data, attention: Attention) -> Answered:
    """What a network answers with a given attention, and where that is right."""
    return _right(network, data.batch, _everywhere(network, data, attention))


def hardened_score(network: Network, data: Data) -> float:
    """Output accuracy with every row of its own attention hardened to its largest entry."""
    return _score_at(network, data, TEMPERATURES["hardened"])


def _score_at(network: Network, data: Data, temperature: float) -> float:
    return float(_right(network, data.batch, _tempering(network, data, temperature)).score)


def _tempering(network: Network, data: Data, temperature: float) -> Patch:
    """Nobody is given another attention; everybody's own is at another temperature."""
    nobody = _rows(network, data, False)
    return _patch(network, data, nobody, fixed_baselines(data)["self"], temperature)


def can_force(network: Network, data: Data, attention: Attention) -> bool:
    """Whether an attention says what to do in every message-passing step of a network.

    It has one for each, or one for each hint, which is then used in all steps of the hint.
    """
    hints = data.batch.steps
    return len(attention) in (hints, hints * network.config.nb_msg_passing_steps)
