"""Where a run first goes wrong: until which step every hint is right, and which is not then.

Hints that are numbers are left out (how far one may be off is a matter of margins), and so are
those that the exact mechanism does not claim.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from mechgap.measures.data import Data
from mechgap.measures.external import Margins, trace_hits
from mechgap.network.network import Network
from mechgap.network.trace import Trace
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Type

PARTS = 10


@dataclass(frozen=True)
class Breaking:
    """How far runs of a network over some graphs go before they are wrong."""

    unbroken: float
    """Share of graphs with every hint of every step right."""
    step: float
    """The first wrong step of those that break, their median; NaN where none does."""
    steps: int
    """Of the longest trace."""
    hints: Mapping[str, float]
    """Of the runs that break, how many have this hint wrong in the first wrong step."""
    along: tuple[float, ...] = ()
    """Share of graphs that are right up to each tenth of their trace. Empty in older measures."""


def breaking_of(network: Network, data: Data, trace: Trace) -> Breaking | None:
    """Where a network's runs go wrong, in the hints that the exact mechanism claims."""
    if not network.config.decodes_hints:
        return None
    unclaimed = data.truths[0].program.unclaimed if data.truths else ()
    return breaking(data.batch, trace.hints, unclaimed)


def breaking(
    batch: Batch, predictions: Mapping[str, Array], without: Collection[str] = ()
) -> Breaking | None:
    """Of raw hint predictions ``[steps, batch, …]`` (masks by the more likely answer).

    None where no hint is left `without` some.
    """
    found = _right(batch, dict(predictions))
    right = {name: np.asarray(hit) for name, hit in found.items() if name not in without}
    if not right or batch.max_hints < 2:
        return None
    lengths = np.asarray(batch.lengths) - 1
    counted = np.arange(batch.max_hints - 1)[:, None] < lengths
    wrong = counted & ~np.logical_and.reduce(list(right.values()))
    breaks = wrong.any(axis=0)
    first: Int[np.ndarray, "batch"] = np.where(breaks, wrong.argmax(axis=0), lengths)
    at = np.flatnonzero(breaks)
    reached = np.where(breaks, first / np.maximum(1, lengths), 1)
    return Breaking(
        unbroken=float(1 - breaks.mean()),
        step=float(np.median(first[at])) if at.size else float("nan"),
        steps=int(lengths.max()),
        hints={
            name: float(np.mean(~hit[first[at], at])) if at.size else 0.0
            for name, hit in right.items()
        },
        along=tuple(float(np.mean(reached >= (k + 1) / PARTS)) for k in range(PARTS)),
    )


@eqx.filter_jit
def _right(batch: Batch, predictions: Mapping[str, Array]) -> dict[str, Bool[Array, "steps batch"]]:
    """Whether a hint is right at every node."""
    told = [f for f in batch.task.hints if f.type is not Type.SCALAR]
    margins = Margins(binary=0.5)
    return {f.name: jnp.equal(trace_hits(f, batch, predictions[f.name], margins), 1) for f in told}
