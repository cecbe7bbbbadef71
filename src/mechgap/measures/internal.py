"""The internal gap: how far attention α̂ is from an exact mechanism's α*, step by step.

With one row per valid step t, sample and receiver, and n nodes:

    paper   Σ |α̂ - α*| / (t·n²)     as printed; at most 2/n, since rows sum to 1
    l1      Σ |α̂ - α*| / (t·n)      in [0, 2]
    tv      Σ |α̂ - α*| / (2·t·n)    in [0, 1]: the share of attention that is elsewhere

A mechanism can select several times in a hint step (its *phases*), and a network can pass messages
several times. Where they do so equally often, they are compared in order. Otherwise each phase is
compared with the message-passing step that is nearest to it on all graphs together.

All pairs of nodes count. A pointer that a network predicts and is fed back can let it attend to a
node that is no neighbour; what it attends there is a difference like any other, and its share is
told as `off_graph`. Numbers are means over a sample's rows, then over samples.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mechgap.display import html_table, picture
from mechgap.errors import InvalidInput
from mechgap.measures.data import Data, GroundTruth

Attention = Float[Array, "time batch heads receivers senders"]
Rows = Float[Array, "time batch receivers"]


@dataclass(frozen=True)
class Gap:
    """One network's attention beside one exact mechanism's. Active rows: α* is not oneself."""

    mechanism: str
    paper: float
    l1: float
    tv: float
    tv_active: float
    tv_best_head: float
    """The smallest of the heads' own; the others are of the heads' mean."""
    top1: float
    """Share of rows whose most-attended sender is α*'s."""
    top1_active: float
    tv_tied: float
    """As `tv`, where any sender counts that a correct run could have chosen."""
    tv_tied_active: float
    top1_tied_active: float
    entropy: float
    """Of a row, in nats: 0 is a decision."""
    sharpness: float
    """1 - entropy / log(number of neighbours): 1 is a decision, 0 is uniform."""
    off_graph: float
    """Share of attention on pairs that are no neighbours."""
    tv_by_step: np.ndarray
    tv_active_by_step: np.ndarray
    tv_by_sample: np.ndarray
    tv_by_phase: np.ndarray
    tv_active_by_phase: np.ndarray
    top1_active_by_phase: np.ndarray

    @property
    def numbers(self) -> dict[str, float]:
        """The single numbers, by name."""
        return {k: v for k, v in vars(self).items() if isinstance(v, float)}

    @property
    def series(self) -> dict[str, np.ndarray]:
        """The arrays, by name."""
        return {k: v for k, v in vars(self).items() if isinstance(v, np.ndarray)}

    def plot(self) -> Any:
        """The gap over time, all rows and active ones."""
        figure = picture(4.2, 2.6)
        axes = figure.subplots()
        steps = np.arange(1, len(self.tv_by_step) + 1)
        axes.plot(steps, self.tv_by_step, "o-", color="#0072b2", label="all rows")
        axes.plot(steps, self.tv_active_by_step, "s--", color="#d55e00", label="active rows")
        axes.set(xlabel="step", ylabel="attention elsewhere (tv)", ylim=(0, 1.02))
        axes.set_title(f"gap to {self.mechanism}")
        axes.legend()
        return figure

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.4f}") for name, value in self.numbers.items()]
        return html_table(["", ""], rows, f"gap to {self.mechanism}")


def row_l1(a: Float[Array, "*rows senders"], b: Float[Array, "*rows senders"]) -> Array:
    """Each row's distance, in [0, 2].

    >>> float(row_l1(jnp.array([0.5, 0.5]), jnp.array([1.0, 0.0])))
    1.0
    """
    return jnp.sum(jnp.abs(a - b), axis=-1)


def internal_gap(attention: Attention, truth: GroundTruth, data: Data) -> Gap:
    """The gap between some attention on the data's graphs and a mechanism's."""
    steps, (_, graphs, nodes) = data.batch.steps, truth.senders.shape
    time, batch, _, *pairs = attention.shape
    if time % steps or batch != graphs or pairs != [nodes, nodes]:
        raise InvalidInput(
            "attention must have the same number of steps for every hint of these graphs, "
            f"[{steps} × steps, {graphs}, heads, {nodes}, {nodes}]; got {list(attention.shape)}"
        )
    found = jax.tree.map(np.asarray, _internal_gap(attention, truth, data))
    numbers: dict[str, Any] = {k: float(v) if v.ndim == 0 else v for k, v in found.items()}
    return Gap(mechanism=truth.mechanism, **numbers)


