"""What a graph program means, step by step, in plain NumPy and float64.

This is the reference: compiled networks are compared with it, and its selection (0 or 1) is the
ground-truth attention α* of the measures.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, overload

import jax.numpy as jnp
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
from mechgap.programs.expressions import Name
from mechgap.programs.language import Component, Fixpoint, GraphProgram, Kind
from mechgap.programs.phased_interpreter import PhasedExecution, interpret_phases, take_phases
from mechgap.programs.phases import PhasedProgram
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Type


class Execution(NamedTuple):
    """A program's run over a batch of graphs."""

    states: Mapping[str, Float[np.ndarray, "times batch nodes"]]
    """Every component at every time; time 0 is the initial state."""
    senders: Int[np.ndarray, "steps batch nodes"]
    """Whom each node attends to in each step: the selected node, or itself."""
    selected: Bool[np.ndarray, "steps batch nodes"]
    """Whether anyone passed the mask; where not, the node kept its state."""
    updated: Bool[np.ndarray, "steps batch nodes"]
    """Whether the step changed the node's state by whom it selected."""
    acceptable: Bool[np.ndarray, "steps batch receivers senders"]
    """Whom a node could attend to as well: those that tie with the selected one but for their
    index, which only breaks ties. Where nobody passed the mask, the node itself."""
    foils: Foils
    """A wrong sender by each part of the selection: ``[steps, batch, nodes]``."""
    gaps: Float[np.ndarray, "steps batch"]
    """How close the closest race was: the smallest difference between a selected value and the
    next one that competed with it (infinite where nobody competed)."""

    @property
    def attention(self) -> Float[np.ndarray, "steps batch receivers senders"]:
        """The ground-truth attention α*: 1 at the sender attended to, else 0."""
        return np.eye(self.senders.shape[-1])[self.senders]


class Step(NamedTuple):
    """One step of a program, of NumPy's arrays or JAX's."""

    values: Values
    support: Any
    eligible: Any
    """Which senders pass the mask, for every receiver."""
    score: Any
    """What is smallest at the selected sender, of those who are eligible."""
    anyone: Any
    sender: Any
    state: Mapping[str, Any]
    """After the step."""


def take_step(
    program: GraphProgram,
    given: Mapping[str, Any],
    state: Mapping[str, Any],
    xp: Any = np,
    attended: Any = None,
) -> Step:
    """Select and update once. `xp` is the arrays' library: `numpy` or `jax.numpy`.

    `attended` says whom each node attends to instead of whom it would select.
    """
    adjacent = given["adj"] > 0
    support = adjacent | adjacent.swapaxes(-1, -2)
    values = pairwise(given, state)
    eligible = support
    if program.mask is not None:
        eligible = eligible & (evaluate(program.mask, values) > 0.5)
    anyone = eligible.any(-1)
    score = program.select.sign * evaluate(program.select.expression, values)
    score = xp.broadcast_to(score, support.shape)
    best = xp.where(eligible, score, xp.inf).argmin(-1)
    sender = xp.where(anyone, best, xp.arange(support.shape[-1]))
    if attended is not None:
        sender = attended

    def updated(component: Component) -> Any:
        new = xp.broadcast_to(evaluate(program.update[component.name], values), support.shape)
        at_sender = xp.take_along_axis(new, sender[..., None], axis=-1)[..., 0]
        return xp.where(anyone, at_sender, state[component.name])

    after = {component.name: updated(component) for component in program.hidden}
    return Step(values, support, eligible, score, anyone, sender, after)


