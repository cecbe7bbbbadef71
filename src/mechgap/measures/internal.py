"""The internal gap: how far attention α̂ is from an exact mechanism's α*, and what that is made of.

A row is one receiver in one valid step; its α* is all on one sender, so what is *misplaced* in it
is the attention that is on others. Rows are of three classes:

    updated     the mechanism changes the receiver's state by whom it attends to
    unchanged   it attends to another node, and the state stays as it is
    inactive    it attends to the receiver itself

and misplaced attention is of three kinds:

    tie         on a sender that another correct run could have chosen
    soft        on others, where the largest entry is one that a correct run could have chosen
    wrong       on others, where the largest entry is not

The nine parts add up to the paper's measure, which is told in three scales, for n nodes:

    tv      the mean of misplaced attention over all rows, in [0, 1]: half of Σ|α̂ - α*| / (t·n)
    l1      Σ|α̂ - α*| / (t·n)      in [0, 2]
    paper   Σ|α̂ - α*| / (t·n²)     as printed; at most 2/n, since rows sum to 1

The *headline* is about the updated nodes alone: `agreement`, the share of them whose largest entry
is a sender that a correct run could have chosen, and `misplaced`, the attention there that is on
nobody such. Where entries are equally large, each counts for its share, so that attention that
knows nothing scores what chance does.

A mechanism can select several times in a hint step (its *phases*), and a network can pass messages
several times. Where they do so equally often, they are compared in order. Otherwise each phase is
compared with the message-passing step that agrees with it most on all graphs together.

All pairs of nodes count. A pointer that a network predicts and is fed back can let it attend to a
node that is no neighbour; what it attends there is a difference like any other, and its share is
told as `off_graph`. Numbers are means over a graph's rows, then over graphs that have any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mechgap.display import html_table, picture
from mechgap.errors import InvalidInput
from mechgap.measures.data import Data, GroundTruth

Attention = Float[Array, "time batch heads receivers senders"]
Rows = Float[Array, "time batch receivers"]
Counted = Bool[Array, "time batch receivers"]

ROWS = ("updated", "unchanged", "inactive")
KINDS = ("tie", "soft", "wrong")
Parts = Mapping[str, Mapping[str, float]]
"""What a gap is the sum of, by class of rows and kind."""


class Headline(NamedTuple):
    """The numbers of one comparison that stand beside each other everywhere."""

    agreement: Any
    """Of the updated nodes, the share whose largest entry a correct run could have chosen."""
    agreement_strict: Any
    """The share whose largest entry is the mechanism's own choice, ties and all."""
    misplaced: Any
    """Attention in updated nodes that is on nobody whom a correct run could have chosen."""
    tv: Any
    """The paper's measure: misplaced attention in all rows, ties included."""
    parts: Any
    """What `tv` is the sum of: ``[classes of rows, kinds]``."""
    by_phase: Any
    """Agreement in each of the mechanism's phases."""


@dataclass(frozen=True)
class Gap:
    """One network's attention beside one exact mechanism's."""

    mechanism: str
    agreement: float
    agreement_strict: float
    misplaced: float
    tv: float
    l1: float
    paper: float
    tv_best_head: float
    """The smallest of the heads' own; all others are of the heads' mean."""
    entropy: float
    """Of a row, in nats: 0 is a decision."""
    sharpness: float
    """1 - entropy / log(number of neighbours): 1 is a decision, 0 is uniform."""
    off_graph: float
    """Share of attention on pairs that are no neighbours."""
    rows: Mapping[str, int]
    """How many rows of each class there are."""
    parts: Parts
    """What `tv` is the sum of, by class of rows and kind."""
    parts_by_step: Float[np.ndarray, "steps classes kinds"]
    agreement_by_step: Float[np.ndarray, "steps"]
    agreement_by_phase: Float[np.ndarray, "phases"]
    misplaced_by_phase: Float[np.ndarray, "phases"]
    tv_by_sample: Float[np.ndarray, "samples"]
    agreement_by_sample: Float[np.ndarray, "samples"]

    @property
    def tv_by_step(self) -> Float[np.ndarray, "steps"]:
        """The paper's measure at every step."""
        return self.parts_by_step.sum((1, 2))

    @property
    def part_array(self) -> Float[np.ndarray, "classes kinds"]:
        """The parts as numbers."""
        return part_array(self.parts)

    def plot(self) -> Any:
        """What the gap is made of at every step."""
        figure = picture(4.8, 2.8)
        axes = figure.subplots()
        steps = np.arange(1, len(self.parts_by_step) + 1)
        below = np.zeros(len(steps))
        for name, colour, values in stacked_parts(self.parts_by_step):
            axes.bar(steps, values, bottom=below, color=colour, label=name)
            below = below + values
        axes.set(xlabel="step", ylabel="misplaced attention (tv)", ylim=(0, 1.02))
        axes.set_title(f"gap to {self.mechanism}: {100 * self.agreement:.1f} % agreement")
        axes.legend(fontsize=7)
        return figure

    def _repr_html_(self) -> str:
        rows = [(name, f"{v:.4f}") for name, v in vars(self).items() if isinstance(v, float)]
        return html_table(["", ""], rows, f"gap to {self.mechanism}")


