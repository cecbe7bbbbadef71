"""Which part of a hidden state carries a variable: known of a compiled network, found in a learned.

In a learned network it is sought among linear subspaces (distributed alignment search): a rotation
of the hidden state is trained so that to put in its first k directions from the source run makes
the network answer as the program does. One rotation serves all k: every training step takes one of
them, so its first directions are the most telling.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from mechgap.compiler.compile import Compiled
from mechgap.measures.interchange.agreement import Moment, interchanged
from mechgap.measures.interchange.cases import Cases, Told
from mechgap.network.network import Network
from mechgap.tasks.specs import Feature, Location, Type
from mechgap.training.loss import prediction_errors

Directions = Float[Array, "hidden most"]
"""Orthonormal, the most telling first."""
Part = Float[Array, "hidden hidden"]

STEPS, CASES_A_STEP, RATE = 240, 32, 0.1


def part_of(directions: Directions, dimensions: Int[Array, ""] | int) -> Part:
    """The projection onto the first of some directions."""
    first = directions * (jnp.arange(directions.shape[1]) < dimensions)
    return first @ first.T


def random_directions(key: Key[Array, ""], hidden: int, most: int) -> Directions:
    """Directions that know nothing."""
    return jnp.linalg.qr(jax.random.normal(key, (hidden, most)))[0]


def layout_part(compiled: Compiled, variable: str) -> Part:
    """The part of a compiled network's hidden state that carries a variable: its layout says it."""
    names = {variable, *compiled.program.components[variable].classes}
    own = [unit.component.split("@")[0] in names for unit in compiled.hidden_units]
    units = np.zeros(compiled.network.config.hidden_size)
    units[: len(own)] = own
    return jnp.diag(jnp.asarray(units, compiled.network.dtype))


def aligned(
    network: Network,
    cases: Cases,
    moment: Moment,
    sizes: Sequence[int],
    key: Key[Array, ""],
    steps: int = STEPS,
) -> Directions:
    """Search for directions that carry a variable.

    Args:
        network: A learned one.
        cases: To fit on.
        moment: What the network holds at these, in the source runs.
        sizes: Numbers of dimensions that it shall be good for.
        key: Of where the search begins, and in which order it sees cases.
        steps: Of training.
    """
    begin, key = jax.random.split(key)
    start = jax.random.normal(begin, (network.config.hidden_size, max(sizes)), network.dtype)
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, steps))
    return _searched(network, cases, moment, jnp.asarray(sizes), start, key, optimiser, steps)


@eqx.filter_jit
def _searched(
    network: Network,
    cases: Cases,
    moment: Moment,
    sizes: Int[Array, "sizes"],
    start: Float[Array, "hidden most"],
    key: Key[Array, ""],
    optimiser: optax.GradientTransformation,
    steps: int,
) -> Directions:
    def loss(free: Array, some: Cases, at: Moment, dimensions: Array) -> Float[Array, ""]:
        part = part_of(jnp.linalg.qr(free)[0], dimensions)
        return interchange_error(network, some, at, part)

    def step(carry, key: Array):
        free, state = carry
        which, size = jax.random.split(key)
        chosen = jax.random.choice(which, cases.count, (min(CASES_A_STEP, cases.count),), False)
        dimensions = jax.random.choice(size, sizes)
        gradient = jax.grad(loss)(free, cases[chosen], moment[chosen], dimensions)
        updates, state = optimiser.update(gradient, state, free)
        return (free + updates, state), None

    begin = (start, optimiser.init(start))
    (free, _), _ = jax.lax.scan(step, begin, jax.random.split(key, steps))
    return jnp.linalg.qr(free)[0]


def interchange_error(
    network: Network, cases: Cases, moment: Moment, part: Part
) -> Float[Array, ""]:
    """How far a network is from what the program comes to: dm-clrs's errors of outputs and of the
    next hints, where the change makes a difference and everywhere, alike."""
    said = interchanged(network, cases, moment, part)
    at = (cases.time, jnp.arange(cases.count))
    total = jnp.zeros((), network.dtype)
    for f in network.task.outputs:
        total += _error(f, cases.outputs[f.name], said.outputs[f.name])
    for f in network.task.hints:
        if f.name in cases.hints.keys() & said.hints.keys() and f.location is Location.NODE:
            total += _error(f, cases.hints[f.name], said.hints[f.name][at])
    return total


def _error(feature: Feature, told: Told, raw: Array) -> Float[Array, ""]:
    truth, differs = told.changed, told.differs
    if feature.type is Type.CATEGORICAL:
        truth = jax.nn.one_hot(truth.astype(int), raw.shape[-1])
    if feature.type is Type.POINTER:
        truth = truth.astype(int)
    error = prediction_errors(feature, truth, raw)
    if feature.type is Type.MASK_ONE:  # one of the nodes, and not each of them
        return jnp.mean(error) + _mean(error, jnp.any(differs, axis=-1))
    return jnp.mean(error) + _mean(error, differs)


def _mean(error: Array, among: Bool[Array, "..."]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(among, error, 0)) / jnp.maximum(1, jnp.sum(among))
