"""What a program with phases means, phase by phase, in plain NumPy and float64."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.programs.evaluation import (
    Foils,
    Values,
    changed,
    closest,
    evaluate,
    foils,
    pairwise,
    pointed,
    program_inputs,
)
from mechgap.programs.expressions import Equal, Expression, Name, conjuncts
from mechgap.programs.language import Component, Kind
from mechgap.programs.phases import Becomes, First, Grows, Linked, Phase, PhasedProgram
from mechgap.tasks.specs import get_task

State = dict[str, np.ndarray]
"""Components by name, and the flags of every class; ``[batch, nodes]``."""


class PhasedExecution(NamedTuple):
    """A program's run over a batch of graphs. Time is hint steps times phases."""

    states: Mapping[str, Float[np.ndarray, "hints batch nodes"]]
    """Every component after every hint step, classes as their number and totals at every node; 0 is
    the initial state."""
    senders: Int[np.ndarray, "time batch nodes"]
    """Whom each node attends to: the selected node, or the default."""
    selected: Bool[np.ndarray, "time batch nodes"]
    """Whether anyone passed the mask."""
    updated: Bool[np.ndarray, "time batch nodes"]
    """Whether the phase changed the node's state by whom it selected."""
    acceptable: Bool[np.ndarray, "time batch receivers senders"]
    """Whom the mask allows, where nodes are selected by index; else whom each attends to."""
    foils: Foils
    """A wrong sender by each part of the selection: ``[time, batch, nodes]``."""
    shared: Bool[np.ndarray, "time batch"]
    """Whether two senders that point to the same node competed for it."""
    gaps: Float[np.ndarray, "time batch"]
    """How close the closest race by numbers was: the smallest difference between a selected value
    and the next that competed with it (infinite where nobody competed, or positions did)."""
    hops: Int[np.ndarray, "batch"]
    """The longest chain of numbers in which each was made of the one before."""

    @property
    def attention(self) -> Float[np.ndarray, "time batch receivers senders"]:
        """The ground-truth attention α*: 1 at the sender attended to, else 0."""
        return np.eye(self.senders.shape[-1])[self.senders]


def interpret_phases(
    program: PhasedProgram, inputs: Mapping[str, np.ndarray], steps: int | None = None
) -> PhasedExecution:
    """Run a program on a batch's inputs: `steps` times, or as often as the task has hints."""
    given = program_inputs(program, inputs, np.float64)
    positions = np.asarray(inputs["pos"], np.float64)
    batch, nodes = positions.shape
    if steps is None:
        steps = max(1, get_task(program.task).max_hints(nodes) - 1)
    state = initial_state(program, given, positions)
    states, senders, selected, acceptable = [_read(program, state)], [], [], []
    updated, wrong = [], list[Foils]()
    shared, gaps = [], []
    numbers = [c.name for c in program.hidden if c.kind is Kind.FLOAT]
    chains = {name: np.zeros((batch, nodes)) for name in numbers}
    hops = np.zeros(batch, int)
    for _ in range(steps):
        for phase in program.phases:
            before = state
            state, support, eligible, sender, score = _take_phase(
                program, phase, given, positions, state
            )
            anyone = eligible.any(-1)
            race = closest(np.where(eligible, score, np.inf))
            gaps.append(np.full(batch, np.inf) if by_position(program, phase) else race)
            wrong.append(foils(score, support, eligible, sender))
            chains |= {
                name: _chain(phase.signal[name], given, before, chains, sender)
                for name in numbers
                if name in phase.signal
            }
            hops = np.max([hops, *(chain.max(-1).astype(int) for chain in chains.values())], 0)
            senders.append(sender)
            selected.append(anyone)
            updated.append(anyone & changed(before, state))
            attended = np.arange(nodes) == sender[..., None]
            acceptable.append(attended | eligible if by_position(program, phase) else attended)
            compares = any(isinstance(part, Equal) for part in conjuncts(phase.mask))
            shared.append((eligible.sum(-1) > 1).any(-1) & compares)
        state = _conclude(program, given, positions, state)
        states.append(_read(program, state))
    return PhasedExecution(
        states={name: np.stack([s[name] for s in states]) for name in states[0]},
        senders=np.stack(senders),
        selected=np.stack(selected),
        updated=np.stack(updated),
        acceptable=np.stack(acceptable),
        foils=Foils(*map(np.stack, zip(*wrong, strict=True))),
        shared=np.stack(shared),
        gaps=np.stack(gaps),
        hops=hops,
    )


def initial_state(
    program: PhasedProgram, given: Mapping[str, np.ndarray], positions: np.ndarray
) -> State:
    """Everything before the first step."""
    state = {}
    nothing = np.zeros_like(positions)
    for component in program.hidden:
        if component.kind is Kind.CLASS:
            state |= dict.fromkeys(component.classes, nothing)
            state[component.classes[0]] = nothing + 1
        elif component.kind is Kind.POINTER:
            state[component.name] = positions
        elif component.kind is Kind.CHOICE:
            state[component.name] = _one_hot(positions.argmin(-1), positions.shape[-1])
        else:
            state[component.name] = nothing
    for name, value in program.init.items():
        state[name] = nothing + evaluate(value, lambda at: given[at.name])
    return state


