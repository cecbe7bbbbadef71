"""Pairs of nodes as lists: attention along them, and pointers to the best of all nodes.

The equations are those of `pairwise`. What is told of a pair adds to its score; all pairs of nodes
are looked at a block at a time, so that no matrix of them is ever kept.

On a CPU with a C++ compiler this is native code (`lists.cc`), elsewhere plain JAX. A pointer's
scores have the form ``Σ_f ω_f · max(u_i, v_j)_f``, and so a bound for many senders at once: the
score of their corner, which has each unit's largest value where ω is above 0 and the smallest where
it is below. A tree of such corners finds the best of all nodes without a look at most of them,
exactly: what it leaves out is worse by more than rounding.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mechgap.network import native
from mechgap.network.pairwise import SLOPE

NATIVE = (Path(__file__).with_suffix(".cc"), ("attend", "point"))
"""The source of the native code, and its functions."""
BLOCK = 1 << 22
"""Numbers of a block without native code: pairs (or pairs of nodes) times hidden units."""


class Pairs(NamedTuple):
    """Who may attend to whom in one step, ordered by receiver and sender."""

    receivers: Int[Array, "*time pairs"]
    """The node that does not exist where there is no pair."""
    senders: Int[Array, "*time pairs"]
    listed: Int[Array, "*time pairs"]
    """Where the pair is in the graph's list; behind its end if only a pointer made it."""


class Told(NamedTuple):
    """What is told of pairs, and how scores read it."""

    pairs: Pairs
    channels: Float[Array, "pairs c"]
    weight: Float[Array, "c hidden"]


def attend(
    u: Float[Array, "nodes hidden"],
    v: Float[Array, "nodes hidden"],
    values: Float[Array, "nodes hidden"],
    told: Told,
    omega: Float[Array, "heads size"],
    *,
    everyone: bool,
) -> tuple[Float[Array, "nodes heads size"], Float[Array, "pairs heads"]]:
    """What attention selects for each receiver, and the attention of every pair.

    Attention is the softmax of ``ω · leaky_relu(u_i + v_j + e_ij W)``; a head's bias is the same
    for all senders, and changes nothing.

    Args:
        u: What receivers bring.
        v: What senders bring.
        values: What is selected.
        told: Of pairs.
        omega: Of every head.
        everyone: Whether all nodes are senders, and pairs only those of which something is told.
    """
    if runs_natively():
        shapes = [u.shape, (len(told.pairs.senders), len(omega))]
        more = {"slope": np.float64(SLOPE), "everyone": everyone}
        selected, attention = native.call(
            "attend", shapes, u, v, values, *told[1:], omega, *_places(told.pairs, len(u)), **more
        )
        return selected.reshape(-1, *omega.shape), attention

    def meet(receiver: Array, sender: Array) -> Array:
        return jax.nn.leaky_relu(receiver + sender, SLOPE)

    logits = _scores_of_pairs(meet, u, v, told, omega)
    heads = values.reshape(-1, *omega.shape)
    if not everyone:
        attention = _softmax_of_pairs(told.pairs, logits, len(u))
        return _summed(attention, told.pairs, heads), attention

    def base(rows: Array) -> Float[Array, "rows heads nodes"]:
        zeta = meet(rows[:, None], v[None])
        return jnp.einsum("ijhf,hf->ihj", zeta.reshape(*zeta.shape[:-1], *omega.shape), omega)

    def finish(rows: Float[Array, "rows heads nodes"]):
        attention = jax.nn.softmax(rows, axis=-1)
        return jnp.einsum("ihj,jhf->ihf", attention, heads), attention

    return _by_rows(u, base, told.pairs, logits, finish)


def point(
    u: Float[Array, "nodes hidden"],
    v: Float[Array, "nodes hidden"],
    told: Told,
    omega: Float[Array, "1 hidden"],
) -> Int[Array, "nodes"]:
    """Whom each node points to: the best of all nodes by ``ω · max(u_i, v_j + e_ij W)``, of equals
    the first.

    Args as of `attend`.
    """
    if runs_natively():
        best = jax.ShapeDtypeStruct(u.shape[:1], jnp.int32)
        places = _places(told.pairs, len(u))
        return native.call("point", [best], u, v, *told[1:], omega, *places)[0]
    scores = _scores_of_pairs(jnp.maximum, u, v, told, omega)

    def base(rows: Array) -> Array:
        return (jnp.maximum(rows[:, None], v[None]) @ omega[0])[:, None]

    def finish(rows: Array):
        return jnp.argmax(rows[:, 0], axis=-1).astype(jnp.int32), None

    return _by_rows(u, base, told.pairs, scores, finish)[0]


def runs_natively() -> bool:
    """Whether there is native code here."""
    return native.available(*NATIVE)


def _places(pairs: Pairs, nodes: int) -> tuple[Int[Array, "nodes_and_one"], Int[Array, "pairs"]]:
    """Where each receiver's pairs begin and the last one's end, and who the senders are."""
    return _offsets(pairs, jnp.arange(nodes + 1)), pairs.senders


def _offsets(pairs: Pairs, receivers: Int[Array, "some"]) -> Int[Array, "some"]:
    return jnp.searchsorted(pairs.receivers, receivers).astype(jnp.int32)


# ---- without native code


