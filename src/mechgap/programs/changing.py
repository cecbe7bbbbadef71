"""A program's run in which one variable is changed, at one moment, and what follows from it.

The moments of a run are before each phase of each step. Before the first phase the state is what
one step hands to the next.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from mechgap.programs.components import Component
from mechgap.programs.evaluation import Given, State, given
from mechgap.programs.meaning import TakenStep, start, take_step, unchanged
from mechgap.programs.program import Program


class Change(NamedTuple):
    """What is put into the runs of a batch, each at its own moment."""

    time: Int[np.ndarray, "batch"]
    """Steps that are over by then."""
    phase: Int[np.ndarray, "batch"]
    """Phases of the next step that are over by then."""
    nodes: Bool[np.ndarray, "batch nodes"]
    values: State
    """By the names that the state has for the variable."""

    def at(self, time: int, phase: int, state: State) -> State:
        """The state at a moment, with the change where it is its moment."""
        now = (self.time == time) & (self.phase == phase)
        there = now[:, None] & self.nodes
        return {
            **state,
            **{name: np.where(there, value, state[name]) for name, value in self.values.items()},
        }


class Ran(NamedTuple):
    """A run: what was given, and what every step did."""

    known: Given
    steps: list[TakenStep]


def ran(
    program: Program, inputs: Mapping[str, np.ndarray], steps: int, change: Change | None = None
) -> Ran:
    """Run a program for so many steps, with a change or without."""
    known = given(program, inputs, np.float64)
    state, taken = start(program, known), list[TakenStep]()
    for time in range(steps):
        changed = unchanged if change is None else partial(change.at, time)
        taken.append(take_step(program, known, state, changed=changed))
        state = taken[-1].state
    return Ran(known, taken)


def names_of(component: Component) -> tuple[str, ...]:
    """The names that a state has for a component: a class has one for each of its flags."""
    return component.classes or (component.name,)
