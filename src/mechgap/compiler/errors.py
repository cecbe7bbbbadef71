"""How far registers can be off, in the worst case over every order of summation.

Flags are restored in every phase and pointers are seen afresh, so what they are off by is what one
phase adds: rounding, and layer norm's drift and noise. Numbers gather errors for as long as each is
made of the one before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechgap.compiler.affine import Affine
from mechgap.compiler.ballast import Ballast, ballast
from mechgap.compiler.domain import Domain
from mechgap.compiler.grid import Grid, is_set_exactly
from mechgap.compiler.keeping import LOOP
from mechgap.compiler.reading import Reading, held
from mechgap.compiler.registers import (
    STORED,
    Count,
    Flag,
    Gated,
    Moved,
    Place,
    Register,
    Sum,
)
from mechgap.compiler.rounding import gamma
from mechgap.programs.conclusions import Grows
from mechgap.programs.expressions import Name, Side


@dataclass(frozen=True)
class Growth:
    """What a number adds to the error of those that it is made of."""

    base: float = 0.0
    """How far it can be off where it is 0, made of nothing."""
    each_hop: float = 0.0
    """Whatever its value is."""
    each_size: float = 0.0
    """Times the sum of the absolute values that are added up to it."""
    largest: float = 0.0
    """The largest such sum."""

    def off(self, hops: Any, carried: Any) -> Any:
        """How far it can be off after so many hops that carried so much."""
        return self.base + hops * self.each_hop + carried * self.each_size

    def worst(self, hops: int) -> float:
        """How far it can be off after so many hops, each as large as can be."""
        return self.off(hops, hops * self.largest)


@dataclass(frozen=True)
class Errors:
    """What everything that is read can be off by."""

    unit: float
    """The largest relative error of one rounding."""
    leak: float
    """How much attention can go to anyone but the selected sender, and how much of a hint's
    probability to anything but what was decided."""
    registers: Mapping[str, float]
    """Of flags and of pointers. Inputs are exact."""
    where_set: Mapping[str, float]
    """Of flags where they are set, which can be less."""
    numbers: Mapping[str, Growth]
    """Of numbers: what each adds to the error of those that it is made of."""
    hops: int
    """How many numbers can be made of each other, one after the other."""
    normed: bool
    """Whether there is layer norm, and so no register is exactly 0."""
    grid: Grid | None
    """Which sums are exact; None if all are rounded."""
    exact: frozenset[str]

    def of(self, name: Name) -> float:
        """How far a flag or input can be off; what is decided comes back as a hint."""
        if name.name in self.numbers:
            return self.numbers[name.name].worst(self.hops)
        return 0.0 if name.name in self.exact else self.registers.get(name.name, self.leak)

    def form(self, form: Affine) -> float:
        """How far a form of flags can be off."""
        inherited = sum(abs(value) * self.of(name) for name, value in form.terms.items())
        elsewhere = sum(map(abs, form.side(Side.OTHER).terms.values()))
        return inherited + self.leak * elsewhere + rounded(form, self.unit, self.grid)


def rounded(form: Affine, unit: float, grid: Grid | None) -> float:
    """What summing up a form can be off by, each register being read from two units.

    The two units of a flag that is set are 3 / 2 and 1 / 2 of what they stand for. A term is
    rounded as a weight, as a product, and whenever something is added to it.
    """
    if grid is not None and grid.adds_up(form):
        return 0.0
    size = abs(form.constant) + 2 * sum(map(abs, form.terms.values()))
    return gamma(2 * len(form.terms) + 3, unit) * size


def balance(
    reading: Reading, registers: Sequence[Register], domain: Domain, hidden_size: int
) -> Ballast:
    """The ballast that carries these registers through layer norm."""
    sizes = {register.name: _sizes(reading, register) for register in registers}

    def total(phase: int) -> float:
        """The most that all units can add up to when a phase begins."""
        alive = [r for r in registers if not isinstance(r, Flag) or r.phase == phase]
        return sum(size for register in alive for size in sizes[register.name])

    most = max(total(phase) for phase in range(reading.phases))
    largest = max(size for each in sizes.values() for size in each)
    units = max(2, hidden_size)  # a network that is too small is refused by its layout
    return ballast(most, largest, units, domain.rounding)


def _sizes(reading: Reading, register: Register) -> list[float]:
    """The largest values of a register's units."""
    if isinstance(register, Place | Moved):  # of a difference's two units one is 0
        return [1.0]
    if isinstance(register, Count):
        return [reading.largest_value]
    if isinstance(register, Gated | Sum):
        tops = [unit.before_relu.range(reading.bounds)[1] for unit in register.units]
        return [max(0.0, top) for top in tops]
    tops = [form.range(reading.bounds)[1] for form in (*register.forms, *register.subtracted)]
    if not register.restored:
        return [max(0.0, top) for top in tops]
    return [max(0.0, STORED * (2 * top - cut)) for top in tops for cut in (0.5, 1.5)]


