"""Selection as attention logits: who is eligible, who is best, and when a node keeps itself.

The logit of sender j for receiver i is

    M · (how many of the mask's flags j has) - c · value_ij + [i = j] · S_i

where `value` is what is minimised. Competitors are at least `value_gap` apart, so ``c · value_gap``
tells them apart; M lifts everyone eligible above everyone else; S_i decides between selecting and
keeping. S is an affine function of the receiver's own flags, found by a linear program over every
case that a receiver can be in:

- it is blocked: itself above everyone;
- it is eligible and may select itself: S_i = 0, it competes on its merit;
- otherwise: itself above the ineligible, below the best of the eligible.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mechgap.compiler.affine import Affine, affine, term
from mechgap.compiler.domain import Domain
from mechgap.compiler.facts import (
    Mask,
    receiver_cases,
    relaxed_component,
    set_by_every_update,
)
from mechgap.errors import InvalidInput
from mechgap.programs.expressions import Name, Side
from mechgap.programs.program import Program

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


def logits(program: Program, mask: Mask, domain: Domain, sharpness: float, m: float) -> Logits:
    """The logit for a given sharpness c and margin m."""
    sign = program.phases[0].select.sign
    value = (sign * affine(program.phases[0].select.expression)).side(Side.OTHER, Side.EDGE)
    ranges = _Ranges(program, mask, domain, sharpness * value)
    low, high = ranges.of({})
    never = dict.fromkeys(set_by_every_update(program, mask), 0)
    # The worst eligible must stay a margin above a keeper, who is a margin above the ineligible.
    own_low, own_high = ranges.of(never) if never else (low, high)
    mask_weight = high - own_low + (own_high - own_low) + 3 * m if mask.sender_flags else 0.0
    linear = Affine({}, low) - sharpness * value
    for flag in mask.sender_flags:
        linear = linear + term(Side.OTHER, flag, mask_weight)
    bonus = _self_bonus(program, mask, ranges, mask_weight, m)
    bounds = linear.range(lambda name: domain.bounds(program, name))
    return Logits(linear, *bounds, bonus, sharpness, mask_weight, m)


class _Ranges:
    """How large ``c · value`` can be, knowing some of a sender's flags."""

    def __init__(self, program: Program, mask: Mask, domain: Domain, value: Affine):
        self.program, self.mask, self.domain, self.value = program, mask, domain, value
        self.setters = set_by_every_update(program, mask)

    def of(self, flags: Mapping[str, int]) -> tuple[float, float]:
        never_updated = any(flags.get(flag) == 0 for flag in self.setters) or any(
            flags.get(flag) == 1 for flag in self.mask.blocking_flags if flag in self._inputs
        )

        def bounds(name: Name) -> tuple[float, float]:
            component = self.program.components.get(name.name)
            if component is None or not never_updated:
                return self.domain.bounds(self.program, name)
            initial = affine(self.program.starts[component.name])
            return initial.range(lambda at: self.domain.bounds(self.program, at))

        return self.value.range(bounds)

    @property
    def _inputs(self) -> set[str]:
        return set(self.program.inputs)


def _self_bonus(
    program: Program, mask: Mask, ranges: _Ranges, mask_weight: float, m: float
) -> Affine:
    """S_i as an affine function of the receiver's flags, with as few and small terms as can be."""
    cases = list(receiver_cases(program, mask))
    flags = sorted(cases[0])
    wanted = len(mask.sender_flags)
    relaxes = relaxed_component(program, mask) is not None
    low, high = ranges.of({})
    rows: list[tuple[Mapping[str, int], float, float]] = []
    for case in cases:
        has = sum(case[flag] for flag in mask.sender_flags)
        blocked = any(case[flag] for flag in mask.blocking_flags)
        own_low, own_high = ranges.of(case)
        # Logits, all counted from M · (flags wanted): its own without the bonus …
        least, most = (
            mask_weight * (has - wanted) - own_high,
            mask_weight * (has - wanted) - own_low,
        )
        best_eligible, worst_eligible = -low, -high
        ineligible = -mask_weight - low if wanted else -np.inf
        if blocked:
            rows.append((case, best_eligible - least + m, np.inf))
        elif has == wanted and not mask.excludes_self:
            rows.append((case, 0.0, 0.0))
        elif has == wanted and relaxes:
            # … and of the best offer, which is no worse than its own value without the edge's.
            rows.append((case, ineligible - least + m, -m))
        else:
            rows.append((case, ineligible - least + m, worst_eligible - most - m))
    most_low, least_high = max(low for _, low, _ in rows), min(high for *_, high in rows)
    if most_low <= least_high:  # one constant, the smallest, is right in every case
        return Affine({}, float(min(max(most_low, 0.0), least_high)))
    # Imported here because it takes as long as a compilation, and most programs need none.
    from scipy.optimize import linprog

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
            f"'{program.phases[0].mask}'"
        )
    coefficients = found.x[: len(flags) + 1] - found.x[len(flags) + 1 :]
    coefficients = np.where(np.abs(coefficients) < 1e-6 * max(1.0, mask_weight), 0.0, coefficients)
    bonus = Affine({}, float(coefficients[0]))
    for flag, coefficient in zip(flags, coefficients[1:], strict=True):
        if coefficient:
            bonus = bonus + term(Side.SELF, flag, float(coefficient))
    return bonus