def _in_blocks(pairs: Pairs, width: int) -> tuple[int, int]:
    """How many pairs a block has, and how many are added to make blocks whole."""
    count = len(pairs.receivers)
    size = max(1, min(count, BLOCK // width))
    return size, -count % size


def _blocks(x: Array, size: int, missing: int, fill: int = 0) -> Array:
    wide = [(0, missing)] + [(0, 0)] * (x.ndim - 1)
    count = (len(x) + missing) // size
    return jnp.pad(x, wide, constant_values=fill).reshape(count, size, *x.shape[1:])


def _scores_of_pairs(
    meet: Callable[[Array, Array], Array],
    u: Float[Array, "nodes hidden"],
    v: Float[Array, "nodes hidden"],
    told: Told,
    omega: Float[Array, "heads size"],
) -> Float[Array, "pairs heads"]:
    """``ω · meet(u_i, v_j + e_ij W)`` of every pair of receiver i and sender j."""
    pairs, channels, weight = told
    size, missing = _in_blocks(pairs, u.shape[-1])

    def block(here: tuple[Array, Array, Array]) -> Array:
        receivers, senders, channels = here
        zeta = v.at[senders].get(mode="clip") + channels @ weight
        met = meet(u.at[receivers].get(mode="clip"), zeta)
        return jnp.einsum("phf,hf->ph", met.reshape(-1, *omega.shape), omega)

    receivers, senders, channels = (
        _blocks(x, size, missing) for x in (pairs.receivers, pairs.senders, channels)
    )
    scores = jax.lax.map(block, (receivers, senders, channels))
    return scores.reshape(-1, len(omega))[: len(pairs.receivers)]


def _softmax_of_pairs(
    pairs: Pairs, logits: Float[Array, "pairs heads"], nodes: int
) -> Float[Array, "pairs heads"]:
    """Over each receiver's pairs; nothing where there is no pair."""
    at = {"num_segments": nodes + 1, "indices_are_sorted": True}
    largest = jax.ops.segment_max(logits, pairs.receivers, **at)[pairs.receivers]
    raised = jnp.exp(logits - largest)
    raised = jnp.where((pairs.receivers < nodes)[:, None], raised, 0)
    total = jax.ops.segment_sum(raised, pairs.receivers, **at)[pairs.receivers]
    return raised / jnp.where(total > 0, total, 1)


def _summed(
    attention: Float[Array, "pairs heads"],
    pairs: Pairs,
    values: Float[Array, "nodes heads size"],
) -> Float[Array, "nodes heads size"]:
    """``Σ_j α_ij v_j``, a block of pairs at a time."""
    size, missing = _in_blocks(pairs, values[0].size)

    def block(total: Array, here: tuple[Array, Array, Array]):
        receivers, senders, weights = here
        added = weights[..., None] * values.at[senders].get(mode="clip")
        return total.at[receivers].add(added, mode="drop", indices_are_sorted=True), None

    receivers = _blocks(pairs.receivers, size, missing, fill=len(values))
    senders, weights = (_blocks(x, size, missing) for x in (pairs.senders, attention))
    return jax.lax.scan(block, jnp.zeros_like(values), (receivers, senders, weights))[0]


def _by_rows(
    u: Float[Array, "nodes hidden"],
    base: Callable[[Array], Float[Array, "rows heads nodes"]],
    pairs: Pairs,
    scores: Float[Array, "pairs heads"],
    finish: Callable[[Array], tuple[Array, Array | None]],
) -> tuple[Array, Float[Array, "pairs heads"]]:
    """Scores of all pairs of nodes, a block of rows at a time, and what is made of each block.

    Args:
        u: What rows are scored by.
        base: Scores of some rows, as if nothing were told of any pair.
        pairs: Of which something is told.
        scores: Theirs, which take the place of the others.
        finish: What to keep of complete rows; and numbers of all their pairs, or None.
    """
    nodes, count = len(u), len(pairs.receivers)
    size = max(1, min(nodes, BLOCK // (nodes * u.shape[-1])))
    chunk = max(1, min(count, 4 * size * max(1, count // nodes)))
    padded = jnp.pad(u, [(0, -nodes % size), (0, 0)])
    offsets = _offsets(pairs, jnp.arange(len(padded) // size + 1) * size)
    # Whole chunks can be cut out anywhere.
    long = Pairs(*(jnp.pad(x, (0, chunk), constant_values=nodes) for x in pairs))
    scores = jnp.pad(scores, [(0, chunk), (0, 0)])

    def block(kept: Array, k: Array):
        rows = base(jax.lax.dynamic_slice_in_dim(padded, k * size, size))

        def cut(x: Array, at: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(x, at, chunk)

        def local(at: Array) -> tuple[Array, Array]:
            inside = cut(long.receivers, at) - k * size
            here = (inside >= 0) & (inside < size) & (cut(long.receivers, at) < nodes)
            return jnp.where(here, inside, size), cut(long.senders, at)

        def put(rows: Array, at: Array) -> Array:
            row, column = local(at)
            return rows.at[row, :, column].set(cut(scores, at), mode="drop")

        begin, end = offsets[k], offsets[k + 1]

        def over(todo: Callable, initial: Array) -> Array:
            def body(state):
                at, value = state
                return at + chunk, todo(value, at)

            return jax.lax.while_loop(lambda s: s[0] < end, body, (begin, initial))[1]

        found, told = finish(over(put, rows))
        if told is not None:

            def keep(kept: Array, at: Array) -> Array:
                row, column = local(at)
                mine = told.at[row, :, column].get(mode="fill", fill_value=0)
                before = cut(kept, at)
                after = jnp.where((row < size)[:, None], mine, before)
                return jax.lax.dynamic_update_slice_in_dim(kept, after, at, 0)

            kept = over(keep, kept)
        return kept, found

    kept, found = jax.lax.scan(block, jnp.zeros_like(scores), jnp.arange(len(padded) // size))
    return found.reshape(-1, *found.shape[2:])[:nodes], kept[:count]
