"""Random weighted graphs for tests of several modules."""

import numpy as np


def weighted(rng, nodes, share):
    """A random undirected graph, loops included, with weights that do not tie."""
    weights = np.triu(rng.uniform(0.01, 1, (nodes, nodes)) * (rng.random((nodes, nodes)) < share))
    return weights + np.triu(weights, 1).T
