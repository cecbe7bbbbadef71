"""A network's attention in some ten kilobytes, so that it can be compared when it is gone.

On the test graphs a fixed choice of rows is looked at, equally many of every graph. Of a row the
attention to each neighbour and the rest of it are kept, each as the square root in one byte: that
resolves small values as well as large ones. Distances between fingerprints are distances between
attentions (l1, the mean over the chosen rows), to about half a percent of a row.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8
from scipy.spatial.distance import pdist

from mechgap.errors import InvalidInput
from mechgap.measures.data import Data

BYTES = 10_000
"""About so many numbers are kept."""


@dataclass(frozen=True)
class Places:
    """Which rows of attention a fingerprint holds, and which senders of each."""

    times: Int[np.ndarray, "rows"]
    graphs: Int[np.ndarray, "rows"]
    receivers: Int[np.ndarray, "rows"]
    senders: Bool[np.ndarray, "rows senders"]

    @staticmethod
    def of(data: Data, substeps: int = 1, attends_to_all: bool = False) -> "Places":
        """The same rows for every network with so many message-passing steps in a hint."""
        support = np.asarray(data.support) | attends_to_all
        lives = substeps * np.maximum(1, np.asarray(data.batch.lengths) - 1)
        nodes, graphs = data.batch.nodes, data.batch.size
        wanted = round(BYTES / (graphs * (1 + support.sum(-1).mean())))
        each = max(1, min(wanted, nodes * int(lives.min())))
        rng = np.random.default_rng(0)
        rows = np.concatenate([rng.permutation(nodes * live)[:each] for live in lives])
        at = np.repeat(np.arange(graphs), each)
        return Places(rows // nodes, at, rows % nodes, support[at, rows % nodes])

    def rows(
        self, attention: Float[Array, "time batch heads receivers senders"]
    ) -> Float[Array, "rows senders"]:
        """The chosen rows, the mean of heads."""
        return jnp.mean(attention[self.times, self.graphs, :, self.receivers], axis=1)

    def fingerprint(self, rows: Float[np.ndarray, "rows senders"]) -> UInt8[np.ndarray, "entries"]:
        """The chosen rows as bytes: neighbours, then what is left of each row."""
        kept = np.where(self.senders, rows, 0)
        rest = np.maximum(0, 1 - kept.sum(1))
        values = np.concatenate([rows[self.senders], rest])
        return np.rint(255 * np.sqrt(np.clip(values, 0, 1))).astype(np.uint8)

    def distances(self, prints: UInt8[np.ndarray, "seeds entries"]) -> Float[np.ndarray, "pairs"]:
        """The l1 distance of every two, condensed as SciPy has it."""
        entries = int(self.senders.sum()) + len(self.times)
        if prints.shape[1:] != (entries,):
            raise InvalidInput(
                f"a fingerprint of these graphs has {entries} entries; got {prints.shape[1:]}"
            )
        return pdist((prints / 255.0) ** 2, "cityblock") / len(self.times)
