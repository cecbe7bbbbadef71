"""What a step makes of a node's state, read off the trace once it is known whom nodes attend to.

A flag of the next step is a flag of kinds: it is set for some kinds of nodes and not for others. A
pointer or a number is one of a few simple values, the same for all nodes of a kind. Of one node
among all (a choice) kinds have ranks: the lowest node of the first kind that is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from mechgap.decompiler.kinds import Kinds, condition
from mechgap.decompiler.rules import Rule
from mechgap.decompiler.scenes import Scenes
from mechgap.decompiler.words import MET, SAW, is_derived
from mechgap.programs.components import Component, Kind
from mechgap.programs.conclusions import Becomes, Conclusion, First
from mechgap.programs.expressions import (
    Constant,
    Expression,
    Name,
    Names,
    Not,
    Side,
    edge,
    names,
    where,
)

RANKS = 6
"""How many flags a choice may try one after the other."""
_SINGLE = (Kind.BOOL, Kind.POINTER, Kind.FLOAT)
"""Kinds of state that are one value at every node."""


@dataclass(frozen=True)
class Rows:
    """Nodes whose next state is to be explained."""

    scenes: Scenes
    kinds: Kinds
    counted: Bool[np.ndarray, "scenes nodes"]
    """Others may get any state."""

    @staticmethod
    def of(scenes: Scenes) -> "Rows":
        """All nodes of steps whose end the trace tells."""
        told = np.broadcast_to(scenes.told[:, None], scenes.given.positions.shape)
        return Rows(scenes, Kinds.of(scenes), told)

    def always(self, holds: Bool[np.ndarray, "scenes nodes"]) -> Bool[np.ndarray, "kinds"]:
        """The kinds of whose counted nodes all are so; also those that have none."""
        return self._count(~holds) == 0

    def ever(self, holds: Bool[np.ndarray, "scenes nodes"]) -> Bool[np.ndarray, "kinds"]:
        """The kinds of whose counted nodes any is so."""
        return self._count(holds) > 0

    def _count(self, holds: Bool[np.ndarray, "scenes nodes"]) -> np.ndarray:
        return np.bincount(
            self.kinds.of_node.ravel(), (holds & self.counted).ravel(), len(self.kinds.table)
        )

    def flag(self, value: Bool[np.ndarray, "scenes nodes"]) -> Expression | None:
        """A flag in words; None where nodes of one kind differ in it."""
        holds, fails = self.ever(value), self.ever(~value)
        if (holds & fails).any():
            return None
        if not (holds.any() and fails.any()):
            return self._constant(bool(holds.any()), holds | fails)
        return condition(self.kinds, holds, fails)

    def _constant(self, value: bool, present: Bool[np.ndarray, "kinds"]) -> Expression:
        """A flag that all counted nodes have, or none has; the language has no constant ones."""
        flags, table = self.kinds.flags, self.kinds.table[present]
        for wanted, said in ((value, lambda flag: flag), (not value, Not)):
            for i, flag in enumerate(flags):
                if (table[:, i] == wanted).all():
                    return said(flag)
        if not flags:
            return Constant(float(value))
        return flags[0] | Not(flags[0]) if value else flags[0] & Not(flags[0])


Updates = Mapping[Component, Expression | Conclusion | None]


def updates_of(scenes: Scenes, rules: Sequence[Rule]) -> tuple[Updates, bool]:
    """What every hint follows from; and whether nodes keep their state where they select nobody.

    Args:
        scenes: In which all phases are over.
        rules: Of the phases.
    """
    components = tuple(dict.fromkeys(scenes.words.hints.values()))
    if not scenes.told.any():  # no trace has a second step: all that is known is that all stays
        stay = {c: Name(Side.SELF, c.name) for c in components if c.kind in _SINGLE}
        return {c: stay.get(c) for c in components}, False
    rows = Rows.of(scenes)
    selecting = _selecting(scenes, rules, components)
    if selecting is not None:
        kept = replace(rows, counted=rows.counted & selecting)
        updates = {c: update_of(c, kept) for c in components}
        if not any(is_derived(name) for name in _read(rules, updates)):
            return updates, True
    return {c: update_of(c, rows) for c in components}, False


def _selecting(
    scenes: Scenes, rules: Sequence[Rule], components: Sequence[Component]
) -> Bool[np.ndarray, "scenes nodes"] | None:
    """Who selects somebody, if a program of one phase can say that all others stay as they are."""
    simple = len(rules) == 1 and isinstance(rules[0].otherwise, Names)
    if not simple or any(c.kind not in _SINGLE for c in components):
        return None
    selecting = np.any(rules[0].eligible(scenes), axis=-1)
    idle = ~selecting & scenes.told[:, None]
    stays = all(
        np.allclose(scenes.after[c.name][idle], scenes.state[c.name][idle]) for c in components
    )
    return np.asarray(selecting) if idle.any() and stays else None


def _read(rules: Sequence[Rule], updates: Updates) -> set[str]:
    """The names that rules and updates read; who is met in the only phase is `other`."""
    asked = [e for rule in rules for e in (rule.select.expression, *rule.mask)]
    asked += [update for update in updates.values() if isinstance(update, Expression)]
    return {n for e in asked for n in names(e) if not n.startswith((MET, SAW))}


def update_of(component: Component, rows: Rows) -> Expression | Conclusion | None:
    """What the next value of a component follows from; None where nothing was found."""
    after = rows.scenes.after
    match component.kind:
        case Kind.BOOL:
            return rows.flag(after[component.name] > 0.5)
        case Kind.CLASS:
            return _class(component, rows)
        case Kind.CHOICE:
            return _choice(after[component.name] > 0.5, rows)
        case Kind.POINTER:
            return _value(after[component.name], list(_pointers(component, rows.scenes)), rows)
        case Kind.FLOAT:
            return _value(after[component.name], list(_numbers(component, rows.scenes)), rows)
    return None


def _class(component: Component, rows: Rows) -> Becomes | None:
    """Into which class a node changes, and when."""
    found = {}
    for label in component.classes:
        becomes = rows.scenes.after[label] > 0.5
        is_already = rows.scenes.state[label] > 0.5
        if not (becomes & ~is_already & rows.counted).any():
            continue
        said = Rows(rows.scenes, rows.kinds, rows.counted & ~(is_already & becomes)).flag(becomes)
        if said is None:
            return None
        found[label] = said
    return Becomes(found)


def _choice(chosen: Bool[np.ndarray, "scenes nodes"], rows: Rows) -> First | None:
    """Which kinds are asked for first, second, …, the lowest node each time."""
    kinds, positions = rows.kinds, rows.scenes.given.positions
    left, flags = rows.scenes.told.copy(), list[Expression]()
    for _ in range(RANKS):
        if not left.any():
            return First(tuple(flags))
        here = Rows(rows.scenes, kinds, np.broadcast_to(left[:, None], chosen.shape))
        good = np.zeros(len(kinds.table), bool)
        for kind in range(len(kinds.table)):
            of_kind = kinds.of_node == kind
            lowest = of_kind & (positions == _lowest(positions, of_kind))
            good[kind] = (of_kind & left[:, None]).any() and not (lowest & ~chosen)[left].any()
        if not good.any():
            return None
        present = here.ever(np.ones_like(chosen))
        said = condition(kinds, good, present & ~good)
        flags.append(Constant(1.0) if said is None else said)
        left = left & ~good[kinds.of_node].any(-1)
    return None if left.any() else First(tuple(flags))


def _lowest(positions: Float[np.ndarray, "scenes nodes"], some: np.ndarray) -> np.ndarray:
    return np.where(some, positions, np.inf).min(-1, keepdims=True)


Candidate = tuple[Expression, Float[np.ndarray, "scenes nodes"]]


def _pointers(component: Component, scenes: Scenes) -> Iterator[Candidate]:
    """Whom a pointer may mean next."""
    mine = Name(Side.SELF, component.name)
    met = [Name(Side.SELF, p) for p in scenes.words.pointers if p.startswith(MET)]
    for expression in (*reversed(met), mine, Name(Side.SELF, "idx")):
        yield expression, scenes.values(expression)[..., 0]


def _numbers(component: Component, scenes: Scenes) -> Iterator[Candidate]:
    """What a number may be next: by whom the node attended to last, its own, or nothing."""
    senders = scenes.last_senders
    theirs = Name(Side.OTHER, component.name)
    seen: list[Expression] = [theirs]
    if "weight" in scenes.words.inputs:
        seen = [theirs + edge.weight, edge.weight, theirs]
    start = [theirs + 1 - Name(Side.INIT, "start")] if "start" in scenes.words.inputs else []
    for expression in (*seen, theirs + 1, *start):
        yield expression, scenes.seen(expression, senders)
    for expression in (Name(Side.SELF, component.name), Constant(0.0)):
        yield expression, scenes.values(expression)[..., 0]


def _value(
    after: Float[np.ndarray, "scenes nodes"], candidates: Sequence[Candidate], rows: Rows
) -> Expression | None:
    """One value for all kinds, or one of two by a flag."""
    right = [rows.always(np.isclose(value, after, atol=1e-5)) for _, value in candidates]
    for (expression, _), holds in zip(candidates, right, strict=True):
        if holds.all():
            return expression
    for i, (first, _) in enumerate(candidates):
        for j, (second, _) in enumerate(candidates):
            if i != j and (right[i] | right[j]).all():
                flag = condition(rows.kinds, right[i] & ~right[j], right[j] & ~right[i])
                return first if flag is None else where(flag, first, second)
    return None
