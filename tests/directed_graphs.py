"""Directed graphs that are hard on a search, for tests of several modules."""

import numpy as np


def directed(nodes):
    """Paths, cycles, trees, stars, both ways; none and all; loops; in one part and in two."""
    path, tree = np.eye(nodes, k=1), np.zeros((nodes, nodes))
    for child in range(1, nodes):
        tree[(child - 1) // 2, child] = 1
    star = np.zeros((nodes, nodes))
    star[nodes // 2] = 1
    halves = np.add.outer(np.arange(nodes) % 2, np.arange(nodes) % 2) % 2 == 0
    one_way = [path, np.roll(np.eye(nodes), 1, axis=1), tree, star, np.triu(np.ones_like(path))]
    both = [*one_way, *(matrix.T for matrix in one_way)]
    whole = [np.zeros_like(path), np.eye(nodes), np.ones_like(path), halves, halves * path.T]
    return np.stack([*both, *(np.maximum(matrix, matrix.T) for matrix in one_way[:4]), *whole])
