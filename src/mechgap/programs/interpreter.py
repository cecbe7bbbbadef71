"""A program's run on graphs, in plain NumPy and float64: the reference.

Compiled networks are compared with it, and its selection (0 or 1) is the ground-truth attention α*
of the measures.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.programs.chains import Chains
from mechgap.programs.components import Component, Kind
from mechgap.programs.evaluation import Given, State, given, pointed
from mechgap.programs.lengths import has_no_fixpoint, most_steps
from mechgap.programs.meaning import TakenPhase, start, take_phase, take_step
from mechgap.programs.phases import Phase
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.programs.races import hint_pointers, races, tied
from mechgap.tasks.batch import Batch


class Foils(NamedTuple):
    """Whom a selection could have been wrong about; the selected sender where there is nobody."""

    key: Int[np.ndarray, "*batch receivers"]
    """Of those that pass the mask, the one that would be selected last."""
    mask: Int[np.ndarray, "*batch receivers"]
    """Of the others that are in sight and do not pass it, the one that would be selected first."""


class Execution(NamedTuple):
    """A program's run over a batch of graphs. Time is steps times phases."""

    states: Mapping[str, Float[np.ndarray, "steps batch nodes"]]
    """Every component after every step, classes as their number and totals at every node; 0 is
    the initial state."""
    senders: Int[np.ndarray, "time batch nodes"]
    """Whom each node attends to: the selected node, or whom it attends to otherwise."""
    selected: Bool[np.ndarray, "time batch nodes"]
    """Whether anyone passed the mask."""
    updated: Bool[np.ndarray, "time batch nodes"]
    """Whether the phase changed the node's state by whom it selected."""
    acceptable: Bool[np.ndarray, "time batch receivers senders"]
    """Whom a node could attend to as well: those that tie with the selected one but for their
    position, which only breaks ties. Where nobody passed the mask, whom it attends to."""
    foils: Foils
    """A wrong sender by each part of the selection: ``[time, batch, nodes]``."""
    shared: Bool[np.ndarray, "time batch"]
    """See `races`."""
    gaps: Float[np.ndarray, "time batch"]
    widened: Bool[np.ndarray, "time batch"]
    hops: Int[np.ndarray, "batch"]
    """The longest chain of numbers in which each was made of the one before."""
    carried: Float[np.ndarray, "batch"]
    """The most that was added up in such a chain: the sum, over its numbers, of the absolute values
    that each was made of."""

    @property
    def attention(self) -> Float[np.ndarray, "time batch receivers senders"]:
        """The ground-truth attention α*: 1 at the sender attended to, else 0."""
        return np.eye(self.senders.shape[-1])[self.senders]


def interpret(
    program: Program, inputs: Mapping[str, np.ndarray], steps: int | None = None
) -> Execution:
    """Run a program on a batch's inputs: what it means, by definition.

    Args:
        program: In one phase or several.
        inputs: By CLRS's names, as NumPy arrays: `Batch.inputs`.
        steps: How many; as long as the program says, if not given.

    Returns:
        The states before and after every step, and whom every node selected in every phase.

    Raises:
        InvalidInput: it has no fixpoint within as many steps as there are pairs of nodes.
    """
    known = given(program, inputs, np.float64)
    batch, nodes = known.positions.shape
    wanted = program.steps if steps is None else steps
    longest = wanted if isinstance(wanted, int) else most_steps(nodes)
    state = start(program, known)
    states, seen, chains = [components(program, state)], list[_Seen](), Chains.of(program, known)
    while len(states) <= longest:
        taken = take_step(program, known, state)
        if not isinstance(wanted, int) and not changed(state, taken.state).any():
            break
        pointers = hint_pointers(program, known, state)
        for phase, at in zip(program.phases, taken.phases, strict=True):
            seen.append(_seen(program, phase, known, at, pointers))
            chains = chains.after(phase, known, at)
        state = taken.state
        states.append(components(program, state))
    else:
        if not isinstance(wanted, int):
            raise has_no_fixpoint(program, nodes)
    of_graphs = dict.fromkeys(("shared", "gaps", "widened"), (batch,))
    shapes = {"acceptable": (batch, nodes, nodes), **of_graphs}
    kinds = {"senders": int, "key": int, "mask": int, "gaps": float}

    def stacked(name: str) -> np.ndarray:
        nothing = np.zeros((0, *shapes.get(name, (batch, nodes))), kinds.get(name, bool))
        return np.stack([getattr(each, name) for each in seen]) if seen else nothing

    return Execution(
        states={name: np.stack([s[name] for s in states]) for name in states[0]},
        senders=stacked("senders"),
        selected=stacked("selected"),
        updated=stacked("updated"),
        acceptable=stacked("acceptable"),
        foils=Foils(stacked("key"), stacked("mask")),
        shared=stacked("shared"),
        gaps=stacked("gaps"),
        widened=stacked("widened"),
        hops=chains.longest,
        carried=chains.most,
    )


