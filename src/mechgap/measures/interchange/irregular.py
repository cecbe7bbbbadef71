"""Runs that no run of a program's own is like, so that its network need not follow them."""

import numpy as np
from jaxtyping import Bool

from mechgap.compiler.domain import Domain
from mechgap.compiler.keeping import Keeping, excludes_itself, keeping_of, own_flags, relaxes
from mechgap.programs.changing import Ran
from mechgap.programs.components import Kind
from mechgap.programs.evaluation import Given, evaluate, of_node
from mechgap.programs.meaning import TakenPhase
from mechgap.programs.phases import Phase
from mechgap.programs.program import Program
from mechgap.programs.races import hint_pointers, races

TIE = 1e-6
"""Competing values that are nearer to each other than this are a tie."""


def irregular(program: Program, run: Ran) -> Bool[np.ndarray, "batch"]:
    """Which runs of a batch ask for what no run of a program's own does.

    Two nodes that point to the same one compete for it, or two values are a tie; a pointer leads a
    node to whom it does not see; or a number grows larger than any does. And where the compiler
    relies on it: a pointer that is written once is written again; a node keeps what it has where
    nobody does who has been reached; or offers rise that only fall.
    """
    largest = Domain.regular(program, run.known.positions.shape[-1]).largest_value
    numbers = [c.name for c in program.hidden if c.kind is Kind.FLOAT]
    starts = run.steps[0].phases[0].before
    found = np.zeros(len(run.known.positions), bool)
    for step in run.steps:
        for name in numbers:
            found |= (step.state[name] > largest).any(-1)
        pointers = hint_pointers(program, run.known, step.phases[0].before)
        for phase, at in zip(program.phases, step.phases, strict=True):
            race = races(program, phase, run.known, at, pointers)
            found |= race.widened | race.shared | (race.gap < TIE)
            if phase.keeps:
                moved = {name: at.before[name] != starts[name] for name in phase.update}
                found |= _kept_wrongly(program, phase, run.known, at, moved).any(-1)
    return found


def _kept_wrongly(
    program: Program, phase: Phase, known: Given, at: TakenPhase, moved: dict[str, np.ndarray]
) -> Bool[np.ndarray, "batch nodes"]:
    """Where a node keeps, or does not, and what the compiler relies on does not hold."""
    mine = [evaluate(part, of_node(known, at.before)) > 0.5 for part in own_flags(phase)]
    passes = np.logical_and.reduce(mine) | np.zeros_like(at.anyone)
    found = ~at.anyone & passes & excludes_itself(phase)
    offered = np.where(at.eligible, at.score, np.inf).min(-1)
    for name, value in phase.update.items():
        keeping = keeping_of(program, phase, name)
        found |= at.anyone & moved[name] & (keeping is Keeping.ONCE)
        found |= ~at.anyone & moved[name] & (keeping is Keeping.FIRST)
        if value == phase.select.expression and relaxes(program, phase):
            found |= at.anyone & passes & (at.before[name] < offered - TIE)
    return found
