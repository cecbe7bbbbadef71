"""How far logits can be off, in every phase, where nobody is selected and where somebody is.

A unit that selects is silent where its flags do not hold: a leaky relu whose leak another unit
takes away. Both read the same flags, so what these are off by cancels, and of rounding only the
leak's share is left. Where its flags hold it counts in full; but what the receiver brings is the
same for all senders, and races do not see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from math import frexp

from mechgap.compiler.affine import Affine
from mechgap.compiler.gadgets import LEAK
from mechgap.compiler.phased.errors import Errors
from mechgap.compiler.phased.logits import LogitUnit, mends
from mechgap.compiler.phased.reading import Reading
from mechgap.compiler.phased.registers import Flag, Register
from mechgap.compiler.rounding import gamma
from mechgap.programs.expressions import Name, Side
from mechgap.programs.validate import is_flag

_SHORT = 12
"""The most binary digits of a weight whose products with flags are exact."""


@dataclass(frozen=True)
class Off:
    """How far something can be off: at the start, and more for every hop of its numbers."""

    start: float = 0.0
    each_hop: float = 0.0


@dataclass(frozen=True)
class Noise:
    """How far logits can be off in every phase."""

    silent: tuple[float, ...]
    """Of a sender that is not eligible."""
    racing: tuple[Off, ...]
    """Of a sender that is, beside others that are."""
    received: tuple[float, ...]
    """What the receiver's own flags add, beside those that are not."""
    hops: int

    @staticmethod
    def none(phases: int) -> "Noise":
        """As if all were exact."""
        return Noise((0.0,) * phases, (Off(),) * phases, (0.0,) * phases, 0)

    @property
    def largest(self) -> float:
        """How far any logit can be off."""
        racing = (off.start + self.hops * off.each_hop for off in self.racing)
        return max(*self.silent, *(r + s for r, s in zip(racing, self.received, strict=True)))

    def within(self, other: "Noise") -> bool:
        """Whether nothing is further off than in another."""
        pairs = zip(self._numbers, other._numbers, strict=True)
        return all(mine <= theirs for mine, theirs in pairs)

    def more(self) -> "Noise":
        """A little more of everything."""
        return Noise(
            tuple(1.01 * off for off in self.silent),
            tuple(Off(1.01 * off.start, off.each_hop) for off in self.racing),
            tuple(1.01 * off for off in self.received),
            self.hops,
        )

    @property
    def _numbers(self) -> tuple[float, ...]:
        return (*self.silent, *(off.start for off in self.racing), *self.received)


def noise(
    reading: Reading,
    units: Sequence[LogitUnit],
    errors: Errors,
    registers: Sequence[Register],
) -> Noise:
    """How far the sum of these units can be off."""
    sizes = _Sizes(reading, errors, registers)
    phases = range(reading.phases)
    selecting = {part.selects: part.unit for part in units if part.selects is not None}

    def silent(i: int) -> float:
        return sum(_quiet(part, sizes, i, len(units)) for part in units)

    def racing(i: int) -> Off:
        others = sum(
            _quiet(part, sizes, i, len(units), where_set=part.mends)
            for part in units
            if part.selects != i
        )
        if i not in selecting:
            return Off(others)
        form, weight = selecting[i].zeta, abs(selecting[i].omega)
        seen = form.side(Side.OTHER, Side.EDGE)
        # The receiver's part is one number: flags that hold are 1, those that must not hold are 0.
        own = abs(form.constant) + sum(max(0.0, v) for v in form.side(Side.SELF).terms.values())
        flags = sum(abs(v) * sizes.where_set(name) for name, v in seen.terms.items())
        hops = sum(abs(v) * errors.numbers.get(name.name, 0.0) for name, v in seen.terms.items())
        highest = max(0.0, form.range(reading.bounds)[1])
        rounded = sizes.rounding(seen, more=1) * (sizes.of(seen, i, where_set=True) + own)
        summed = gamma(len(units) + 2, errors.unit) * highest
        return Off(others + weight * (flags + rounded + summed), weight * hops)

    def received(i: int) -> float:
        if i not in selecting:
            return 0.0
        own = selecting[i].zeta.side(Side.SELF)
        inherited = sum(abs(v) * errors.of(name) for name, v in own.terms.items())
        return abs(selecting[i].omega) * (inherited + sizes.rounding(own) * sizes.of(own, i))

    return Noise(
        silent=tuple(silent(i) for i in phases),
        racing=tuple(racing(i) for i in phases),
        received=tuple(received(i) for i in phases),
        hops=errors.hops if errors.numbers else 0,
    )