def stacked_parts(
    parts: Float[np.ndarray, "*any classes kinds"],
) -> list[tuple[str, str, Any]]:
    """The parts of a gap as they are drawn on top of each other: name, colour, value."""
    updated = parts[..., ROWS.index("updated"), :]
    whole = {name: parts[..., k, :].sum(-1) for k, name in enumerate(ROWS)}
    return [
        ("updated nodes, wrong", "#d55e00", updated[..., KINDS.index("wrong")]),
        ("updated nodes, soft", "#e69f00", updated[..., KINDS.index("soft")]),
        ("updated nodes, tie", "#f0e442", updated[..., KINDS.index("tie")]),
        ("unchanged nodes", "#9fb4c7", whole["unchanged"]),
        ("inactive nodes", "#d3d9df", whole["inactive"]),
    ]


def as_parts(values: Float[np.ndarray, "classes kinds"]) -> dict[str, dict[str, float]]:
    """Parts by name."""
    return {
        rows: {kind: float(values[i, k]) for k, kind in enumerate(KINDS)}
        for i, rows in enumerate(ROWS)
    }


def part_array(parts: Parts) -> Float[np.ndarray, "classes kinds"]:
    """The other way round."""
    return np.array([[parts[rows][kind] for kind in KINDS] for rows in ROWS])


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
    numbers["parts"] = as_parts(numbers["parts"])
    numbers["rows"] = {k: int(v) for k, v in zip(ROWS, numbers["rows"], strict=True)}
    return Gap(mechanism=truth.mechanism, **numbers)


def compared_steps(attention: Attention, truth: GroundTruth, data: Data) -> Int[Array, "phases"]:
    """For every phase of a mechanism, which message-passing step of a hint it is compared with."""
    hints, phases = data.batch.steps, truth.phases
    per_hint = attention.shape[0] // hints
    if per_hint == phases:
        return jnp.arange(phases)
    tried = [at_steps(attention, jnp.full(phases, s), hints) for s in range(per_hint)]
    agreeing = [
        by_step(*_of_phases(rows.credit, rows.updated, truth.phases))
        for rows in (_examined(each, truth, data.valid) for each in tried)
    ]
    return jnp.argmax(jnp.stack(agreeing), axis=0)


def at_steps(
    attention: Attention, chosen: Int[Array, "phases"], hints: int
) -> Float[Array, "compared batch heads receivers senders"]:
    """The chosen message-passing steps of every hint."""
    steps = attention.reshape(hints, -1, *attention.shape[1:])
    return steps[:, chosen].reshape(-1, *attention.shape[1:])


class _Examined(NamedTuple):
    """What is misplaced in every row, and which rows are of which class."""

    tie: Rows
    other: Rows
    """On nobody whom a correct run could have chosen."""
    credit: Rows
    """Whether the largest entry is one that a correct run could have chosen."""
    credit_strict: Rows
    updated: Counted
    unchanged: Counted
    inactive: Counted

    @property
    def valid(self) -> Counted:
        return self.updated | self.unchanged | self.inactive

    @property
    def kinds(self) -> tuple[Rows, Rows, Rows]:
        """Misplaced attention by its kind; they add up to all of it."""
        soft = self.other * self.credit
        return self.tie, soft, self.other - soft


def _examined(
    attention: Attention, truth: GroundTruth, valid: Bool[Array, "hints batch"]
) -> _Examined:
    """Every row of an attention that has as many steps as the mechanism."""
    mean_head = jnp.mean(attention, axis=2)
    chosen = jax.nn.one_hot(truth.senders, attention.shape[-1], dtype=bool)
    largest = mean_head == jnp.max(mean_head, axis=-1, keepdims=True)
    share = largest / jnp.sum(largest, axis=-1, keepdims=True)
    live = jnp.repeat(valid, truth.phases, axis=0)[..., None]
    updated = live & truth.updated

    def total(values: Array, where: Array) -> Rows:
        return jnp.sum(jnp.where(where, values, 0), axis=-1)

    return _Examined(
        tie=total(mean_head, truth.acceptable & ~chosen),
        other=total(mean_head, ~truth.acceptable),
        credit=total(share, truth.acceptable),
        credit_strict=total(share, chosen),
        updated=updated,
        unchanged=live & truth.active & ~updated,
        inactive=live & ~truth.active & ~updated,
    )


def headline_by_sample(
    attention: Attention, truth: GroundTruth, valid: Bool[Array, "hints batch"]
) -> Headline:
    """Every graph's own numbers (NaN where it has no such row), each with the graphs first."""
    rows = _examined(attention, truth, valid)
    count = jnp.maximum(1, jnp.sum(rows.valid, axis=(0, 2)))
    parts = [
        [jnp.sum(jnp.where(among, kind, 0), axis=(0, 2)) / count for kind in rows.kinds]
        for among in (rows.updated, rows.unchanged, rows.inactive)
    ]
    return Headline(
        agreement=by_sample(rows.credit, rows.updated),
        agreement_strict=by_sample(rows.credit_strict, rows.updated),
        misplaced=by_sample(rows.other, rows.updated),
        tv=by_sample(rows.tie + rows.other, rows.valid),
        parts=jnp.moveaxis(jnp.asarray(parts), -1, 0),
        by_phase=_ratio(*_of_phases(rows.credit, rows.updated, truth.phases), (2,)).T,
    )


