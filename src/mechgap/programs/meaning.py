"""What a step of a graph program means, in NumPy or in JAX, which can jit, vmap and scan it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.programs.components import Kind
from mechgap.programs.conclusions import Becomes, First, Grows, Linked
from mechgap.programs.evaluation import (
    Sight,
    State,
    evaluate,
    of_node,
)
from mechgap.programs.expressions import Expression
from mechgap.programs.phases import Phase
from mechgap.programs.program import Program


class TakenPhase(NamedTuple):
    """What a phase looked at, decided and changed, of NumPy's arrays or JAX's."""

    before: State
    eligible: Bool[Any, "batch receivers senders"]
    """Who is in sight and passes the mask."""
    score: Float[Any, "batch receivers senders"]
    """What is smallest at the selected sender, of those who are eligible."""
    anyone: Bool[Any, "batch receivers"]
    """Whether anyone passed the mask."""
    sender: Int[Any, "batch receivers"]
    """Whom each node attends to."""
    after: State


class TakenStep(NamedTuple):
    """One step: its phases, and the state when it has concluded."""

    phases: tuple[TakenPhase, ...]
    state: State


def unchanged(phase: int, state: State) -> State:
    """The state before a phase, as it is."""
    del phase
    return state


def take_step(
    program: Program,
    given: Sight,
    state: State,
    xp: Any = np,
    attended: Mapping[int, Any] | None = None,
    changed: Callable[[int, State], State] = unchanged,
) -> TakenStep:
    """Go through all phases and conclude.

    `attended` says for some phases whom each node attends to, instead of whom it would select.
    `changed` is what is made of the state before each phase.
    """
    taken = []
    for i, phase in enumerate(program.phases):
        state = changed(i, state)
        taken.append(take_phase(phase, given, state, xp, (attended or {}).get(i)))
        state = taken[-1].after
    return TakenStep(tuple(taken), _conclude(program, given, state, xp))


def take_phase(
    phase: Phase, given: Sight, state: State, xp: Any = np, attended: Any = None
) -> TakenPhase:
    """Select and update once."""
    values = given.of_pairs(state)
    eligible = given.support
    if phase.mask is not None:
        eligible = eligible & (evaluate(phase.mask, values) > 0.5)
    score = phase.select.sign * evaluate(phase.select.expression, values)
    score = xp.broadcast_to(score, eligible.shape)
    anyone, best = given.chosen(eligible, score, xp)
    default = xp.arange(given.positions.shape[-1])
    if isinstance(phase.otherwise, Expression):
        default = given.nodes_at(evaluate(phase.otherwise, of_node(given, state)))
    sender = xp.where(anyone, best, default) if attended is None else attended
    new = {name: given.at_sender(value, state, sender, xp) for name, value in phase.update.items()}
    if phase.keeps:
        new = {name: xp.where(anyone, value, state[name]) for name, value in new.items()}
    return TakenPhase(state, eligible, score, anyone, sender, {**state, **new})


def start(program: Program, given: Sight, xp: Any = np) -> State:
    """Everything before the first step."""
    nothing = 0 * given.positions
    state: dict[str, Any] = {}
    for component in program.hidden:
        if component.kind is Kind.CLASS:
            first, *others = component.classes
            state |= {first: nothing + 1, **dict.fromkeys(others, nothing)}
        elif component.kind is Kind.CHOICE:
            state[component.name] = nothing + _one_hot(given.positions.argmin(-1), given, xp)
        else:
            state[component.name] = nothing
    for name, value in program.starts.items():
        state[name] = nothing + evaluate(value, lambda at: given.named[at.name])
    return state


def _conclude(program: Program, given: Sight, state: State, xp: Any) -> State:
    """Decide classes, choices, totals and further pointers, all from what they were before."""
    values, after = of_node(given, state), dict(state)
    for name, conclusion in program.conclude.items():
        match conclusion:
            case Becomes(conditions):
                for trigger, condition in conditions.items():
                    holds = evaluate(condition, values) > 0.5
                    for label in program.components[name].classes:
                        after[label] = xp.where(holds, float(label == trigger), after[label])
            case First(flags):
                order = [given.positions, *(-evaluate(flag, values) for flag in reversed(flags))]
                chosen = xp.lexsort(order, axis=-1)[..., 0]
                after[name] = 0 * state[name] + _one_hot(chosen, given, xp)
            case Grows(by, flags):
                held = sum(evaluate(flag, values).max(-1, keepdims=True) for flag in flags)
                after[name] = state[name] + by * held
            case Linked(links, to, otherwise):
                there = evaluate(to, values)
                link = (evaluate(links, values) > 0.5) & (there > 0.5).any(-1, keepdims=True)
                at = xp.take_along_axis(given.positions, there.argmax(-1)[:, None], axis=-1)
                after[name] = xp.where(link, at, evaluate(otherwise, values))
            case _:
                after[name] = 0 * state[name] + evaluate(conclusion, values)
    return after


def _one_hot(chosen: Any, given: Sight, xp: Any) -> Any:
    return (xp.arange(given.positions.shape[-1]) == chosen[..., None]) * 1.0
