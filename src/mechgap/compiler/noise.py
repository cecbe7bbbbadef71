"""How far logits can be off, in every phase, where nobody is selected and where somebody is.

A unit that selects is silent where its flags do not hold: a leaky relu whose leak another unit
takes away. Both read the same flags, so what these are off by cancels, and of rounding only the
leak's share is left. Where its flags hold it counts in full; but what the receiver brings is the
same for all senders, and races do not see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from math import frexp

from mechgap.compiler.affine import Affine
from mechgap.compiler.errors import Errors, Growth
from mechgap.compiler.gadgets import LEAK
from mechgap.compiler.logits import Itself, LogitUnit, asked_for_and_barred, mends
from mechgap.compiler.reading import Reading
from mechgap.compiler.registers import Flag, Moved, Register
from mechgap.compiler.rounding import Bounds, gamma
from mechgap.programs.expressions import Name, Side
from mechgap.programs.validate import is_flag

_SHORT = 12
"""The most binary digits of a weight whose products with flags are exact."""


@dataclass(frozen=True)
class Off:
    """How far something can be off: at the start, and more for every hop of its numbers."""

    start: float = 0.0
    each_hop: float = 0.0
    each_size: float = 0.0
    """And more for all that was added up to these numbers."""


@dataclass(frozen=True)
class Noise:
    """How far logits can be off in every phase."""

    silent: tuple[float, ...]
    """Of a sender that is not eligible."""
    racing: tuple[Off, ...]
    """Of a sender that is, beside others that are."""
    received: tuple[float, ...]
    """What the receiver's own flags add, beside those that are not."""
    numbers: tuple[float, ...]
    """The most that numbers can be off by, among those that are."""
    units: int
    """How many units a logit is the sum of."""

    @staticmethod
    def none(phases: int) -> "Noise":
        """As if all were exact."""
        return Noise((0.0,) * phases, (Off(),) * phases, (0.0,) * phases, (0.0,) * phases, 0)

    @property
    def largest(self) -> float:
        """How far any logit can be off."""
        started = (off.start for off in self.racing)
        racing = map(sum, zip(started, self.received, self.numbers, strict=True))
        return max(*self.silent, *racing)

    def within(self, other: "Noise") -> bool:
        """Whether nothing is further off than in another."""
        pairs = zip(self._numbers, other._numbers, strict=True)
        return all(mine <= theirs for mine, theirs in pairs)

    def more(self) -> "Noise":
        """A little more of everything."""
        return replace(
            self,
            silent=tuple(1.01 * off for off in self.silent),
            racing=tuple(replace(off, start=1.01 * off.start) for off in self.racing),
            received=tuple(1.01 * off for off in self.received),
        )

    @property
    def _numbers(self) -> tuple[float, ...]:
        return (
            *self.silent,
            *(off.start for off in self.racing),
            *self.received,
            float(self.units),
        )


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
            _quiet(part, sizes, i, len(units), racing=True) for part in units if part.selects != i
        )
        if i not in selecting:
            return Off(others)
        form = selecting[i].zeta
        seen = form.side(Side.OTHER, Side.EDGE)
        flags = sum(abs(v) * sizes.in_a_race(name, v) for name, v in seen.terms.items())
        grown = [
            (abs(v), errors.numbers.get(name.name, Growth())) for name, v in seen.terms.items()
        ]
        bases = sum(v * growth.base for v, growth in grown)
        highest = max(0.0, form.range(reading.bounds)[1])
        summed = gamma(len(units) - 1, errors.unit) * highest
        return Off(
            others + flags + bases + sizes.rounded_in_a_race(form, i) + summed,
            sum((v * growth.each_hop for v, growth in grown), 0.0),
            sum((v * growth.each_size for v, growth in grown), 0.0),
        )

    def of_numbers(i: int) -> float:
        form = selecting[i].zeta if i in selecting else Affine()
        numbers = ((abs(v), errors.numbers.get(n.name, Growth())) for n, v in form.terms.items())
        return sum((v * growth.worst(errors.hops) for v, growth in numbers), 0.0)

    def received(i: int) -> float:
        if i not in selecting:
            return 0.0
        own = selecting[i].zeta.side(Side.SELF)
        inherited = sum(abs(v) * errors.of(name) for name, v in own.terms.items())
        return inherited + sizes.rounded(own, sizes.of(own, i))

    return Noise(
        silent=tuple(silent(i) for i in phases),
        racing=tuple(racing(i) for i in phases),
        received=tuple(received(i) for i in phases),
        numbers=tuple(of_numbers(i) for i in phases),
        units=len(units),
    )