def _quiet(
    part: LogitUnit, sizes: "_Sizes", phase: int, units: int, where_set: bool = False
) -> float:
    """What a unit adds where it does not select: rounding, its leaky relu, the sum of all units."""
    form, weight = part.unit.zeta, abs(part.unit.omega)
    if part.finds_itself:
        return weight * _of_tent(form, sizes, phase, units)
    size = sizes.of(form, phase, where_set)
    share = LEAK if part.selects is not None else 1.0
    inherited = 0.0
    if part.selects is None and not part.mends:
        inherited = sum(abs(v) * sizes.errors.of(name) for name, v in form.terms.items())
    summed = gamma(units + 2, sizes.errors.unit)
    leaks = 0.0
    if part.selects is not None and not mends(sizes.reading):
        # What is not taken away differs between senders by at most this, half of it up or down.
        low, high = form.side(Side.OTHER, Side.EDGE).range(sizes.reading.bounds)
        leaks = LEAK * (high - low) / 2
    return weight * (inherited + leaks + share * (sizes.rounding(form) + summed) * size)


def _of_tent(form: Affine, sizes: "_Sizes", phase: int, units: int) -> float:
    """What a unit of a tent over positions adds to the errors of a logit.

    The sender's position, times the steepness, is the same number in all units of the tent,
    rounded in the same way: a tent moved by it is still 0 for all others. What is left is the
    receiver's part, adding both, and the sum of all units; and positions differ by at most 1.
    """
    own = form.side(Side.SELF) + form.constant
    inherited = sum(abs(v) * sizes.errors.of(name) for name, v in own.terms.items())
    of_own = sizes.of(own, phase)
    return inherited + (sizes.rounding(own) + gamma(units + 3, sizes.errors.unit)) * of_own


@dataclass(frozen=True)
class _Sizes:
    """How large the units are that a name is read from."""

    reading: Reading
    errors: Errors
    registers: Sequence[Register]

    def of(self, form: Affine, phase: int, where_set: bool = False) -> float:
        """All that a form adds up while a phase runs, without signs."""
        return abs(form.constant) + sum(
            abs(value) * self._of_name(name, phase, where_set) for name, value in form.terms.items()
        )

    def _of_name(self, name: Name, phase: int, where_set: bool) -> float:
        register = self._flag(name)
        if register is None:
            return (1 + self._held(name)) * max(map(abs, self.reading.bounds(name)))
        if register.phase != phase and not self.errors.normed:
            return 0.0
        less = () if where_set else register.less
        return 2.0 + sum(4 * max(0.0, form.range(self.reading.bounds)[1]) for form in less)

    def rounding(self, form: Affine, more: int = 0) -> float:
        """The relative error of adding up a form: every unit once, and products unless exact."""
        terms = sum(2 if self._held(name) else 1 for name in form.terms) + more
        exact = not self.errors.normed and all(starmap(self._is_exact, form.terms.items()))
        return gamma((terms + 1) if exact else (3 * terms + 2), self.errors.unit)

    def _is_exact(self, name: Name, weight: float) -> bool:
        """Whether a product needs no rounding: a power of two, or few digits times a flag."""
        digits = abs(frexp(weight)[0])
        points = name.side is Side.EDGE and name.name in self.reading.program.components
        is_known = points or self._flag(name) is not None or is_flag(self.reading.program, name)
        return digits == 0.5 or (is_known and (digits * 2**_SHORT).is_integer())

    def where_set(self, name: Name) -> float:
        """How far a flag that is set can be off; numbers are counted apart."""
        if name.name in self.errors.numbers:
            return 0.0
        return self.errors.where_set.get(name.name, self.errors.of(name))

    def _flag(self, name: Name) -> Flag | None:
        found = (r for r in self.registers if r.name == name.name and isinstance(r, Flag))
        return next(found, None)

    def _held(self, name: Name) -> bool:
        return name.side is not Side.EDGE and any(r.name == name.name for r in self.registers)
