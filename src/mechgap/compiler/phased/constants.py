"""The weights of the logits, from the domain: large enough to decide, small enough to be exact.

With m the margin by which a logit must win and E what any logit can be off by, every decision needs
``m + 2 E``. E grows with the weights, so they are found by iteration; where that does not end, the
domain cannot be met.
"""

from collections.abc import Sequence

from mechgap.compiler.domain import Domain
from mechgap.compiler.gadgets import Unit
from mechgap.compiler.phased.errors import Errors
from mechgap.compiler.phased.logits import Weights, attention_units
from mechgap.compiler.phased.reading import Reading
from mechgap.compiler.rounding import gamma
from mechgap.compiler.sharpness import LARGEST_LOGIT
from mechgap.errors import InvalidInput

POINTER_SHARE = 1 / 3
"""How far a pointer may be off, of the smallest difference between positions."""
_STEEP = 1.1 / (1 - POINTER_SHARE)
"""Tents over pointers, times that difference: zero for every node but the one that is meant."""
_MEANT = 1 - _STEEP * POINTER_SHARE
"""What is left of a tent at the node that is meant."""
_ROUNDS = 50


def weights_for(need: float, domain: Domain) -> Weights:
    """The weights with which every decision is won by at least `need`."""
    keep = need
    follow = keep + need
    # Whoever is eligible may also be oneself, or one's pointer's node, and must not win by that.
    apart = keep + follow + need
    sharpness = apart / domain.position_gap
    return Weights(
        keep=keep,
        follow=follow,
        sharpness=sharpness,
        mask=sharpness + apart,
        point=(keep + need) / _MEANT,
        steepness=_STEEP / domain.position_gap,
    )


def decide(
    reading: Reading, domain: Domain, margin: float, errors: Errors
) -> tuple[Weights, tuple[Unit, ...], float]:
    """The weights, the attention units, and how far a logit can be off."""
    error = 0.0
    for _ in range(_ROUNDS):
        weights = weights_for(margin + 2 * error, domain)
        units = attention_units(reading, domain.position_gap, weights)
        now = logit_error(units, errors)
        if weights.mask + now > LARGEST_LOGIT:
            break
        if now <= error:
            return weights, units, error
        error = 1.01 * now
    raise InvalidInput(
        f"{reading.program.name} cannot be certified in {domain.dtype} with {domain.nodes} nodes: "
        f"with position_gap = {domain.position_gap:.2g} logits can be off by {error:.2g}, more "
        "than any weight can make up for. Use float64, or positions further apart"
    )


def logit_error(units: Sequence[Unit], errors: Errors) -> float:
    """How far a logit can be off: each pre-activation, its leaky relu, then the sum of all."""
    adding = gamma(len(units) + 2, errors.unit)
    total = 0.0
    for unit in units:
        size = abs(unit.zeta.constant) + sum(map(abs, unit.zeta.terms.values()))
        total += abs(unit.omega) * (errors.form(unit.zeta) + adding * size)
    return total
