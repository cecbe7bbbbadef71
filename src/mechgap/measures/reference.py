"""The exact network that learned ones are compared with."""

from dataclasses import dataclass
from functools import lru_cache

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, Target
from mechgap.errors import InvalidInput
from mechgap.training.recipe import Recipe

HIDDEN_SIZE = 128
"""Of a reference that cannot have the trained network's shape."""


@dataclass(frozen=True)
class Reference:
    """A task's program as a network, or every reason why there is none."""

    compiled: Compiled | None
    same_architecture: bool
    """Whether it has the shape of the networks that the recipe trains."""
    refused: tuple[str, ...]
    """By the trained architecture first, then by every other that was tried."""


@lru_cache(maxsize=4)
def compile_reference(recipe: Recipe, nodes: int) -> Reference:
    """The task's first mechanism, compiled for graphs of up to that size.

    It gets the architecture that the recipe trains; where the program does not fit that, another.
    """
    if not recipe.mechanisms:
        return Reference(None, False, (f"no exact program of {recipe.task} is known",))
    program = recipe.mechanisms[0]
    config = recipe.network_config
    own = (Target.of(config), config.hidden_size, config.simplify_decoders)
    others = sorted(TARGETS.values(), key=_unlike_dm_clrs)
    attempts = dict.fromkeys([own, *((target, HIDDEN_SIZE, False) for target in others)])
    refused = list[str]()
    for target, hidden_size, simple in attempts:
        try:
            compiled = compile_program(
                program,
                target,
                Domain.regular(program, nodes),
                hidden_size=hidden_size,
                simplify_decoders=simple,
            )
        except InvalidInput as error:
            refused.append(f"{target.name}: {error}")
        else:
            return Reference(compiled, compiled.network.config == config, tuple(refused))
    return Reference(None, False, tuple(refused))


def _unlike_dm_clrs(target: Target) -> tuple[bool, ...]:
    """Networks that are more like dm-clrs's own come first."""
    edges, bias, ln, full = target.options
    return (full, bias, edges, not ln)
