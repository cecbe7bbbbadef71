"""A condition that is worth its words, where no condition is right about all kinds of nodes.

A learned network's attention is a rule and noise. What is right about every kind of nodes lists the
noise as exceptions. So a condition is grown like this: of all short conjunctions the one that gains
most for its words, then of what is left another, until none is worth its words.
"""

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

import numpy as np
from jaxtyping import Bool, Float

from mechgap.decompiler.kinds import Kinds
from mechgap.decompiler.words import length
from mechgap.programs.expressions import Expression, Not

LONGEST = 4
"""Flags of one conjunction."""
BEAM = 16
"""How many conjunctions are made longer."""
_NOTHING = 1e-12


@dataclass(frozen=True)
class Worthwhile:
    """A condition, for which kinds it holds, and what it gains above the price of its words."""

    said: Expression | None
    """None where it always holds."""
    holds: Bool[np.ndarray, "kinds"]
    worth: float


@dataclass(frozen=True)
class _Conjunction:
    literals: tuple[int, ...]
    holds: Bool[np.ndarray, "kinds"]
    worth: float


def worthwhile(kinds: Kinds, gain: Float[np.ndarray, "kinds"], price: float) -> Worthwhile | None:
    """The condition that gains most for its words; None if it had better never hold.

    Args:
        kinds: Of nodes.
        gain: What there is to gain if it holds for a kind; below 0 where something is lost.
        price: Of a word.
    """
    always = Worthwhile(None, np.ones(len(gain), bool), float(gain.sum()))
    flags = [literal for flag in kinds.flags for literal in (flag, Not(flag))]
    holds = np.stack([kinds.table, ~kinds.table], -1).reshape(len(kinds.table), -1).T
    prices = price * np.array([length(flag) for flag in flags])
    found, covered, left = list[_Conjunction](), np.zeros(len(gain), bool), gain.copy()
    while flags:
        best = _best_conjunction(holds, prices, left)
        if best.worth <= _NOTHING or not best.literals:
            break
        found.append(best)
        covered |= best.holds
        left = np.where(covered, 0.0, gain)
    chosen = always if always.worth > _NOTHING else None
    worth = sum(conjunction.worth for conjunction in found)
    if found and (chosen is None or worth > chosen.worth):
        said = [reduce(and_, (flags[i] for i in c.literals)) for c in found]
        chosen = Worthwhile(reduce(or_, said), covered, worth)
    return chosen


def _best_conjunction(
    holds: Bool[np.ndarray, "literals kinds"],
    prices: Float[np.ndarray, "literals"],
    gain: Float[np.ndarray, "kinds"],
) -> _Conjunction:
    """The best of those that a beam finds."""
    beam = [_Conjunction((), np.ones(len(gain), bool), float("-inf"))]
    best = beam[0]
    for _ in range(LONGEST):
        longer: dict[bytes, _Conjunction] = {}
        for conjunction in beam:
            cost = sum(prices[i] for i in conjunction.literals)
            worth = holds @ np.where(conjunction.holds, gain, 0.0) - prices - cost
            for i in np.argsort(-worth)[:BEAM]:
                both = conjunction.holds & holds[i]
                known = longer.get(both.tobytes())
                if known is None or worth[i] > known.worth:
                    literals = (*conjunction.literals, int(i))
                    longer[both.tobytes()] = _Conjunction(literals, both, float(worth[i]))
        beam = sorted(longer.values(), key=lambda c: -c.worth)[:BEAM]
        if not beam:
            break
        best = max(best, beam[0], key=lambda c: c.worth)
    return best