@overload
def interpret(
    program: GraphProgram, inputs: Mapping[str, np.ndarray], steps: int | None = None
) -> Execution: ...
@overload
def interpret(
    program: PhasedProgram, inputs: Mapping[str, np.ndarray], steps: int | None = None
) -> PhasedExecution: ...
def interpret(
    program: GraphProgram | PhasedProgram,
    inputs: Mapping[str, np.ndarray],
    steps: int | None = None,
) -> Execution | PhasedExecution:
    """Run a program on a batch's inputs: `steps` times, or as long as the program says."""
    if isinstance(program, PhasedProgram):
        return interpret_phases(program, inputs, steps)
    given = program_inputs(program, inputs, np.float64)
    limit = program.steps if steps is None else steps
    states, taken = [initial_state(program, given)], list[Step]()
    while not isinstance(limit, int) or len(taken) < limit:
        step = take_step(program, given, states[-1])
        if isinstance(limit, Fixpoint) and not changed(states[-1], step.state).any():
            break
        states.append(step.state)
        taken.append(step)

    batch, nodes = given["idx"].shape

    def stacked(rows: list[np.ndarray], *shape: int, kind: type) -> np.ndarray:
        return np.stack(rows) if rows else np.zeros((0, *shape), kind)

    wrong = [foils(s.score, s.support, s.eligible, s.sender) for s in taken]
    return Execution(
        states={name: np.stack([state[name] for state in states]) for name in states[0]},
        senders=stacked([step.sender for step in taken], batch, nodes, kind=int),
        selected=stacked([step.anyone for step in taken], batch, nodes, kind=bool),
        updated=stacked(
            [
                step.anyone & changed(before, step.state)
                for before, step in zip(states, taken, strict=False)
            ],
            *(batch, nodes),
            kind=bool,
        ),
        acceptable=stacked(
            [_acceptable(program, step) for step in taken], batch, nodes, nodes, kind=bool
        ),
        foils=Foils(
            key=stacked([each.key for each in wrong], batch, nodes, kind=int),
            mask=stacked([each.mask for each in wrong], batch, nodes, kind=int),
        ),
        gaps=stacked(
            [closest(np.where(step.eligible, step.score, np.inf)) for step in taken],
            batch,
            kind=float,
        ),
    )


def _acceptable(program: GraphProgram, step: Step) -> np.ndarray:
    """Eligible senders whose score is the best if indices do not count; else the node itself."""

    def without_indices(name: Name) -> np.ndarray:
        return np.zeros_like(step.values(name)) if name.name == "idx" else step.values(name)

    score = program.select.sign * evaluate(program.select.expression, without_indices)
    score = np.where(step.eligible, score, np.inf)
    tied = step.eligible & (score <= score.min(-1, keepdims=True))
    chosen = np.arange(score.shape[-1]) == step.sender[..., None]
    return tied | chosen


def initial_state(program: GraphProgram, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Every component before the first step."""
    nothing = 0 * given["idx"]
    return {
        name: nothing + evaluate(value, lambda at: given[at.name])
        for name, value in program.init.items()
    }


def foiled_states(
    program: GraphProgram | PhasedProgram,
    inputs: Mapping[str, np.ndarray],
    run: Execution | PhasedExecution,
    foils: Int[np.ndarray, "time batch nodes"],
    phase: int,
) -> Mapping[str, Float[np.ndarray, "steps batch nodes"]]:
    """What every hint step of a run would have led to, had it attended to other senders in a phase.

    Each step starts from the run's own state, and its later phases select for themselves. By
    component: the state after the step.
    """
    given = program_inputs(program, inputs, np.float64)
    positions = np.asarray(inputs["pos"], np.float64)
    after = []
    for time, attended in enumerate(foils[phase :: program.selections]):
        state = {name: values[time] for name, values in run.states.items()}
        if isinstance(program, PhasedProgram):
            after.append(take_phases(program, given, positions, state, {phase: attended}))
        else:
            after.append(take_step(program, given, state, attended=attended).state)
    return {name: np.stack([state[name] for state in after]) for name in run.states}


def execution_batch(program: GraphProgram, inputs: Mapping[str, np.ndarray]) -> Batch:
    """The program's own trace as a batch of the task that it poses.

    Hint k is the state after k steps; a sample's length is where its own state stops changing.
    """
    task = program.posed()
    run = interpret(program, inputs)
    times = len(run.senders) + 1
    moved = np.zeros((times, run.senders.shape[1]), bool)
    for values in run.states.values():
        moved[1:] |= (values[1:] != values[:-1]).any(-1)
    lengths = 1 + np.max(np.where(moved, np.arange(times)[:, None], 0), axis=0)
    valid = np.arange(times)[:, None, None] < lengths[:, None]
    positions = np.asarray(inputs["pos"], np.float64)

    def read(component: Component, values: np.ndarray) -> np.ndarray:
        if component.kind is Kind.POINTER:
            return pointed(values, positions).astype(np.int32)
        return values.astype(np.float32)

    hints = {name: read(c, run.states[c.name]) * valid for name, c in program.hints.items()}
    outputs = {name: read(c, run.states[c.name][-1]) for name, c in program.output.items()}
    kinds = {f.name: np.int32 if f.type is Type.POINTER else np.float32 for f in task.features}
    return Batch(
        task,
        {f.name: jnp.asarray(inputs[f.name], jnp.float32) for f in task.inputs},
        {name: jnp.asarray(values.astype(kinds[name])) for name, values in hints.items()},
        {name: jnp.asarray(values) for name, values in outputs.items()},
        jnp.asarray(lengths, jnp.int32),
    )
