"""How far a network computes what a program computes, variable by variable, beside baselines.

Directions that carry a variable are sought on graphs of 16 nodes; how many of them are taken is
chosen on other such graphs; what is told is counted on others still, and on graphs of 64 nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import mean
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from mechgap.compiler.compile import Compiled
from mechgap.errors import InvalidInput
from mechgap.measures.data import Data
from mechgap.measures.interchange.agreement import Agreement, Moment, agreement, at_moment
from mechgap.measures.interchange.alignment import (
    Part,
    aligned,
    layout_part,
    part_of,
    random_directions,
)
from mechgap.measures.interchange.cases import Cases, draw_cases
from mechgap.measures.interchange.reading import Readable, Reading
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.official import NODES, Split

SMALL, LARGE = 16, NODES[Split.TEST]
FITTED, CHOSEN, SCORED, SCORED_LARGE = 512, 256, 512, 64
"""Cases of a variable: to find directions, to choose how many, to count, and to count at size."""
DIMENSIONS = (1, 2, 4, 8, 16, 32)
NEAR = 0.03
"""As many dimensions are taken as come so near to the best number of them."""


@dataclass(frozen=True)
class Carried:
    """What carries one variable in a network, and how far it does."""

    dimensions: int
    """Of the subspace; 0 if the hints that are fed say all that is needed."""
    curve: Mapping[int, float]
    """Share of cases that follow, by dimensions, on graphs that the number was chosen on."""
    small: Agreement
    large: Agreement | None
    """None where no case was found at that size."""
    random: Agreement
    """With as many dimensions, by chance."""
    shuffled: Agreement
    """With the same subspace, put in from another node of the source run."""
    whole: Agreement
    """With the whole hidden state of the node."""
    reading: Reading | None = None
    """What these directions say on the test graphs; None where there are none to read."""

    ALSO_TOLD: ClassVar = ("score",)

    @property
    def score(self) -> float:
        """Share of cases that follow on small graphs."""
        return score(self.small)


def score(found: Agreement) -> float:
    """Share of cases that follow: about outputs, where the variable changes any; else of hints."""
    return found.outputs.follows if found.outputs.cases else found.hints.follows


@dataclass(frozen=True)
class Interchange:
    """How far a network computes what one program computes."""

    variables: Mapping[str, Carried]
    without_cases: tuple[str, ...]
    """Variables of which nothing follows that is not decided again in every step."""

    ALSO_TOLD: ClassVar = ("score",)

    @property
    def score(self) -> float:
        """The mean over variables."""
        return mean(each.score for each in self.variables.values())


class _Sets(NamedTuple):
    """The cases of one variable."""

    fit: Cases
    choose: Cases
    small: Cases
    large: Cases | None


@lru_cache(maxsize=4)
def sets_of(program: Program) -> Mapping[str, _Sets]:
    """The cases of every variable that has any: the same for all networks."""
    found = {}
    for variable in program.components:

        def draw(wanted: int, nodes: int, seed: int, name: str = variable) -> Cases | None:
            return draw_cases(program, posed(program), name, wanted=wanted, nodes=nodes, seed=seed)

        fit, choose, small = (
            draw(wanted, SMALL, k) for k, wanted in enumerate((FITTED, CHOSEN, SCORED))
        )
        if fit is not None and choose is not None and small is not None:
            found[variable] = _Sets(fit, choose, small, draw(SCORED_LARGE, LARGE, 3))
    return found


def check(program: Program, config: NetworkConfig, dimensions: Sequence[int]) -> None:
    """Refuse what cannot be interchanged.

    Raises:
        InvalidInput: the network has another number of message-passing steps than the program has
            phases, or no such number of dimensions.
    """
    steps, hidden = config.nb_msg_passing_steps, config.hidden_size
    if steps != program.selections:
        raise InvalidInput(
            f"{program.name} selects {program.selections} times in a hint step and the network "
            f"passes messages {steps} times, so that nothing in it is a phase. "
            f"Train with --nb-msg-passing-steps {program.selections}"
        )
    if not dimensions or min(dimensions) < 1 or max(dimensions) > hidden:
        raise InvalidInput(
            f"dimensions must be from 1 to the hidden size, {hidden}; got "
            f"{', '.join(map(str, dimensions)) or 'none'}"
        )


def interchange(
    network: Network,
    program: Program,
    dimensions: Sequence[int] | None = None,
    seed: int = 0,
    test: Data | None = None,
) -> Interchange:
    """Search for what carries each variable of a program in a network, and count what follows.

    Args:
        network: A learned one.
        program: With as many phases as the network has message-passing steps.
        dimensions: To choose from; up to 32 if not given.
        seed: Of the search.
        test: Graphs on which each variable is read off what carries it.

    Raises:
        InvalidInput: the two do not fit.
    """
    hidden = network.config.hidden_size
    sizes = tuple(k for k in DIMENSIONS if k <= hidden) if dimensions is None else tuple(dimensions)
    check(program, network.config, sizes)
    readable = None if test is None else _readable(network, program, test)
    found = {}
    for number, (variable, sets) in enumerate(sets_of(program).items()):
        key = jax.random.fold_in(jax.random.key(seed), number)
        fit = at_moment(network, sets.fit)
        directions = aligned(network, sets.fit, fit, sizes, key)
        held = at_moment(network, sets.choose)
        curve = {
            k: score(agreement(network, sets.choose, held, part_of(directions, k)))
            for k in (0, *sizes)
        }
        chosen = min(k for k, value in curve.items() if value >= max(curve.values()) - NEAR)
        anyhow = part_of(random_directions(jax.random.fold_in(key, 1), hidden, max(sizes)), chosen)
        part = part_of(directions, chosen)
        carried = _carried(network, sets, part, anyhow, curve, chosen)
        if readable is not None and chosen:
            reading = readable.read(variable, directions[:, :chosen])
            carried = replace(carried, reading=reading)
        found[variable] = carried
    return Interchange(found, _without_cases(program))


def _readable(network: Network, program: Program, test: Data) -> Readable:
    truth = next(truth for truth in test.truths if truth.mechanism == program.name)
    return Readable(network, truth, test)


def compiled_interchange(compiled: Compiled) -> Interchange:
    """The same of a compiled network, whose layout says what carries a variable."""
    program, network = compiled.program, compiled.network
    found = {}
    for number, (variable, sets) in enumerate(sets_of(program).items()):
        part = layout_part(compiled, variable)
        units = int(jnp.trace(part))
        key = jax.random.fold_in(jax.random.key(0), number)
        anyhow = part_of(random_directions(key, network.config.hidden_size, max(1, units)), units)
        held = at_moment(network, sets.choose)
        curve = {units: score(agreement(network, sets.choose, held, part))}
        found[variable] = _carried(network, sets, part, anyhow, curve, units)
    return Interchange(found, _without_cases(program))


def _without_cases(program: Program) -> tuple[str, ...]:
    return tuple(name for name in program.components if name not in sets_of(program))


def _carried(
    network: Network,
    sets: _Sets,
    part: Part,
    anyhow: Part,
    curve: Mapping[int, float],
    dimensions: int,
) -> Carried:
    small = at_moment(network, sets.small)
    large = None
    if sets.large is not None:
        large = agreement(network, sets.large, at_moment(network, sets.large), part)
    return Carried(
        dimensions,
        curve,
        agreement(network, sets.small, small, part),
        large,
        agreement(network, sets.small, small, anyhow),
        agreement(network, sets.small, _shuffled(small), part),
        agreement(network, sets.small, small, jnp.eye(len(part), dtype=part.dtype)),
    )


def _shuffled(moment: Moment) -> Moment:
    """What other nodes hold: each the next one's."""
    return eqx.tree_at(lambda m: m.hidden, moment, jnp.roll(moment.hidden, 1, axis=1))
