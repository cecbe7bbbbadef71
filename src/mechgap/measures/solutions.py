"""Between solutions: how far the attentions of a population are from each other.

Distances are the internal gap's (`l1`) between every two seeds, by their fingerprints. They are
clustered by Ward's linkage, as the paper does; Ward's heights are exact for
Euclidean distances and a convention for these.

The number of clusters is the one with the largest mean silhouette, if that is larger than a single
Gaussian cloud with the same spread would have it in 19 of 20 cases; else it is 1. (A silhouette
alone cannot say 1: some cut of any cloud is the best.) How stable the clusters are: the same on
random subsets of the seeds, compared by the adjusted Rand index (1: the same clusters; 0: as chance
would have it).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
from scipy.spatial.distance import pdist, squareform

MOST_CLUSTERS = 32
SUBSETS = 50
SIGNIFICANT = 0.05
CLOUDS = 99
"""Gaussian clouds that a population is compared with: p-values in hundredths."""


@dataclass(frozen=True)
class Distance:
    """A distance between attentions in the three normalisations."""

    paper: float
    """The paper's formula: l1 over n² pairs."""
    l1: float
    """The mean of rows."""
    tv: float
    """Half of that, in [0, 1]: attention that would have to move."""

    @staticmethod
    def of(l1: float, nodes: int) -> "Distance":
        """The three forms of an l1 distance.

        >>> Distance.of(0.5, 4)
        Distance(paper=0.125, l1=0.5, tv=0.25)
        """
        return Distance(l1 / nodes, l1, l1 / 2)


FORMS = ("paper", "l1", "tv")
PAPER_SAYS = {"mean_between": 0.009, "closest_to_compiled": 0.37}


@dataclass(frozen=True)
class BesidePaper:
    """A number that the paper prints, and the form in which ours comes nearest to it."""

    printed: float
    nearest_form: str | None
    ours_over_printed: float | None


@dataclass(frozen=True)
class Between:
    """How the solutions of a population lie to each other and to the compiled one, as numbers."""

    seeds: int
    mean_between: Distance
    """Of two different seeds; NaN if there is only one."""
    closest_to_compiled: Distance | None
    """The smallest gap of a seed to the compiled mechanism; None where there is none."""
    closest_seed: int | None
    clusters: int | None
    """1 where a single cloud explains the silhouette, or there are fewer than 4 seeds; None in
    numbers from before that was tested."""
    one_cluster_p: float
    """How often a single Gaussian cloud has as large a silhouette; NaN with fewer than 4 seeds."""
    silhouette: float
    """The largest mean silhouette of any cut."""
    stability: float
    """Of that cut: mean adjusted Rand index over random subsets of four fifths of the seeds."""
    clusters_at_default_cut: int
    """Where dendrograms are usually coloured: 0.7 of the highest merge."""

    ALSO_TOLD: ClassVar = ("paper",)

    @property
    def paper(self) -> dict[str, BesidePaper]:
        """Both distances beside the paper's."""
        return {name: _beside_paper(printed, getattr(self, name))
                for name, printed in PAPER_SAYS.items()}  # fmt: skip


@dataclass(frozen=True)
class Solutions(Between):
    """The same, with the distances themselves."""

    distances: Float[np.ndarray, "seeds seeds"]
    """l1, between every two seeds."""
    linkage: Float[np.ndarray, "merges 4"]
    order: Int[np.ndarray, "seeds"]
    """Seeds as the dendrogram has them."""
    labels: Int[np.ndarray, "seeds"]


def closest(gaps: Mapping[int, float]) -> tuple[int, float] | None:
    """The seed with the smallest gap, and that gap; None without any.

    >>> closest({0: 0.5, 1: 0.25})
    (1, 0.25)
    """
    return min(gaps.items(), key=lambda item: item[1], default=None)


def solutions(
    condensed: Float[np.ndarray, "pairs"],
    seeds: int,
    *,
    nodes: int,
    closest: tuple[int, float] | None = None,
) -> Solutions:
    """Clusters of a population from its pairwise distances on graphs of so many nodes.

    `closest` is the seed nearest to the compiled mechanism and its gap (tv).
    """
    to_compiled = None if closest is None else Distance.of(2 * closest[1], nodes)
    told = {"seeds": seeds, "closest_to_compiled": to_compiled,
            "closest_seed": None if closest is None else closest[0]}  # fmt: skip
    if seeds < 2:
        nothing = float("nan")
        return Solutions(
            **told,
            mean_between=Distance.of(nothing, nodes),
            clusters=1,
            one_cluster_p=nothing,
            silhouette=nothing,
            stability=nothing,
            clusters_at_default_cut=1,
            distances=np.zeros((seeds, seeds)),
            linkage=np.zeros((0, 4)),
            order=np.arange(seeds),
            labels=np.ones(seeds, int),
        )
    square = squareform(condensed)
    tree = linkage(condensed, "ward", optimal_ordering=seeds <= 256)
    cut, silhouette = best_clusters(square, tree)
    chance = one_cluster_p(square)
    labels = cut if chance < SIGNIFICANT else np.ones(seeds, int)
    at_cut = fcluster(tree, 0.7 * tree[:, 2].max(), "distance")
    return Solutions(
        **told,
        mean_between=Distance.of(float(square.sum() / (seeds * (seeds - 1))), nodes),
        clusters=int(labels.max()),
        one_cluster_p=chance,
        silhouette=silhouette,
        stability=_stability(square, cut),
        clusters_at_default_cut=int(at_cut.max()),
        distances=square,
        linkage=tree,
        order=leaves_list(tree),
        labels=labels,
    )