class Selections(NamedTuple):
    """Whom nodes select, without what a certificate asks; see `Execution`."""

    senders: Int[np.ndarray, "time batch nodes"]
    acceptable: Bool[np.ndarray, "time batch receivers senders"]
    updated: Bool[np.ndarray, "time batch nodes"]
    foils: Foils


def selections_from(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    told: Mapping[str, Float[np.ndarray, "steps batch nodes"]],
    attended: Int[np.ndarray, "time batch nodes"] | None = None,
) -> Selections:
    """Whom nodes would select in every step, if the state before it were another.

    Args:
        program: In one phase or several.
        inputs: By CLRS's names, as NumPy arrays.
        told: Some components before every step, as `components` has them. The others are what the
            program itself made of them in the step before.
        attended: Whom nodes attend to in every phase, whoever they would select: later phases of
            the step select from where that leads. If not given, whom they select.
    """
    known = given(program, inputs, np.float64)
    state, seen = start(program, known), list[_Seen]()
    for time in range(len(next(iter(told.values())))):
        before = {**components(program, state), **{name: told[name][time] for name in told}}
        state = with_flags(program, before)
        pointers = hint_pointers(program, known, state)
        at_step = None if attended is None else attended[time * program.selections :]
        forced = dict(enumerate(() if at_step is None else at_step[: program.selections]))
        taken = take_step(program, known, state, attended=forced)
        for phase, at in zip(program.phases, taken.phases, strict=True):
            free = take_phase(phase, known, at.before)
            seen.append(_seen(program, phase, known, free, pointers))
        state = taken.state

    def stacked(name: str) -> np.ndarray:
        return np.stack([getattr(each, name) for each in seen])

    foils = Foils(stacked("key"), stacked("mask"))
    return Selections(stacked("senders"), stacked("acceptable"), stacked("updated"), foils)


def foiled_states(
    program: Program,
    inputs: Mapping[str, np.ndarray],
    run: Execution,
    foils: Int[np.ndarray, "time batch nodes"],
    phase: int,
) -> Mapping[str, Float[np.ndarray, "steps batch nodes"]]:
    """What every step of a run would have led to, had it attended to other senders in a phase.

    Each step starts from the run's own state, and its later phases select for themselves. By
    component: the state after the step.
    """
    known = given(program, inputs, np.float64)
    after = []
    for time, attended in enumerate(foils[phase :: program.selections]):
        state = with_flags(program, {name: values[time] for name, values in run.states.items()})
        taken = take_step(program, known, state, attended={phase: attended})
        after.append(components(program, taken.state))
    return {name: np.stack([state[name] for state in after]) for name in run.states}