@eqx.filter_jit
def _internal_gap(attention: Attention, truth: GroundTruth, data: Data) -> dict[str, Array]:
    nodes, hints, phases = attention.shape[-1], data.batch.steps, truth.phases
    attention = at_steps(attention, compared_steps(attention, truth, data), hints)
    each = headline_by_sample(attention, truth, data.valid)
    rows = _examined(attention, truth, data.valid)
    valid = rows.valid
    mean_head = jnp.mean(attention, axis=2)
    entropy = -jnp.sum(mean_head * jnp.log(jnp.maximum(mean_head, 1e-30)), -1)
    neighbours = jnp.sum(data.support, -1)
    choice = valid & (neighbours > 1)
    relative = entropy / jnp.log(jnp.maximum(neighbours, 2))
    off = jnp.sum(jnp.where(data.support, 0, mean_head), -1)
    heads = jax.vmap(lambda a: mean(row_l1(a, truth.attention[:, :, 0]), valid), in_axes=2)
    classes = (rows.updated, rows.unchanged, rows.inactive)
    parts_by_step = [
        [_by_hint(jnp.where(among, kind, 0), valid, phases) for kind in rows.kinds]
        for among in classes
    ]
    tv = jnp.nanmean(each.tv)
    return {
        "agreement": jnp.nanmean(each.agreement),
        "agreement_strict": jnp.nanmean(each.agreement_strict),
        "misplaced": jnp.nanmean(each.misplaced),
        "tv": tv,
        "l1": 2 * tv,
        "paper": 2 * tv / nodes,
        "tv_best_head": jnp.min(heads(attention)) / 2,
        "entropy": mean(entropy, valid),
        "sharpness": 1 - mean(relative, choice),
        "off_graph": mean(off, valid),
        "rows": jnp.stack([jnp.sum(among) for among in classes]),
        "parts": jnp.mean(each.parts, axis=0),
        "parts_by_step": jnp.moveaxis(jnp.asarray(parts_by_step), -1, 0),
        "agreement_by_step": _by_hint(rows.credit, rows.updated, phases),
        "agreement_by_phase": jnp.nanmean(each.by_phase, axis=0),
        "misplaced_by_phase": by_step(*_of_phases(rows.other, rows.updated, phases)),
        "tv_by_sample": each.tv,
        "agreement_by_sample": each.agreement,
    }


def _by_hint(rows: Rows, counted: Counted, phases: int) -> Float[Array, "hints"]:
    """Each hint step's mean, its phases beside each other as so many more rows."""

    def beside(values: Array) -> Array:
        several = values.reshape(-1, phases, *values.shape[1:])
        return jnp.moveaxis(several, 1, 2).reshape(several.shape[0], values.shape[1], -1)

    return by_step(beside(rows), beside(counted))


def _of_phases(rows: Rows, counted: Counted, phases: int) -> tuple[Array, Array]:
    """Every phase as one step that has the rows of all hints."""

    def together(values: Array) -> Array:
        several = values.reshape(-1, phases, *values.shape[1:])
        return jnp.moveaxis(several, 0, 2).reshape(phases, values.shape[1], -1)

    return together(rows), together(counted)


def by_sample(rows: Rows, counted: Counted) -> Float[Array, "batch"]:
    """Each sample's mean over its counted rows; NaN where there are none."""
    return _ratio(rows, counted, (0, 2))


def by_step(rows: Rows, counted: Counted) -> Float[Array, "time"]:
    """Each step's mean over a sample's counted rows, then over samples; NaN where none has any."""
    return jnp.nanmean(_ratio(rows, counted, (2,)), axis=1)


def mean(rows: Rows, counted: Counted) -> Float[Array, ""]:
    """The mean over a sample's counted rows, then over samples that have any."""
    return jnp.nanmean(by_sample(rows, counted))


def mean_of_graphs(blocks: Sequence[Any]) -> np.ndarray:
    """The mean over the graphs of some blocks that have a number; NaN where none has."""
    whole = np.concatenate(blocks).astype(float)
    known = np.isfinite(whole)
    total, count = np.where(known, whole, 0).sum(0), known.sum(0)
    return np.where(count > 0, total / np.maximum(1, count), np.nan)


def _ratio(rows: Rows, counted: Counted, axes: tuple[int, ...]) -> Array:
    count = jnp.sum(counted, axis=axes)
    sums = jnp.sum(jnp.where(counted, rows, 0), axis=axes)
    return jnp.where(count > 0, sums / jnp.maximum(1, count), jnp.nan)
