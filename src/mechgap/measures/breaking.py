"""Where a run first goes wrong: until which step every hint is right, and which is not then.

Hints that are numbers are left out (how far one may be off is a matter of margins), and so are
those that the exact mechanism does not claim.
"""

from collections.abc import Collection, Mapping, Sequence
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
class Runs:
    """A network's runs over some graphs: where each of them is wrong first."""

    lengths: Int[np.ndarray, "graphs"]
    """Steps that are predicted."""
    first: Int[np.ndarray, "graphs"]
    """The first wrong step; its length where a run is never wrong."""
    wrong: Mapping[str, Bool[np.ndarray, "graphs"]]
    """By hint, whether it is wrong in that step."""


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

    @staticmethod
    def of(blocks: Sequence[Runs]) -> "Breaking":
        """What runs over one or several blocks of graphs show together."""
        lengths = np.concatenate([runs.lengths for runs in blocks])
        first = np.concatenate([runs.first for runs in blocks])
        breaks = first < lengths
        reached = np.where(breaks, first / np.maximum(1, lengths), 1)
        wrong = {
            hint: np.concatenate([runs.wrong[hint] for runs in blocks]) for hint in blocks[0].wrong
        }
        return Breaking(
            unbroken=float(1 - breaks.mean()),
            step=float(np.median(first[breaks])) if breaks.any() else float("nan"),
            steps=int(lengths.max()),
            hints={
                hint: float(each[breaks].mean()) if breaks.any() else 0.0
                for hint, each in wrong.items()
            },
            along=tuple(float(np.mean(reached >= (k + 1) / PARTS)) for k in range(PARTS)),
        )


def breaking_of(network: Network, data: Data, trace: Trace) -> Breaking | None:
    """Where a network's runs go wrong, in the hints that the exact mechanism claims."""
    found = runs_of(network, data, trace)
    return None if found is None else Breaking.of([found])


def runs_of(network: Network, data: Data, trace: Trace) -> Runs | None:
    """The same, of every graph."""
    if not network.config.decodes_hints:
        return None
    unclaimed = data.truths[0].program.unclaimed if data.truths else ()
    return runs(data.batch, trace.hints, unclaimed)


def runs(
    batch: Batch, predictions: Mapping[str, Array], without: Collection[str] = ()
) -> Runs | None:
    """Of raw hint predictions ``[steps, batch, …]`` (masks by the more likely answer).

    None where no hint is left `without` some, or no trace is longer than its first hint.
    """
    told = {name: raw for name, raw in predictions.items() if name not in without}
    right = {} if batch.max_hints < 2 else _right(batch, told)
    if not right:
        return None
    right = {name: np.asarray(hit) for name, hit in right.items()}
    lengths = np.asarray(batch.lengths) - 1
    counted = np.arange(batch.max_hints - 1)[:, None] < lengths
    wrong = counted & ~np.logical_and.reduce(list(right.values()))
    breaks = wrong.any(axis=0)
    first = np.where(breaks, wrong.argmax(axis=0), lengths)
    at = np.minimum(first, len(wrong) - 1), np.arange(batch.size)
    return Runs(lengths, first, {name: breaks & ~hit[at] for name, hit in right.items()})


@eqx.filter_jit
def _right(batch: Batch, predictions: Mapping[str, Array]) -> dict[str, Bool[Array, "steps batch"]]:
    """Whether a hint is right at every node."""
    told = [f for f in batch.task.hints if f.type is not Type.SCALAR and f.name in predictions]
    margins = Margins(binary=0.5)
    return {f.name: jnp.equal(trace_hits(f, batch, predictions[f.name], margins), 1) for f in told}