def execution_batch(program: Program, inputs: Mapping[str, np.ndarray]) -> Batch:
    """The program's own trace as a batch of the task that it poses.

    Hint k is the state after k steps; a sample's length is where its own state stops changing.
    """
    task = posed(program)
    run = interpret(program, inputs)
    times = max(map(len, run.states.values()))
    moved = np.zeros((times, len(inputs["pos"])), bool)
    for values in run.states.values():
        moved[1:] |= (values[1:] != values[:-1]).any(-1)
    lengths = 1 + np.max(np.where(moved, np.arange(times)[:, None], 0), axis=0)
    valid = np.arange(times)[:, None] < lengths
    positions = np.asarray(inputs["pos"], np.float64)

    def read(component: Component, values: np.ndarray) -> np.ndarray:
        return in_batches(component, values, lambda places: pointed(places, positions))

    def hint(component: Component) -> np.ndarray:
        values = read(component, run.states[component.name])
        counted = valid.reshape(*valid.shape, *[1] * (values.ndim - 2))
        return np.where(counted, values, 0).astype(values.dtype)

    return Batch(
        task,
        {f.name: jnp.asarray(inputs[f.name], jnp.float32) for f in task.inputs},
        {name: jnp.asarray(hint(c)) for name, c in program.hints.items()},
        {name: jnp.asarray(read(c, run.states[c.name][-1])) for name, c in program.output.items()},
        jnp.asarray(lengths, jnp.int32),
    )


def in_batches(
    component: Component,
    values: Float[np.ndarray, "*times batch nodes"],
    nodes_at: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """A component's values as a batch has them; `nodes_at` tells which nodes positions are of."""
    match component.kind:
        case Kind.POINTER:
            return nodes_at(values).astype(np.int32)
        case Kind.CLASS:
            return np.eye(len(component.classes), dtype=np.float32)[values.astype(int)]
        case Kind.TOTAL:
            return values[..., 0].astype(np.float32)
    return values.astype(np.float32)


def components(program: Program, state: State) -> dict[str, np.ndarray]:
    """Every component's value: a class is the number of its flag."""

    def value(component: Component) -> np.ndarray:
        if component.kind is Kind.CLASS:
            return np.stack([state[name] for name in component.classes]).argmax(0).astype(float)
        return state[component.name]

    return {component.name: value(component) for component in program.hidden}


def with_flags(program: Program, values: Mapping[str, np.ndarray]) -> State:
    """Components with the flags of every class: what `components` was made of."""
    flags = {
        label: (values[component.name] == number) * 1.0
        for component in program.hidden
        for number, label in enumerate(component.classes)
    }
    return {**values, **flags}


class _Seen(NamedTuple):
    """What is kept of a phase."""

    senders: np.ndarray
    selected: np.ndarray
    updated: np.ndarray
    acceptable: np.ndarray
    key: np.ndarray
    mask: np.ndarray
    shared: np.ndarray
    gaps: np.ndarray
    widened: np.ndarray


def _seen(
    program: Program, phase: Phase, given: Given, at: TakenPhase, pointers: Sequence[np.ndarray]
) -> _Seen:
    alone = np.eye(given.support.shape[-1], dtype=bool)
    barred = given.support & ~at.eligible & ~alone
    last = np.where(at.eligible, at.score, -np.inf).argmax(-1)
    best_barred = np.where(barred, at.score, np.inf).argmin(-1)
    race = races(program, phase, given, at, pointers)
    at_sender = np.arange(given.support.shape[-1]) == at.sender[..., None]
    return _Seen(
        senders=at.sender,
        selected=at.anyone,
        updated=at.anyone & changed(at.before, at.after),
        acceptable=tied(program, phase, given, at) | at_sender,
        key=np.where(at.anyone, last, at.sender),
        mask=np.where(at.anyone & barred.any(-1), best_barred, at.sender),
        shared=race.shared,
        gaps=race.gap,
        widened=race.widened,
    )


def changed(before: State, after: State) -> Bool[Any, "batch nodes"]:
    """Which nodes have another state than before."""
    return reduce(or_, (after[name] != before[name] for name in after))
