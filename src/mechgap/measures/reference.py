"""The exact network that learned ones are compared with."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, Target
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.interpreter import interpret
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.training.recipe import Recipe

HIDDEN_SIZE = 128
"""Of a reference that cannot have the trained network's shape."""
_MARGIN = 1.001
"""How much more than the largest value a network is made for."""


@dataclass(frozen=True)
class Reference:
    """A task's program as a network, or every reason why there is none."""

    compiled: Compiled | None
    same_architecture: bool
    """Whether it has the shape of the networks that the recipe trains."""
    refused: tuple[str, ...]
    """By the trained architecture first, then by every other that was tried."""


def compile_reference(recipe: Recipe, nodes: int, covering: Batch | None = None) -> Reference:
    """The task's first mechanism, compiled for graphs of up to that size.

    It gets the architecture that the recipe trains; where the program does not fit that, another.
    On other graphs than CLRS's, values may be larger: `covering` asks for a network that holds
    those of some graphs; where there is none, it is made for CLRS's values.
    """
    if not recipe.mechanisms:
        return Reference(None, False, (f"no exact program of {recipe.task} is known",))
    usual = Domain.regular(recipe.mechanisms[0], nodes)
    if covering is None:
        return _compiled(recipe, usual)
    wide = _compiled(recipe, _widened(usual, recipe.mechanisms[0], covering))
    return wide if wide.compiled is not None else _compiled(recipe, usual)


@lru_cache(maxsize=8)
def _compiled(recipe: Recipe, domain: Domain) -> Reference:
    program, config = recipe.mechanisms[0], recipe.network_config
    own = (Target.of(config), config.hidden_size, config.simplify_decoders)
    others = sorted(TARGETS.values(), key=_unlike_dm_clrs)
    attempts = dict.fromkeys([own, *((target, HIDDEN_SIZE, False) for target in others)])
    refused = list[str]()
    for target, hidden_size, simple in attempts:
        try:
            compiled = compile_program(
                program, target, domain, hidden_size=hidden_size, simplify_decoders=simple
            )
        except InvalidInput as error:
            refused.append(f"{target.name}: {error}")
        else:
            return Reference(compiled, compiled.network.config == config, tuple(refused))
    return Reference(None, False, tuple(refused))


def _widened(domain: Domain, program: Program, batch: Batch) -> Domain:
    """A domain with the weights and the values that a program has on some graphs."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    states = interpret(program, inputs, batch.steps).states
    largest = [np.abs(states[c.name]).max() for c in program.hidden if c.kind is Kind.FLOAT]
    return replace(
        domain,
        largest_value=max([domain.largest_value, *(_MARGIN * float(each) for each in largest)]),
        largest_weight=max(domain.largest_weight, _MARGIN * float(inputs["A"].max())),
    )


def _unlike_dm_clrs(target: Target) -> tuple[bool, ...]:
    """Networks that are more like dm-clrs's own come first."""
    edges, bias, ln, full = target.options
    return (full, bias, edges, not ln)