def _quiet(part: LogitUnit, sizes: "_Sizes", phase: int, units: int, racing: bool = False) -> float:
    """What a unit adds where it does not select: rounding, its leaky relu, the sum of all units."""
    form, weight = part.unit.zeta, abs(part.unit.omega)
    if part.itself is Itself.TENT:
        return weight * _of_tent(form, sizes, phase, units)
    size = sizes.of(form, phase, where_set=racing and part.mends)
    share = LEAK if part.selects is not None else 1.0
    inherited = 0.0
    if part.selects is None and not part.mends:
        inherited = sum(abs(v) * sizes.errors.of(name) for name, v in form.terms.items())
    summed = gamma(units + 2, sizes.errors.unit)
    leaks = 0.0
    if part.itself is Itself.BIAS and not racing and len(form.terms) > 1:
        leaks = LEAK  # where its width is 0, a node's own logit is so much nearer to all others
    if part.selects is not None and not mends(sizes.reading):
        # What is not taken away differs between senders by at most this, half of it up or down.
        asked = asked_for_and_barred(sizes.reading.program.phases[part.selects])
        seen = form.side(Side.OTHER, Side.EDGE).terms.items()
        against = Affine({name: value for name, value in seen if name.name != asked})
        low, high = against.range(sizes.reading.bounds)
        leaks = LEAK * (high - low) / 2
    return weight * (inherited + leaks + share * (sizes.rounded(form, size) + summed * size))


