"""Kinds of nodes, and a short condition that holds for some of them and not for others.

Nodes are of one kind if all flags of the vocabulary agree on them. A condition is a disjunction of
conjunctions; it says nothing about kinds that it was not asked about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb
from operator import and_, or_

import numpy as np
from jaxtyping import Bool, Int

from mechgap.decompiler.scenes import Scenes
from mechgap.programs.expressions import Expression, Not

TRIED = 100_000
"""At most so many conjunctions of one length are tried."""


@dataclass(frozen=True)
class Kinds:
    """Which kind every node is of, and which flags a kind has."""

    flags: tuple[Expression, ...]
    of_node: Int[np.ndarray, "scenes nodes"]
    table: Bool[np.ndarray, "kinds flags"]

    @staticmethod
    def of(scenes: Scenes) -> "Kinds":
        """The kinds that there are; flags that tell none apart are left out."""
        flags = scenes.words.of_a_node
        shape = scenes.given.positions.shape
        values = [scenes.values(flag)[..., 0].reshape(-1) > 0.5 for flag in flags]
        telling = [i for i, v in enumerate(values) if v.any() and not v.all()]
        if not telling:
            return Kinds((), np.zeros(shape, int), np.zeros((1, 0), bool))
        of_node = np.zeros(len(values[0]), int)
        for i in telling:  # numbers sort much faster than rows
            of_node = np.unique(2 * of_node + values[i], return_inverse=True)[1]
        first = np.unique(of_node, return_index=True)[1]
        table = np.stack([values[i][first] for i in telling], 1)
        return Kinds(tuple(flags[i] for i in telling), of_node.reshape(shape), table)


def condition(
    kinds: Kinds, holds: Bool[np.ndarray, "kinds"], fails: Bool[np.ndarray, "kinds"]
) -> Expression | None:
    """A short condition, conjunction by conjunction; None if it need not fail anywhere.

    Kinds for which it neither must hold nor must fail may go either way.
    """
    if not fails.any():
        return None
    left, chosen = holds.copy(), []
    while left.any():
        cube = max(_shortest(kinds, int(left.argmax()), fails), key=lambda c: (left & c[1]).sum())
        chosen.append(cube[0])
        left &= ~cube[1]
    return reduce(or_, [reduce(and_, literals) for literals in chosen])


def _shortest(
    kinds: Kinds, kind: int, fails: Bool[np.ndarray, "kinds"]
) -> list[tuple[tuple[Expression, ...], Bool[np.ndarray, "kinds"]]]:
    """The shortest conjunctions that hold for a kind and for none that they must fail for; if these
    are too long to be found by trying all, one that is short."""
    signs = kinds.table[kind]
    excludes = [_number((kinds.table[:, i] != signs[i]) & fails) for i in range(len(kinds.flags))]
    everybody, useful = _number(fails), [i for i, kept_out in enumerate(excludes) if kept_out]
    found: list[tuple[int, ...]] = []
    for size in range(1, len(useful) + 1):
        if found or comb(len(useful), size) > TRIED:
            break
        found = [
            chosen
            for chosen in combinations(useful, size)
            if reduce(or_, (excludes[i] for i in chosen)) == everybody
        ]
    return [
        (
            tuple(kinds.flags[i] if signs[i] else Not(kinds.flags[i]) for i in chosen),
            (kinds.table[:, chosen] == signs[list(chosen)]).all(1),
        )
        for chosen in found or [_greedy(excludes, everybody)]
    ]


def _greedy(excludes: Sequence[int], everybody: int) -> tuple[int, ...]:
    """Flags that together keep out everybody, each the one that keeps out most of those left."""
    chosen, left = list[int](), everybody
    while left:
        best = max(range(len(excludes)), key=lambda i: (excludes[i] & left).bit_count())
        assert excludes[best] & left, "two kinds differ in some flag"
        chosen.append(best)
        left &= ~excludes[best]
    return tuple(sorted(chosen))


def _number(flags: Bool[np.ndarray, "kinds"]) -> int:
    """Flags as the bits of a number."""
    return int.from_bytes(np.packbits(flags).tobytes())
