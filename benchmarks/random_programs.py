"""Random programs of the language: small, valid, and of every form that a phase can have."""

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from mechgap.lang import (
    Bool,
    Component,
    Float,
    Phase,
    Pointer,
    Program,
    edge,
    equal,
    init,
    keep,
    maximum,
    minimum,
    other,
    self,
    where,
)
from mechgap.programs.expressions import Expression
from mechgap.programs.phases import Otherwise, Selection
from mechgap.programs.validate import problems

own = self
"""The receiver, where `self` is a method's."""

Rng = np.random.Generator

_INPUTS = {
    "bfs": {"idx": "pos", "start": "s", "link": "adj"},
    "bellman_ford": {"idx": "pos", "start": "s", "weight": "A", "link": "adj"},
    "dfs": {"idx": "pos", "link": "adj"},
}


def random_program(rng: Rng, name: str = "random") -> Program:
    """A program that makes sense; whether it compiles is another matter."""
    while True:
        program = _Maker(rng, name).program()
        if not list(problems(program)):
            return program


def _all(parts: Iterable[Expression]) -> Expression:
    return reduce(and_, dict.fromkeys(parts))


class _Maker:
    """Draws the parts of one program."""

    def __init__(self, rng: Rng, name: str):
        self.rng, self.name = rng, name
        self.task = str(rng.choice(list(_INPUTS)))
        self.flags = ["a", "b"][: rng.integers(1, 3)]
        self.pointers = ["p"][: rng.integers(0, 2)]
        self.numbers = ["x"][: rng.integers(0, 2)]

    def program(self) -> Program:
        hidden: list[Component] = [
            *map(Bool, self.flags),
            *map(Pointer, self.pointers),
            *map(Float, self.numbers),
        ]
        count = int(self.rng.choice([1, 1, 2, 3]))
        updates: list[dict[str, Expression]] = [{} for _ in range(count)]
        for component in hidden:
            at = int(self.rng.integers(count))
            updates[at][component.name] = self._update(component)
        phases = tuple(
            Phase(self._selection(), self._mask(), self._otherwise(), update) for update in updates
        )
        told = [c for c in hidden if self.rng.random() < 0.8] or hidden[:1]
        return Program(
            name=self.name,
            task=self.task,
            inputs=_INPUTS[self.task],
            hidden=tuple(hidden),
            init=self._init(),
            phases=phases,
            sees_all=bool(self.rng.random() < 0.25),
            hints={f"{c.name}_h": c for c in told},
            output={f"{c.name}_o": c for c in hidden[-1:]},
            steps=int(self.rng.integers(1, 7)),
        )

    def _one(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def _init(self) -> dict[str, Expression]:
        found: dict[str, Expression] = {}
        if self.task != "dfs":
            found["a"] = init.start
        if self.numbers and self.rng.random() < 0.3:
            found["x"] = init.idx
        return found

    def _selection(self) -> Selection:
        values: list[Expression] = [other.idx, other.idx]
        if self.task == "bellman_ford":
            values.append(edge.weight)
        if self.numbers:
            values += [other.x, other.x + 0.01 * other.idx, other.x + other.idx]
            if self.task == "bellman_ford":
                values.append(other.x + edge.weight)
        return self._one(minimum, minimum, maximum)(self._one(*values))

    def _literals(self) -> list[Expression]:
        named = [getattr(side, flag) for flag in self.flags for side in (own, other)]
        sources = [] if self.task == "dfs" else [init.start, other.start]
        return [*named, *(~flag for flag in named), *sources]

    def _mask(self) -> Expression | None:
        options = [*self._literals(), edge.link, ~edge.loop]
        if self.pointers:
            options.append(equal(other.p, own.idx))
        count = int(self.rng.integers(0, 4))
        return _all(self._one(*options) for _ in range(count)) if count else None

    def _conjunction(self, fewest: int, below: int) -> Expression:
        """Some flags that must all hold."""
        literals = self._literals()
        return _all(self._one(*literals) for _ in range(self.rng.integers(fewest, below)))

    def _otherwise(self) -> Otherwise:
        return self._one(keep, own, *([own.p] if self.pointers else []))

    def _update(self, component: Component) -> Expression:
        name = component.name
        mine, theirs = getattr(own, name), getattr(other, name)
        sent = [getattr(other, flag) for flag in self.flags]
        if name in self.flags:
            literal = self._one(*self._literals())
            all_of = self._conjunction(2, 5)
            return self._one(mine | theirs, theirs, mine | all_of, all_of, literal)
        if name in self.pointers:
            return self._one(other.idx, other.idx, other.idx, theirs)
        condition = self._conjunction(1, 4)
        grown = [theirs + 0.25, theirs, mine + 0.01 * self._one(*sent), where(condition, theirs, 0)]
        if self.task == "bellman_ford":
            far = theirs + edge.weight
            grown += [far, edge.weight, where(condition, far, 0), where(condition, far, mine)]
        return self._one(*grown)