def _of_tent(form: Affine, sizes: "_Sizes", phase: int, units: int) -> float:
    """What a unit of a tent over positions adds to the errors of a logit.

    The sender's position, times the steepness, is the same number in all units of the tent,
    rounded in the same way: a tent moved by it is still 0 for all others. What is left is the
    receiver's part, adding both (nothing on a grid), and the sum of all units; and positions differ
    by at most 1.
    """
    own = form.side(Side.SELF) + form.constant
    inherited = sum(abs(v) * sizes.errors.of(name) for name, v in own.terms.items())
    of_own = sizes.of(own, phase)
    summed = gamma(units + 3, sizes.errors.unit) * of_own
    return inherited + sizes.rounded(own, of_own, form) + summed


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
            return self._terms(name) * max(map(abs, self.reading.bounds(name)))
        if register.phase != phase and not self.errors.normed:
            return 0.0
        subtracted = () if where_set else register.subtracted
        return 2.0 + sum(4 * max(0.0, form.range(self.reading.bounds)[1]) for form in subtracted)

    def rounded(
        self, form: Affine, size: float, whole: Affine | None = None, more: int = 0
    ) -> float:
        """The error of adding up a form of some size, and of weights and products unless exact.

        Where it is part of a whole, that is what must add up exactly if it is to be nothing.
        """
        grid = self.errors.grid
        if grid is not None and grid.adds_up(form if whole is None else whole):
            return 0.0
        terms = sum(map(self._terms, form.terms)) + more
        exact = not self.errors.normed and all(starmap(self._is_exact, form.terms.items()))
        return gamma(terms + (1 if exact else 3), self.errors.unit) * size

    def _is_exact(self, name: Name, weight: float) -> bool:
        """Whether a product needs no rounding: a power of two, or few digits times a flag."""
        digits = abs(frexp(weight)[0])
        return digits == 0.5 or (self._is_flag(name) and (digits * 2**_SHORT).is_integer())

    def _is_flag(self, name: Name) -> bool:
        points = name.side is Side.EDGE and name.name in self.reading.program.components
        return points or self._flag(name) is not None or is_flag(self.reading.program, name)

    def in_a_race(self, name: Name, weight: float) -> float:
        """How far a flag or pointer of whoever is eligible can be off; numbers are counted apart.

        Flags that are asked for are set. If they are hints they are exactly 1: what is left for
        anything else is less than rounding leaves.
        """
        if name.name in self.errors.numbers:
            return 0.0
        if weight < 0 or not self._is_flag(name):
            return self.errors.of(name)
        usual = 0.0 if not self.errors.normed else self.errors.of(name)
        return self.errors.where_set.get(name.name, usual)

    def rounded_in_a_race(self, form: Affine, phase: int) -> float:
        """How far rounding can move a form apart from that of another who is eligible.

        What a node sees of the sender is one sum, and so is what it has itself, which is the same
        for all senders; then these and the edge's terms are added, in any order. Flags have short
        weights, so that nothing is rounded before a number is added to them.
        """
        seen = form.side(Side.OTHER, Side.EDGE)
        if self.errors.grid is not None and self.errors.grid.adds_up(form):
            return 0.0
        # Of the receiver's flags those that are asked for are 1, and the others 0.
        own = form.constant + sum(max(0.0, v) for v in form.side(Side.SELF).terms.values())
        if self.errors.normed or not all(self._is_known(n, v) for n, v in form.terms.items()):
            size = self.of(seen, phase, where_set=True) + abs(own)
            return self.rounded(seen, size, more=1)
        sender, edges = form.side(Side.OTHER), form.side(Side.EDGE)
        of_sender = [end for n, v in sender.terms.items() for end in self._ends(n, v)]
        of_edges = [end for n, v in edges.terms.items() for end in self._ends(n, v)]
        low, high = sender.range(self._raced(sender))
        parts = [(low, high), (own, own), *of_edges]
        within = gamma(max(0, len(of_sender) - 1), self.errors.unit) * _largest_partial(of_sender)
        return within + gamma(1 + len(of_edges), self.errors.unit) * _largest_partial(parts)

    def _raced(self, form: Affine) -> Bounds:
        """What names are worth for whoever is eligible: flags are set, or must not be."""

        def bounds(name: Name) -> tuple[float, float]:
            if not self._is_flag(name):
                return self.reading.bounds(name)
            return (1.0, 1.0) if form.terms[name] > 0 else (0.0, 0.0)

        return bounds

    def _ends(self, name: Name, weight: float) -> list[tuple[float, float]]:
        """The least and most that each unit behind a name adds, for whoever is eligible."""
        if self._flag(name) is not None and weight > 0:  # a flag's units are 3 / 2 and 1 / 2
            return [(1.5 * weight, 1.5 * weight), (-0.5 * weight, -0.5 * weight)]
        low, high = (weight * end for end in self.reading.bounds(name))
        return [(min(low, high), max(low, high))] * self._terms(name)

    def _terms(self, name: Name) -> int:
        """How many terms a name is read as: two units, and of a difference its start."""
        held = [] if name.side is Side.EDGE else [r for r in self.registers if r.name == name.name]
        return 1 + len(held) + any(isinstance(register, Moved) for register in held)

    def _is_known(self, name: Name, weight: float) -> bool:
        return not self._is_flag(name) or self._is_exact(name, weight)

    def _flag(self, name: Name) -> Flag | None:
        found = (r for r in self.registers if r.name == name.name and isinstance(r, Flag))
        return next(found, None)


def _largest_partial(parts: Sequence[tuple[float, float]]) -> float:
    """The largest sum of some of these, without its sign, each between its two ends."""
    above = sum((max(0.0, high) for _, high in parts), 0.0)
    below = sum((max(0.0, -low) for low, _ in parts), 0.0)
    return max(above, below)
