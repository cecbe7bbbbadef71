"""What numbers are made of, one after the other: errors add up along such chains."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mechgap.programs.components import Kind
from mechgap.programs.evaluation import Sight, State
from mechgap.programs.expressions import Add, Expression, Name, Subtract, Where
from mechgap.programs.meaning import TakenPhase
from mechgap.programs.phases import Phase
from mechgap.programs.program import Program


class Chains(NamedTuple):
    """How many numbers each number is made of, and how large they are; by component and node."""

    lengths: Mapping[str, Any]
    sizes: Mapping[str, Any]
    longest: Any
    """Of each graph until now."""
    most: Any

    @staticmethod
    def of(program: Program, given: Sight, xp: Any = np) -> "Chains":
        """Before the first step."""
        nothing = xp.zeros(given.positions.shape)
        numbers = [c.name for c in program.hidden if c.kind is Kind.FLOAT]
        each = dict.fromkeys(numbers, nothing)
        return Chains(each, each, xp.zeros(len(nothing), int), xp.zeros(len(nothing)))

    def after(self, phase: Phase, given: Sight, at: TakenPhase, xp: Any = np) -> "Chains":
        """A number's chain is one longer than that of what it is made of, and 0 where a `where`
        made it 0."""

        def seen(part: Expression, state: State) -> Any:
            return given.at_sender(part, state, at.sender, xp)

        nothing = xp.zeros(at.sender.shape)

        def chain(expression: Expression) -> tuple[Any, Any]:
            names = [part for part in expression.walk() if isinstance(part, Name)]
            numbers = [name for name in names if name.name in self.lengths]
            made_of = [seen(name, self.lengths) for name in numbers] or [nothing]
            length = 1 + xp.max(xp.stack(made_of), 0)
            size = sum((seen(name, self.sizes) for name in numbers), nothing) + sum(
                (abs(seen(part, at.before)) for part in _summands(expression)), nothing
            )
            if any(isinstance(part, Where) for part in expression.walk()):
                holds = seen(expression, at.before) != 0
                return xp.where(holds, length, 0), xp.where(holds, size, 0.0)
            return length, size

        new = {name: chain(value) for name, value in phase.update.items() if name in self.lengths}

        def kept(before: Mapping[str, Any], which: int) -> dict[str, Any]:
            if not phase.keeps:
                return {**before, **{name: both[which] for name, both in new.items()}}
            updated = {n: xp.where(at.anyone, both[which], before[n]) for n, both in new.items()}
            return {**before, **updated}

        lengths, sizes = kept(self.lengths, 0), kept(self.sizes, 1)
        longest = [self.longest, *(lengths[name].max(-1).astype(int) for name in new)]
        most = [self.most, *(sizes[name].max(-1) for name in new)]
        return Chains(lengths, sizes, xp.max(xp.stack(longest), 0), xp.max(xp.stack(most), 0))


def _summands(expression: Expression) -> Iterator[Expression]:
    """The parts that a sum adds up."""
    match expression:
        case Add(left, right) | Subtract(left, right):
            yield from (*_summands(left), *_summands(right))
        case Where(_, then, otherwise):
            yield from (*_summands(then), *_summands(otherwise))
        case _:
            yield expression