def _beside_paper(printed: float, ours: Distance | None) -> BesidePaper:
    forms = {} if ours is None else {form: getattr(ours, form) for form in FORMS}
    usable = {form: value for form, value in forms.items() if value > 0}  # not NaN either
    nearest = min(usable, key=lambda f: abs(math.log(usable[f] / printed)), default=None)
    return BesidePaper(printed, nearest, usable[nearest] / printed if nearest else None)


def one_cluster_p(square: Float[np.ndarray, "seeds seeds"]) -> float:
    """How often a single Gaussian cloud is as clearly in parts as these seeds are.

    Seeds are laid out in as many dimensions as their distances need (classical scaling); clouds
    have the same spread in each. Both are cut by Ward's linkage of Euclidean distances.
    """
    count = len(square)
    if count < 4 or square.max() == 0:
        return float("nan")
    centring = np.eye(count) - 1 / count
    sizes, axes = np.linalg.eigh(-0.5 * centring @ square**2 @ centring)
    spread = np.sqrt(np.maximum(0, sizes))

    def silhouette(points: Float[np.ndarray, "seeds dimensions"]) -> float:
        apart = pdist(points)
        return best_clusters(squareform(apart), linkage(apart, "ward"))[1]

    ours = silhouette(axes * spread)
    rng = np.random.default_rng(0)
    clouds = [
        silhouette(rng.normal(size=square.shape) * spread / np.sqrt(count - 1))
        for _ in range(CLOUDS)
    ]
    return (1 + sum(cloud >= ours for cloud in clouds)) / (1 + CLOUDS)


def best_clusters(
    square: Float[np.ndarray, "seeds seeds"], tree: Float[np.ndarray, "merges 4"]
) -> tuple[Int[np.ndarray, "seeds"], float]:
    """The cut of a dendrogram with the largest mean silhouette."""
    count = len(square)
    best, labels = float("nan"), np.ones(count, int)
    if count < 4 or square.max() == 0:
        return labels, best
    for wanted in range(2, min(MOST_CLUSTERS, count - 1) + 1):
        cut = fcluster(tree, wanted, "maxclust")
        if cut.max() < 2:
            continue
        found = mean_silhouette(square, cut)
        if not best >= found:
            best, labels = found, cut
    return labels, best


def mean_silhouette(
    square: Float[np.ndarray, "seeds seeds"], labels: Int[np.ndarray, "seeds"]
) -> float:
    """How much nearer seeds are to their own cluster than to the next one, in [-1, 1].

    >>> apart = np.array([[0, 1, 9, 9], [1, 0, 9, 9], [9, 9, 0, 1], [9, 9, 1, 0.0]])
    >>> round(mean_silhouette(apart, np.array([1, 1, 2, 2])), 3)
    0.889
    """
    members = labels[:, None] == np.unique(labels)
    sizes = members.sum(0)
    sums = square @ members
    mine = members.argmax(1)
    everyone = np.arange(len(labels))
    own = sums[everyone, mine] / np.maximum(1, sizes[mine] - 1)
    means = np.where(members, np.inf, sums / sizes)
    nearest = means.min(1)
    larger = np.maximum(own, nearest)
    single = (sizes[mine] == 1) | (larger == 0)
    return float(np.mean(np.where(single, 0, (nearest - own) / np.where(larger == 0, 1, larger))))


def _stability(square: Float[np.ndarray, "seeds seeds"], labels: Int[np.ndarray, "seeds"]) -> float:
    count = len(square)
    if count < 8:
        return float("nan")
    rng = np.random.default_rng(0)
    found = []
    for _ in range(SUBSETS):
        chosen = np.sort(rng.choice(count, 4 * count // 5, replace=False))
        part = square[np.ix_(chosen, chosen)]
        again, _ = best_clusters(part, linkage(squareform(part), "ward"))
        found.append(adjusted_rand(labels[chosen], again))
    return float(np.mean(found))


def adjusted_rand(a: Int[np.ndarray, "seeds"], b: Int[np.ndarray, "seeds"]) -> float:
    """Whether two clusterings are the same (1) or agree as chance would have it (0).

    >>> adjusted_rand(np.array([1, 1, 2, 2]), np.array([2, 2, 1, 1]))
    1.0
    """

    def pairs(counts: np.ndarray) -> float:
        return float((counts * (counts - 1) / 2).sum())

    table = (a[:, None] == np.unique(a)).T.astype(int) @ (b[:, None] == np.unique(b)).astype(int)
    together, rows, columns = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    expected = rows * columns / max(1.0, len(a) * (len(a) - 1) / 2)
    largest = (rows + columns) / 2
    return 1.0 if largest == expected else (together - expected) / (largest - expected)