def by_position(program: PhasedProgram, phase: Phase) -> bool:
    """Whether a phase selects by position: then no two competitors can tie."""
    value = phase.select.expression
    return isinstance(value, Name) and program.inputs.get(value.name) == "pos"


def _take_phase(
    program: PhasedProgram,
    phase: Phase,
    given: Mapping[str, np.ndarray],
    positions: np.ndarray,
    state: State,
    attended: np.ndarray | None = None,
) -> tuple[State, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The state after a phase, who was in sight of and eligible for whom, who was attended to, and
    by what. `attended` says whom each node attends to instead of whom it would select."""
    adjacent = given["adj"] > 0
    values = pairwise(given, state)
    support = adjacent | adjacent.swapaxes(-1, -2) | program.sees_all
    eligible = support
    if phase.mask is not None:
        eligible = eligible & (evaluate(phase.mask, values) > 0.5)
    anyone = eligible.any(-1)
    score = phase.select.sign * evaluate(phase.select.expression, values)
    score = np.broadcast_to(score, support.shape)
    lowest = np.where(eligible, score, np.inf).argmin(-1)
    default = np.arange(positions.shape[-1])
    if phase.default is not None:
        meant = evaluate(phase.default, partial(_own, given, state))
        default = pointed(meant, positions)
    sender = np.where(anyone, lowest, default) if attended is None else attended
    after = dict(state)
    for name, expression in phase.signal.items():
        after[name] = _at_sender(expression, values, sender)
    return after, support, eligible, sender, score


def take_phases(
    program: PhasedProgram,
    given: Mapping[str, np.ndarray],
    positions: np.ndarray,
    state: State,
    attended: Mapping[int, Int[np.ndarray, "batch nodes"]],
) -> State:
    """The components after a hint step in which nodes attend to given ones in some phases."""
    state = dict(state)
    for component in program.hidden:
        for number, label in enumerate(component.classes):
            state[label] = (state[component.name] == number) * 1.0
    for i, phase in enumerate(program.phases):
        state = _take_phase(program, phase, given, positions, state, attended.get(i))[0]
    return _read(program, _conclude(program, given, positions, state))


def _chain(
    expression: Expression,
    given: Mapping[str, np.ndarray],
    state: State,
    chains: Mapping[str, np.ndarray],
    sender: np.ndarray,
) -> np.ndarray:
    """How long a number's chain is: one more than that of what it is made of, 0 where it is 0."""
    read = [part for part in expression.walk() if isinstance(part, Name) and part.name in chains]
    longest = [_at_sender(name, pairwise(given, chains), sender) for name in read]
    value = _at_sender(expression, pairwise(given, state), sender)
    return np.where(value == 0, 0, 1 + np.max(longest or [np.zeros(sender.shape)], 0))


def _at_sender(expression: Expression, values: Values, sender: np.ndarray) -> np.ndarray:
    """An expression with the node attended to as `other`."""
    nodes = sender.shape[-1]
    of_pairs = np.broadcast_to(evaluate(expression, values), (*sender.shape, nodes))
    return np.take_along_axis(of_pairs, sender[..., None], axis=-1)[..., 0]


def _own(given: Mapping[str, np.ndarray], state: State, name: Name) -> np.ndarray:
    """A node's own value of a name."""
    return state[name.name] if name.name in state else given[name.name]


def _conclude(
    program: PhasedProgram,
    given: Mapping[str, np.ndarray],
    positions: np.ndarray,
    state: State,
) -> State:
    """Decide classes and choices, all from what they were before."""
    values = partial(_own, given, state)
    after = dict(state)
    for name, conclusion in program.conclude.items():
        match conclusion:
            case Becomes(conditions):
                for trigger, condition in conditions.items():
                    holds = evaluate(condition, values) > 0.5
                    for label in program.components[name].classes:
                        after[label] = np.where(holds, float(label == trigger), after[label])
            case First(flags):
                order = [positions, *(-evaluate(flag, values) for flag in reversed(flags))]
                chosen = np.lexsort(order, axis=-1)[..., 0]
                after[name] = _one_hot(chosen, positions.shape[-1])
            case Grows(by, flags):
                held = sum(evaluate(flag, values).max(-1, keepdims=True) for flag in flags)
                after[name] = state[name] + by * held
            case Linked(links, to, otherwise):
                there = evaluate(to, values)
                link = (evaluate(links, values) > 0.5) & (there > 0.5).any(-1, keepdims=True)
                at = np.take_along_axis(positions, there.argmax(-1)[:, None], axis=-1)
                after[name] = np.where(link, at, evaluate(otherwise, values))
            case _:
                after[name] = evaluate(conclusion, values)
    return after


def _read(program: PhasedProgram, state: State) -> State:
    """Every component's value: a class is the number of its flag."""
    return {component.name: _value(component, state) for component in program.hidden}


def _value(component: Component, state: State) -> np.ndarray:
    if component.kind is Kind.CLASS:
        return np.stack([state[name] for name in component.classes]).argmax(0).astype(float)
    return state[component.name]


def _one_hot(chosen: np.ndarray, nodes: int) -> np.ndarray:
    return np.eye(nodes)[chosen]
