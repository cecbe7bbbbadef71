"""How close a selection was, and whether it was one at all: what certificates ask of a run."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from mechgap.programs.components import Kind
from mechgap.programs.evaluation import Sight, State, evaluate
from mechgap.programs.expressions import Equal, Name, conjuncts
from mechgap.programs.meaning import TakenPhase
from mechgap.programs.phases import Phase
from mechgap.programs.program import Program


class Races(NamedTuple):
    """Of the selections of one phase, on every graph."""

    gap: Float[Any, "batch"]
    """How close the closest race by numbers was: the smallest difference between a selected value
    and the next that competed with it (infinite where nobody competed, or positions did)."""
    shared: Bool[Any, "batch"]
    """Whether two senders that point to the same node competed for it."""
    widened: Bool[Any, "batch"]
    """Whether somebody would be eligible whom a node sees only because a pointer that is a hint
    leads there: a network that is fed its hints attends along them, too."""


def races(
    program: Program,
    phase: Phase,
    given: Sight,
    at: TakenPhase,
    pointers: Sequence[Any],
    xp: Any = np,
) -> Races:
    """How close the selections of a phase were.

    Args:
        program: With this phase.
        phase: One of its phases.
        given: What it was run on.
        at: What the phase did.
        pointers: The nodes that pointers led to which were hints before the step.
        xp: NumPy, or JAX's.
    """
    graphs = at.anyone.shape[:1]
    compares = any(isinstance(part, Equal) for part in conjuncts(phase.mask))
    widened = xp.zeros(graphs, bool)
    for pointer in pointers:
        widened |= given.passes_beyond(phase.mask, at.before, pointer, xp)
    return Races(
        gap=xp.full(graphs, xp.inf)
        if by_position(program, phase)
        else given.closest(at.eligible, at.score, xp),
        shared=given.several(at.eligible, xp) if compares else xp.zeros(graphs, bool),
        widened=widened,
    )


def tied(program: Program, phase: Phase, given: Sight, at: TakenPhase) -> Bool[Any, "*pairs"]:
    """The eligible whose score is the best if positions do not count, which only break ties."""
    values = given.of_pairs(at.before)

    def without_positions(name: Name) -> Any:
        found = values(name)
        return 0 * found if program.inputs.get(name.name) == "pos" else found

    score = phase.select.sign * evaluate(phase.select.expression, without_positions)
    score = np.where(at.eligible, score, np.inf)
    return at.eligible & (score <= given.least(score))


def hint_pointers(program: Program, given: Sight, state: State) -> list[Any]:
    """Where the pointers lead that are hints."""
    return [
        given.nodes_at(state[component.name])
        for component in program.hints.values()
        if component.kind is Kind.POINTER
    ]


def by_position(program: Program, phase: Phase) -> bool:
    """Whether a phase selects by position: then no two competitors can tie."""
    value = phase.select.expression
    return isinstance(value, Name) and program.inputs.get(value.name) == "pos"
