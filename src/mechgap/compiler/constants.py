"""The weights of the logits, from the domain: large enough to decide, small enough to be exact.

With m the margin by which a logit must win, E what logits can be off by where nobody is selected,
and R where somebody is, keeping and following need ``m + 2 E``, and a race between two who are
eligible needs ``m + 2 R`` beside what keeping adds if one of them is the receiver itself. E and R
grow with the weights, so they are found by iteration; where that does not end, the domain cannot be
met.

Where nodes are selected by position, the sharpness is as small as the domain allows. Where they are
selected by numbers, near-ties are a matter of luck, and it is as large as logits may be.
"""

from dataclasses import dataclass
from math import ceil, floor, log, log2
from typing import Any

from mechgap.compiler.domain import Domain
from mechgap.compiler.errors import Errors
from mechgap.compiler.gadgets import LEAK
from mechgap.compiler.keeping import excludes_itself, relaxes
from mechgap.compiler.logits import (
    Itself,
    LogitUnit,
    Weights,
    attention_units,
    ends_with_itself,
    full,
    keeps_only_if_it_fails,
    may_select_itself,
    value_of,
)
from mechgap.compiler.noise import Noise, noise
from mechgap.compiler.reading import Reading
from mechgap.compiler.registers import Register
from mechgap.errors import InvalidInput
from mechgap.programs.phases import Phase
from mechgap.programs.races import by_position

LARGEST_LOGIT = 2.0**29
"""The network adds -1e9 to the logits of non-neighbours; these must stay below all others."""
POINTER_SHARE = 1 / 3
"""How far a pointer may be off, of the smallest difference between positions."""
_STEEP = 1.1 / (1 - POINTER_SHARE)
"""Tents over pointers, times that difference: zero for every node but the one that is meant."""
_MEANT = 1 - _STEEP * POINTER_SHARE
"""What is left of a tent at the node that is meant."""
_BITS = 6
_ROUNDS = 50


def margin(domain: Domain) -> float:
    """How far below the best logit all others must be.

    Then their weights together are below 2^-12 of the last digit: the sum of all weights rounds to
    the best one's, whose attention is exactly 1; and sums of few short numbers, to which so little
    is added, round to what they are without it. On a grid so does every position but 0, and all
    steps together leave 0 nearer to 0 than that.
    """
    others = domain.epsilon / 2**12
    if domain.position_grid is not None:
        others = min(others, domain.epsilon * domain.position_grid / (8 * domain.steps))
    return log(domain.nodes / others)


@dataclass(frozen=True)
class Race:
    """How far apart competing values must be: at the start, and more for every hop."""

    start: float = 0.0
    each_hop: float = 0.0
    each_size: float = 0.0
    """Times all that was added up in the longest chain of numbers made of each other."""

    def needs(self, hops: Any, carried: Any) -> Any:
        """How far apart values must be after so many hops that carried so much."""
        return self.start + hops * self.each_hop + carried * self.each_size


@dataclass(frozen=True)
class Decided:
    """The weights and what follows from them."""

    weights: Weights
    units: tuple[LogitUnit, ...]
    logit_error: float
    """How far a logit can be off."""
    races: tuple[Race, ...]
    """Of every phase; nothing where positions compete."""


def short(value: float, bits: int = _BITS) -> float:
    """The next larger number of few binary digits: its products with flags are exact."""
    if value <= 0:
        return 0.0
    last = 2.0 ** (floor(log2(value)) - bits)
    return last * ceil(value / last)


def largest_logit(reading: Reading, domain: Domain) -> float:
    """What no logit may exceed: more where nothing is subtracted from non-neighbours."""
    return 128 / domain.epsilon if reading.program.sees_all else LARGEST_LOGIT


def slack(normed: bool) -> float:
    """How far the flags of a mask may be off where they do not hold."""
    return 1 / 4 if normed else 1 / 16


