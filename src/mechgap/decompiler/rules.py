"""A rule: whom a node attends to in one phase; a selection of the language, without its updates."""

from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
from jaxtyping import Bool, Int

from mechgap.decompiler.scenes import Scenes
from mechgap.decompiler.words import length
from mechgap.programs.evaluation import evaluate, of_node, pointed
from mechgap.programs.expressions import Expression, Name, Names, Where, conjuncts, self
from mechgap.programs.phases import Selection

Default = Names | Name | Where
"""Whom a node attends to where nobody passes the mask: itself, a pointer's node, or by a flag one
of two such."""


@dataclass(frozen=True)
class Rule:
    """Of those in sight that pass the mask, the one of extreme key; else a default."""

    select: Selection
    mask: tuple[Expression, ...] = ()
    """What must hold, all of it: of the pair, of the sender, of the receiver."""
    otherwise: Default = self

    @property
    def whole_mask(self) -> Expression | None:
        """The mask as a program has it."""
        parts = [part for each in self.mask for part in conjuncts(each)]
        return reduce(and_, parts) if parts else None

    @property
    def length(self) -> int:
        """How many words it has; those that no hint says count twice."""
        default = [self.otherwise] if isinstance(self.otherwise, Expression) else []
        return length(self.select.expression, *self.mask, *default)

    def eligible(self, scenes: Scenes) -> Bool[np.ndarray, "scenes receivers senders"]:
        """Who is in sight and passes the mask."""
        if self.whole_mask is None:
            return scenes.support
        return scenes.support & (scenes.values(self.whole_mask) > 0.5)

    def senders(self, scenes: Scenes) -> Int[np.ndarray, "scenes nodes"]:
        """Whom every node attends to."""
        eligible = self.eligible(scenes)
        key = self.select.sign * scenes.values(self.select.expression)
        best = np.where(eligible, key, np.inf).argmin(-1)
        return np.where(eligible.any(-1), best, default_senders(self.otherwise, scenes))

    def __str__(self) -> str:
        mask = "" if self.whole_mask is None else f", mask={self.whole_mask}"
        otherwise = "" if isinstance(self.otherwise, Names) else f", otherwise={self.otherwise}"
        return f"select={self.select}{mask}{otherwise}"


def default_senders(otherwise: Default, scenes: Scenes) -> Int[np.ndarray, "scenes nodes"]:
    """Whom nodes attend to by default."""
    if isinstance(otherwise, Names):
        return scenes.oneself
    at = evaluate(otherwise, of_node(scenes.given, scenes.state))
    return pointed(at, scenes.given.positions)
