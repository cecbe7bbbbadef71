"""The factor of a key's second number, where it is none of the usual ones."""

from dataclasses import replace

import numpy as np
from jaxtyping import Int

from mechgap.decompiler.rules import Rule
from mechgap.decompiler.scenes import Scenes
from mechgap.programs.expressions import Add, Scale
from mechgap.programs.phases import Selection

LARGEST = 100.0


def polished(rule: Rule, scenes: Scenes, attended: Int[np.ndarray, "scenes nodes"]) -> Rule | None:
    """The same rule with the best factor; None if its key has none.

    Every receiver allows an interval of factors under which it selects whom the network attends to.
    The best factor lies in most of them; of those that do, the one with the fewest digits.
    """
    match rule.select.expression:
        case Add(first, Scale(_, second)):
            pass
        case _:
            return None
    eligible = rule.eligible(scenes)
    rows = np.take_along_axis(eligible, attended[..., None], -1)[..., 0]
    eligible, chosen = eligible[rows], attended[rows][:, None]
    base, slope = (rule.select.sign * scenes.values(e)[rows] for e in (first, second))
    ahead, steeper = (np.take_along_axis(v, chosen, 1) - v for v in (base, slope))
    with np.errstate(divide="ignore", invalid="ignore"):
        at = -ahead / steeper
    others = eligible & (np.arange(eligible.shape[-1]) != chosen)
    low = np.where(others & (steeper < 0), at, -np.inf).max(1)
    high = np.where(others & (steeper > 0), at, np.inf).min(1)
    possible = (low < high) & ~(others & (steeper == 0) & (ahead > 0)).any(1)
    low, high = low[possible], high[possible]
    ends = np.unique(np.clip(np.concatenate([low, high]), -LARGEST, LARGEST))
    if len(ends) < 2:
        return None
    middles = (ends[1:] + ends[:-1]) / 2
    open_, closed = (np.searchsorted(np.sort(x), middles) for x in (low, high))
    most = int((open_ - closed).argmax())
    factor = _short(float(ends[most]), float(ends[most + 1]))
    key = Selection(rule.select.extreme, Add(first, Scale(factor, second)))
    return replace(rule, select=key)


def _short(low: float, high: float) -> float:
    """The number with the fewest digits between two others.

    >>> _short(0.613, 0.712), _short(1.2, 9.0)
    (0.7, 5.0)
    """
    for digits in range(12):
        number = round((low + high) / 2, digits)
        if low < number < high:
            return number
    return (low + high) / 2
