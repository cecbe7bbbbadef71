"""What the search is to explain, and a rule before it is put into words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from mechgap.decompiler.kinds import Kinds, condition
from mechgap.decompiler.rules import Default, Rule, default_senders
from mechgap.decompiler.scenes import Scenes
from mechgap.decompiler.words import length
from mechgap.programs.expressions import Expression, Name, Side, Where, self
from mechgap.programs.phases import Selection

LONGEST_DEFAULT = 12
"""Words of a default that is one of two pointers by a flag."""


@dataclass(frozen=True)
class Problem:
    """Whom every receiver attends to most."""

    scenes: Scenes
    attended: Int[np.ndarray, "scenes nodes"]
    kinds: Kinds
    defaults: tuple[Default, ...]

    @staticmethod
    def of(scenes: Scenes, attended: Int[np.ndarray, "scenes nodes"]) -> "Problem":
        """With every default that the vocabulary has."""
        pointers = [Name(Side.SELF, pointer) for pointer in scenes.words.pointers]
        alone = Problem(scenes, attended, Kinds.of(scenes), (self, *pointers))
        return Problem(scenes, attended, alone.kinds, (*alone.defaults, *alone._of_two(pointers)))

    def by_kind(self, share: Float[np.ndarray, "scenes nodes"]) -> Float[np.ndarray, "kinds"]:
        """Sums over receivers of a kind, as a share of all receivers."""
        return (
            np.bincount(self.kinds.of_node.ravel(), share.ravel(), len(self.kinds.table))
            / share.size
        )

    def right(self, default: Default) -> Float[np.ndarray, "scenes nodes"]:
        """Of which receivers a default is right."""
        return (default_senders(default, self.scenes) == self.attended) * 1.0

    def agreement(self, rule: Rule) -> float:
        """The share of receivers for whom a rule is right."""
        return float(np.mean(rule.senders(self.scenes) == self.attended))

    def _of_two(self, pointers: Sequence[Name]) -> Iterator[Where]:
        """The two pointers that together say most about whom nodes attend to."""
        right: Mapping[Name, np.ndarray] = {p: self.by_kind(self.right(p)) for p in pointers}
        pairs = list(combinations(pointers, 2))
        if pairs:
            a, b = max(pairs, key=lambda pair: np.maximum(right[pair[0]], right[pair[1]]).sum())
            first, second = right[a] > right[b], right[a] < right[b]
            if first.any() and second.any():
                flag = condition(self.kinds, first, second)
                if flag is not None and length(flag) <= LONGEST_DEFAULT:
                    yield Where(flag, a, b)


@dataclass(frozen=True)
class Candidate:
    """A rule before it is put into words which nodes it lets pass and which it is about."""

    agreement: float
    select: Selection
    pair: tuple[Expression, ...]
    otherwise: Default
    wanted: Float[np.ndarray, "kinds"]
    """By kind of senders, what share of receivers attends to one of them."""
    spurned: Float[np.ndarray, "kinds"]
    """And passes by one of them, that would have been selected."""
    lets_pass: bool
    """Whether kinds that nobody needs pass."""
    gain: Float[np.ndarray, "kinds"]
    """By kind of receivers, what it gains over the default."""

    @property
    def order(self) -> tuple[float, int, bool]:
        """Best first, then shortest; of these, one that follows no pointer."""
        words = length(self.select.expression, *self.pair)
        return (-round(self.agreement, 5), words, isinstance(self.otherwise, Expression))
