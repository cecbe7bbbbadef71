"""Positions on a grid: sums of them, and of flags, that are not rounded at all.

Numbers that are multiples of a power of two add up exactly, in any order, as long as no sum is
larger than so many multiples as the dtype has digits for. Flags that are set are exactly 1. What
attention leaves of others is so little (see `constants.margin`) that it rounds away, unless all
else is 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mechgap.compiler.affine import Affine
from mechgap.compiler.domain import Domain
from mechgap.compiler.reading import Reading
from mechgap.compiler.registers import Flag, Moved, Place, Register
from mechgap.compiler.rounding import last_digit
from mechgap.programs.expressions import Name, Side
from mechgap.programs.validate import is_flag

_UNITS = 4
"""The most that the units behind a name add up to, times what it is worth."""


@dataclass(frozen=True)
class Grid:
    """Which sums are exact."""

    reading: Reading
    step: float
    """What all positions are multiples of."""
    unit: float
    """The largest relative error of one rounding."""
    positions: frozenset[str]
    flags: frozenset[str]
    """Registers that are exactly 0 or 1."""
    vague: frozenset[str]
    """Flags that are not."""

    @staticmethod
    def of(
        reading: Reading, registers: Sequence[Register], domain: Domain, normed: bool
    ) -> "Grid | None":
        """The grid of a domain; None where it has none, or layer norm moves what is on it."""
        if normed or domain.position_grid is None:
            return None
        flags = [register for register in registers if isinstance(register, Flag)]
        exact = {register.name for register in flags if is_exact(register)}
        held = {register.name for register in registers if isinstance(register, Place | Moved)}
        return Grid(
            reading,
            domain.position_grid,
            domain.rounding,
            frozenset({*held, reading.position}),
            frozenset(exact),
            frozenset({register.name for register in flags} - exact),
        )

    def adds_up(self, form: Affine) -> bool:
        """Whether no sum of any of a form's terms is rounded."""
        digits, size = [last_digit(form.constant)], abs(form.constant)
        for name, weight in form.terms.items():
            if self._is_position(name):
                digits.append(self.step * last_digit(weight))
            elif self._is_exact_flag(name):
                digits.append(last_digit(weight) / 4)  # a flag's units are 3 / 2 and 1 / 2 of it
            else:
                return False
            size += _UNITS * abs(weight)
        return size <= min(digits) / self.unit

    def _is_position(self, name: Name) -> bool:
        return name.side is not Side.EDGE and name.name in self.positions

    def _is_exact_flag(self, name: Name) -> bool:
        if name.side is Side.EDGE and name.name in self.reading.program.components:
            return True  # a pointer that is fed back
        known = name.name in self.flags or is_flag(self.reading.program, name)
        return known and name.name not in self.vague


def is_exact(flag: Flag) -> bool:
    """Whether a flag is exactly 0 or exactly 1, without layer norm."""
    return is_set_exactly(flag) and not flag.subtracted


def is_set_exactly(flag: Flag) -> bool:
    """Whether a flag is exactly 1 where it is set, without layer norm.

    Then one form is 1, and what is taken away is exactly 0.
    """
    return all(map(is_short_sum, flag.forms))


def is_short_sum(form: Affine) -> bool:
    """Whether a form of flags adds up multiples of 1/4, few enough for no sum to be rounded.

    Then it is exactly what it should be if its flags are; and if they are off by less than a
    rounding can see, as leaks are, wherever it is not 0.
    """
    weights = [form.constant, *form.terms.values()]
    return all((4 * weight).is_integer() for weight in weights) and sum(map(abs, weights)) < 2**10