def weights_for(
    reading: Reading, domain: Domain, m: float, off: Noise, itself: Itself, normed: bool
) -> Weights:
    """The weights with which every decision is won by at least m."""
    phases = list(enumerate(reading.program.phases))
    whole, spoken = full(reading), _spoken(off, itself)
    bits = _BITS if domain.position_grid is None else 0  # a position needs the others
    need = [m + 2 * off.silent[i] for i, _ in phases]
    keep = short(max([m, *(need[i] for i, phase in phases if ends_with_itself(phase))]))
    follow = short(max([0.0, *((need[i] + spoken) / whole for i, p in phases if p.followed)]))
    # A valley goes on falling: whoever is eligible must be lifted out of it, wherever it is.
    falling = keep * domain.steepness if itself is Itself.VALLEY else 0.0
    sharpness, mask, barred = [], [], []
    for i, phase in phases:
        above = value_of(reading, i, phase).range(reading.bounds)[1] or 1.0  # or all are the same
        if by_position(reading.program, phase):
            apart = bias(reading, keep, spoken, phase, itself) + m + 2 * off.racing[i].start
            sharp = short((apart / domain.position_gap + falling) / whole, bits)
        else:
            share = 4 if _must_be_barred(reading, phase) else 2
            sharp = 2.0 ** floor(log2(largest_logit(reading, domain) / (share * above)))
        lifted = keep + falling + follow + m + spoken
        lifted += off.silent[i] + off.racing[i].start + off.received[i] + off.numbers[i]
        sharpness.append(sharp)
        # A node that passes its own mask and is barred must come between who is eligible and who is
        # not: whatever its own value is, or, if that is no better than another's, by a little.
        own = sharp * above if _must_be_barred(reading, phase) else 0.0
        barred.append(own + lifted if excludes_itself(phase) else 0.0)
        mask.append(short(sharp * above + (lifted + barred[-1]) / whole))
    return Weights(
        keep=keep,
        follow=follow,
        sharpness=tuple(sharpness),
        mask=tuple(mask),
        barred=tuple(barred),
        slack=slack(normed),
        point=(max(keep, follow) + max(need)) / _MEANT,
        steepness=domain.steep(_STEEP),
    )


def _spoken(off: Noise, itself: Itself) -> float:
    """What a pre-attention bias adds to a node's logit of itself, since every unit sees it."""
    return float(off.units) if itself is Itself.BIAS else 0.0


def bias(reading: Reading, keep: float, spoken: float, phase: Phase, itself: Itself) -> float:
    """What one of two competitors can have beside its value, if it can be the receiver itself."""
    if not may_select_itself(phase):
        return 0.0
    keeps = keep if ends_with_itself(phase) else 0.0
    if keeps_only_if_it_fails(reading, phase):
        keeps *= LEAK if itself is Itself.BIAS else 0.0
    return keeps + spoken


def _must_be_barred(reading: Reading, phase: Phase) -> bool:
    return excludes_itself(phase) and not relaxes(reading.program, phase)


def decide(
    reading: Reading,
    domain: Domain,
    m: float,
    errors: Errors,
    registers: tuple[Register, ...],
    itself: Itself,
) -> Decided:
    """Weights that are enough for what logits can be off by with them."""
    assumed = Noise.none(reading.phases)
    for _ in range(_ROUNDS):
        weights = weights_for(reading, domain, m, assumed, itself, errors.normed)
        units = attention_units(reading, domain.steepness, weights, itself)
        now = noise(reading, units, errors, registers)
        if max(weights.mask) + now.largest > largest_logit(reading, domain):
            break
        if now.within(assumed):
            return Decided(weights, units, now.largest, _races(reading, m, weights, now, itself))
        assumed = now.more()
    raise InvalidInput(
        f"{reading.program.name} cannot be certified in {domain.dtype} with {domain.nodes} nodes: "
        f"with position_gap = {domain.position_gap:.2g} logits can be off by {assumed.largest:.2g},"
        " more than any weight can make up for. Use float64, or positions further apart"
    )


def _races(
    reading: Reading, m: float, weights: Weights, off: Noise, itself: Itself
) -> tuple[Race, ...]:
    found = []
    for i, phase in enumerate(reading.program.phases):
        if by_position(reading.program, phase):
            found.append(Race())
            continue
        racing, sharp = off.racing[i], full(reading) * weights.sharpness[i]
        of_itself = bias(reading, weights.keep, _spoken(off, itself), phase, itself)
        apart = of_itself + m + 2 * racing.start
        found.append(Race(apart / sharp, 2 * racing.each_hop / sharp, 2 * racing.each_size / sharp))
    return tuple(found)