def errors(
    reading: Reading,
    registers: Sequence[Register],
    domain: Domain,
    leak: float,
    norm: Ballast | None,
) -> Errors:
    """What every register can be off by after any number of steps."""
    unit = domain.rounding
    drift, noise = (norm.drift, norm.noise) if norm is not None else (0.0, 0.0)

    grid = Grid.of(reading, registers, domain, norm is not None)

    def flag(register: Flag) -> float:
        if grid is not None and register.name in grid.flags:
            return 0.0
        sizes = sum(_sizes(reading, register))
        forms = (*register.forms, *register.subtracted)
        if not register.restored:  # what it reads are inputs and hints, off by a leak
            given = sum(leak * 2 * sum(map(abs, form.terms.values())) for form in forms)
            summed = sum(rounded(form, unit, grid) for form in forms)
            return given + summed + drift * sizes + len(forms) * noise
        summed = sum(4 * rounded(form, unit, grid) for form in forms)
        return summed + (drift * sizes + 2 * len(forms) * noise) / STORED

    def base(number: Gated | Sum) -> float:
        """How far a number is off where its flags do not hold, and two units cancel.

        Where it keeps unless a sender has flags that the mask asks for, a node without them is not
        selected, and nobody reads its number.
        """
        if isinstance(number, Sum):
            return 0.0
        of_sender = all(name.side is Side.OTHER for name in number.holds.terms)
        if reading.program.phases[-1].keeps and of_sender and not number.blocks.terms:
            return 0.0
        force = number.force * sum(map(abs, number.holds.terms.values()))
        cancelled = 0.0 if number.is_exactly_zero else gamma(4, unit) * force
        return force * leak + cancelled + len(number.units) * noise  # drift is that of all units

    def made(number: Gated | Sum) -> Growth:
        """What a number adds to the error of what it is made of, where its flags hold.

        What comes as a hint is one term, and of attention nothing else is left; so of weights that
        are 1 only the sum is rounded.
        """
        parts = number.value.terms.items()
        size = sum(abs(value) * reading.bounds(name)[1] for name, value in parts)
        size += abs(number.value.constant)
        flags = leak * sum(abs(value) for name, value in parts if reading.is_signal_flag(name.name))
        if isinstance(number, Gated):  # what blocks is a hint, which can leak
            flags += leak * number.block * sum(map(abs, number.blocks.terms.values()))
        if norm is None and not any("@" in name.name for name, _ in parts):
            plain = all(abs(value) == 1 for _, value in parts) and number.value.constant == 0
            terms = len(parts) + (0 if plain else 4)  # weights, products and the constant
            return Growth(base(number), flags, leak + gamma(max(1, terms - 1), unit), size)
        roundings = 2 * len(parts) + 3
        return Growth(base(number), (leak + gamma(roundings, unit) + drift) * size + noise)

    def counted(count: Count) -> float:
        """What a step adds to the error of a count: of its flag, and of adding it.

        Where no flag is set it stays exactly as it is, unless there is layer norm.
        """
        size = reading.largest_value + 2 * count.by
        of_flag = count.by * sum(flags[name.name] for name in count.flag.terms)
        each = (gamma(4, unit) + leak + drift) * size + of_flag + noise
        return each if norm is None else reading.phases * each

    def kept(number: Gated) -> float:
        """What a step adds to the error of a number that is only added to.

        It is read as what it was and what is added. Where nothing is, two units cancel; the flag
        is exactly 0 there, unless there is layer norm.
        """
        size = reading.largest_value + sum(_sizes(reading, number))
        unset = 0.0 if norm is None else sum(flags[name.name] for name in number.holds.terms)
        return gamma(4, unit) * size + number.force * unset + 3 * (drift * size + noise)

    def where_set(register: Flag) -> float:
        return 0.0 if norm is None and is_set_exactly(register) else flag(register)

    def place(register: Place) -> float:
        if grid is not None:
            return 2 * leak
        return leak + rounded(register.value, unit, grid) + drift + 2 * noise

    def moved(register: Moved) -> float:
        """What every step adds to a difference that stays.

        Beside what is seen, the node's own position and the difference are added up; all weights
        are 1. Of its two units one is exactly 0, before and after layer norm, as the reference is.
        """
        if grid is not None:
            return 2 * leak
        return leak + rounded(register.value, unit, grid) + gamma(4, unit) * 3 + drift + noise

    flags = {r.name: flag(r) for r in registers if isinstance(r, Flag)}
    places: dict[str, float] = {}
    for register in registers:
        if isinstance(register, Place):  # a copy is off by what it is a copy of, and more
            copied = sum(places.get(name.name, 0.0) for name in register.value.terms)
            places[register.name] = copied + place(register)
        elif isinstance(register, Moved):
            places[register.name] = domain.steps * moved(register)
    counts = {r.name: counted(r) for r in registers if isinstance(r, Count)}

    def number(register: Gated | Sum, name: str) -> Growth:
        made_of = sum(counts.get(part.name, 0.0) for part in register.value.terms)
        staying = 0.0
        if isinstance(register, Gated) and reading.number(name).added:
            staying = kept(register)
        growth = made(register)
        return replace(growth, each_hop=growth.each_hop + staying + made_of)

    numbers = {
        component.name: number(register, component.name)
        for component in reading.program.hidden
        for register in registers
        if isinstance(register, Gated | Sum) and register.name == held(component.name, 0)
    }

    return Errors(
        unit=unit,
        leak=leak,
        registers={**flags, **places},
        where_set={r.name: where_set(r) for r in registers if isinstance(r, Flag)},
        numbers={
            **numbers,
            **{held(name, 0): off for name, off in numbers.items()},
            **{name: Growth(each_hop=each) for name, each in counts.items()},
        },
        hops=domain.steps,
        normed=norm is not None,
        grid=grid,
        exact=frozenset({*reading.program.inputs, LOOP.name}),
    )


def of_totals(reading: Reading, domain: Domain, off: Errors) -> dict[str, float]:
    """What a hint step adds to the error of every total: its flags', and rounding the sum."""
    found = {}
    for name, conclusion in reading.program.conclude.items():
        if isinstance(conclusion, Grows):
            flags = [reading.literal(flag, reading.phases) for flag in conclusion.flags]
            largest = conclusion.by * len(flags) * domain.steps
            summed = gamma(2 * len(flags) + 4, domain.rounding) * largest
            found[name] = conclusion.by * sum(off.form(flag) for flag in flags) + summed
    return found
