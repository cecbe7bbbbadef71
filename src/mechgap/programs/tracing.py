"""A program's trace on device: hints, outputs and lengths, inside `jax.jit` too."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from mechgap.programs.components import Component, Kind
from mechgap.programs.evaluation import State, given, pointed
from mechgap.programs.meaning import start, take_step
from mechgap.programs.program import Program


def trace(
    program: Program, inputs: Mapping[str, Array], max_hints: int
) -> tuple[dict[str, Array], dict[str, Array], Int[Array, "batch"]]:
    """Hints (zero after each sample's end), outputs and lengths.

    A sample ends where its state changes for the last time. One that should have come to its
    fixpoint, and still changes in the last step, has one hint more than there are: whoever
    samples refuses it.
    """
    positions = inputs["pos"]
    known = given(program, inputs, positions.dtype)

    def step(state: State, _: None) -> tuple[State, tuple[State, Array]]:
        after = take_step(program, known, state, jnp).state
        moved = [jnp.any(after[name] != state[name], axis=-1) for name in after]
        return after, (after, jnp.any(jnp.stack(moved), axis=0))

    first = {n: jnp.asarray(v, positions.dtype) for n, v in start(program, known, jnp).items()}
    steps = max_hints - 1
    last, (later, moved) = jax.lax.scan(step, first, length=steps)
    states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)
    times = jnp.arange(1, steps + 1)[:, None]
    lengths = 1 + jnp.max(jnp.where(moved, times, 0), axis=0, initial=0)
    counted = jnp.arange(steps + 1)[:, None] < lengths

    def hint(component: Component) -> Array:
        values = read(component, states, positions)
        valid = counted.reshape(*counted.shape, *[1] * (values.ndim - 2))
        return jnp.where(valid, values, 0).astype(values.dtype)

    hints = {name: hint(component) for name, component in program.hints.items()}
    outputs = {name: read(c, last, positions) for name, c in program.output.items()}
    ends = isinstance(program.steps, int)
    unfinished = jnp.zeros_like(moved[-1]) if ends else moved[-1]
    return hints, outputs, (lengths + unfinished).astype(jnp.int32)


def read(component: Component, state: Mapping[str, Any], positions: Any) -> Array:
    """A component of a state, ``[…, batch, nodes]``, as a batch has it."""
    if component.kind is Kind.CLASS:
        return jnp.stack([state[label] for label in component.classes], axis=-1)
    values = state[component.name]
    match component.kind:
        case Kind.POINTER:
            return pointed(values, positions).astype(jnp.int32)
        case Kind.TOTAL:
            return values[..., 0]
    return values
