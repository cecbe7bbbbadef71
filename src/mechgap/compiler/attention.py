"""Selection as attention logits: who is eligible, who is best, and when a node keeps itself.

The logit of sender j for receiver i is

    M · (how many of the mask's flags j has) - c · (value to minimise) + [i = j] · S_i

With R the range of the second term and m the margin that softmax needs: ``c · value_gap ≥ m``
tells competitors apart, ``M > R`` puts everyone eligible above everyone else. S_i decides between
selecting and keeping. It is an affine function of the receiver's own flags, found by a linear
program over every case that a receiver can be in:

- the receiver is blocked: itself above all;
- it is eligible itself and may select itself: S_i = 0, it competes on its merit;
- otherwise: itself above the ineligible, below the eligible.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from mechgap.compiler.affine import Affine, affine, term
from mechgap.compiler.domain import Domain
from mechgap.compiler.facts import Mask, receiver_cases
from mechgap.errors import InvalidInput
from mechgap.programs.expressions import Name, Side
from mechgap.programs.language import Extreme, GraphProgram

MASKED = 1e9
"""What the network subtracts from the logit of a non-neighbour."""


@dataclass(frozen=True)
class Logits:
    """The logit as an affine form of the sender and a bonus for oneself."""

    linear: Affine
    """Of the sender and the edge; terms of the receiver alone change nothing and are left out."""
    low: float
    """The smallest value of `linear`."""
    high: float
    self_bonus: Affine
    """S, of the receiver's flags."""
    sharpness: float
    """c"""
    mask_weight: float
    """M"""
    margin: float
    """m: how far apart logits are that must not be confused."""


def margin(domain: Domain) -> float:
    """How far below the best logit all others must be.

    Then their weights together are below a quarter of the last digit: the sum of all weights
    rounds to the best one's, whose attention is exactly 1.
    """
    return float(np.log(4 * domain.nodes / domain.epsilon))


def logits(program: GraphProgram, mask: Mask, domain: Domain) -> Logits:
    """The constants of the selection, derived from the domain."""

    def bounds(name: Name) -> tuple[float, float]:
        return domain.bounds(program, name)

    m = margin(domain)
    sign = 1.0 if program.select.extreme is Extreme.MINIMUM else -1.0
    value = sign * affine(program.select.expression)
    value = value.side(Side.OTHER, Side.EDGE)
    gap = domain.value_gap
    low, high = value.range(bounds)
    sharpness = m / gap
    spread = sharpness * (high - low)
    # Each window of the linear program has to hold two margins beside the spread.
    mask_weight = 2 * spread + 4 * m if mask.sender_flags else 0.0
    best = Affine({}, sharpness * low) - sharpness * value
    bonus = _self_bonus(program, mask, spread, mask_weight, m)
    flags = Affine()
    for flag in mask.sender_flags:
        flags = flags + term(Side.OTHER, flag, mask_weight)
    linear = best + flags
    return Logits(linear, *linear.range(bounds), bonus, sharpness, mask_weight, m)


def _self_bonus(
    program: GraphProgram, mask: Mask, spread: float, mask_weight: float, m: float
) -> Affine:
    """S_i as an affine function of the receiver's flags, with as few and small terms as can be."""
    cases = list(receiver_cases(program, mask))
    flags = sorted(cases[0])
    wanted = len(mask.sender_flags)
    rows: list[tuple[Mapping[str, int], float, float]] = []
    for case in cases:
        has = sum(case[flag] for flag in mask.sender_flags)
        blocked = any(case[flag] for flag in mask.blocking_flags)
        # Without the bonus its own logit lies between base - spread and base.
        base = mask_weight * has
        eligible = (mask_weight * wanted - spread, mask_weight * wanted)
        if blocked:
            rows.append((case, eligible[1] - (base - spread) + m, np.inf))
        elif has == wanted and not mask.excludes_self:
            rows.append((case, 0.0, 0.0))
        else:
            above = mask_weight * (wanted - 1) - (base - spread) + m if wanted else -np.inf
            rows.append((case, above, eligible[0] - base - m))
    # Columns: the constant and the flags' coefficients, each as positive minus negative part.
    columns = np.array([[1.0, *(case[flag] for flag in flags)] for case, _, _ in rows])
    both = np.hstack([columns, -columns])
    lows, highs = np.array([low for _, low, _ in rows]), np.array([high for *_, high in rows])
    matrix = np.vstack([-both[np.isfinite(lows)], both[np.isfinite(highs)]])
    limits = np.concatenate([-lows[np.isfinite(lows)], highs[np.isfinite(highs)]])
    # A term costs attention units, so the constant is cheaper than a flag.
    cost = np.tile([1.0, *[1.5] * len(flags)], 2)
    found = linprog(cost, A_ub=matrix, b_ub=limits, bounds=(0, None))
    if not found.success:
        raise InvalidInput(
            f"{program.name}: no bonus for attending to oneself fits every case of the mask "
            f"'{program.mask}'"
        )
    coefficients = found.x[: len(flags) + 1] - found.x[len(flags) + 1 :]
    coefficients = np.where(np.abs(coefficients) < 1e-6 * max(1.0, mask_weight), 0.0, coefficients)
    bonus = Affine({}, float(coefficients[0]))
    for flag, coefficient in zip(flags, coefficients[1:], strict=True):
        if coefficient:
            bonus = bonus + term(Side.SELF, flag, float(coefficient))
    return bonus