def by_phases(
    attention: Attention, truth: GroundTruth, data: Data
) -> Float[Array, "phases batch heads receivers senders"]:
    """For every phase of a mechanism the message-passing step that it is compared with."""
    hints, phases = data.batch.steps, truth.phases
    if attention.shape[0] == hints * phases:
        return attention
    steps = attention.reshape(hints, -1, *attention.shape[1:])
    exact = truth.attention.reshape(hints, phases, *truth.attention.shape[1:])

    def apart(step: Attention, phase: Attention) -> Float[Array, ""]:
        rows = row_l1(jnp.mean(step, axis=2), phase[:, :, 0])
        return mean(rows, jnp.broadcast_to(data.valid[..., None], rows.shape))

    nearest = [
        jnp.argmin(jnp.stack([apart(steps[:, s], exact[:, p]) for s in range(steps.shape[1])]))
        for p in range(phases)
    ]
    return steps[:, jnp.stack(nearest)].reshape(hints * phases, *attention.shape[1:])


@eqx.filter_jit
def _internal_gap(attention: Attention, truth: GroundTruth, data: Data) -> dict[str, Array]:
    nodes = attention.shape[-1]
    attention = by_phases(attention, truth, data)
    per_head = attention
    attention = jnp.mean(attention, axis=2)
    valid = jnp.repeat(data.valid, truth.phases, axis=0)[..., None]
    valid = jnp.broadcast_to(valid, truth.senders.shape)
    active = valid & truth.active

    def of_hints(rows: Array) -> Array:
        """The phases of a hint step beside each other, as so many more rows."""
        several = rows.reshape(data.batch.steps, truth.phases, *rows.shape[1:])
        return jnp.moveaxis(several, 1, 2).reshape(data.batch.steps, rows.shape[1], -1)

    def of_phases(rows: Array) -> Array:
        """Every phase as one step."""
        several = rows.reshape(data.batch.steps, truth.phases, *rows.shape[1:])
        return jnp.moveaxis(several, 0, 2).reshape(truth.phases, rows.shape[1], -1)

    star = truth.attention[:, :, 0]
    apart = row_l1(attention, star)
    tied = 1 - jnp.sum(jnp.where(truth.acceptable, attention, 0), -1)
    most = jnp.argmax(attention, -1)
    right = 1.0 * (most == truth.senders)
    right_tied = jnp.take_along_axis(truth.acceptable, most[..., None], -1)[..., 0] * 1.0
    entropy = -jnp.sum(attention * jnp.log(jnp.maximum(attention, 1e-30)), -1)
    neighbours = jnp.sum(data.support, -1)
    choice = valid & (neighbours > 1)
    relative = entropy / jnp.log(jnp.maximum(neighbours, 2))
    off = jnp.sum(jnp.where(data.support, 0, attention), -1)
    heads = jax.vmap(lambda a: mean(row_l1(a, star), valid), in_axes=2)(per_head)
    l1 = mean(apart, valid)
    return {
        "paper": l1 / nodes,
        "l1": l1,
        "tv": l1 / 2,
        "tv_active": mean(apart, active) / 2,
        "tv_best_head": jnp.min(heads) / 2,
        "top1": mean(right, valid),
        "top1_active": mean(right, active),
        "tv_tied": mean(tied, valid),
        "tv_tied_active": mean(tied, active),
        "top1_tied_active": mean(right_tied, active),
        "entropy": mean(entropy, valid),
        "sharpness": 1 - mean(relative, choice),
        "off_graph": mean(off, valid),
        "tv_by_step": by_step(of_hints(apart), of_hints(valid)) / 2,
        "tv_active_by_step": by_step(of_hints(apart), of_hints(active)) / 2,
        "tv_by_sample": by_sample(apart, valid) / 2,
        "tv_by_phase": by_step(of_phases(apart), of_phases(valid)) / 2,
        "tv_active_by_phase": by_step(of_phases(apart), of_phases(active)) / 2,
        "top1_active_by_phase": by_step(of_phases(right), of_phases(active)),
    }


def by_sample(rows: Rows, counted: Bool[Array, "time batch receivers"]) -> Float[Array, "batch"]:
    """Each sample's mean over its counted rows; NaN where there are none."""
    return _ratio(rows, counted, (0, 2))


def by_step(rows: Rows, counted: Bool[Array, "time batch receivers"]) -> Float[Array, "time"]:
    """Each step's mean over the counted rows of all samples; NaN where there are none."""
    return _ratio(rows, counted, (1, 2))


def mean(rows: Rows, counted: Bool[Array, "time batch receivers"]) -> Float[Array, ""]:
    """The mean over a sample's counted rows, then over samples that have any."""
    return jnp.nanmean(by_sample(rows, counted))


def _ratio(rows: Rows, counted: Array, axes: tuple[int, ...]) -> Array:
    total = partial(jnp.sum, axis=axes)
    count = total(counted)
    sums = total(jnp.where(counted, rows, 0))
    return jnp.where(count > 0, sums / jnp.maximum(1, count), jnp.nan)
