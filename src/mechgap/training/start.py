"""Starting from compiled parameters in place of random ones."""

from dataclasses import fields
from functools import cache

import jax
from jaxtyping import Array, Key

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import get_target
from mechgap.errors import InvalidInput, unknown
from mechgap.network.config import NetworkConfig
from mechgap.network.directions import random_direction
from mechgap.network.network import Network
from mechgap.training.recipe import Recipe

NODES = 64
"""What a compiled network is certified for, if no bias ties it to one size."""


@cache
def compiled_start(recipe: Recipe) -> Compiled:
    """The compiled program that a recipe starts from."""
    name, _, target_name = recipe.start_from.partition(":")
    programs = {program.name: program for program in recipe.mechanisms}
    if name not in programs:
        raise unknown(f"exact program of {recipe.task}", name, programs)
    target = get_target(target_name)
    nodes = recipe.validation_nodes if target.pre_attention_bias else NODES
    domain = Domain.regular(programs[name], nodes)
    with jax.ensure_compile_time_eval():  # may be asked for while a program is traced
        compiled = compile_program(
            programs[name],
            target,
            domain,
            hidden_size=recipe.hidden_size,
            simplify_decoders=recipe.simplify_decoders,
        )
    wanted, found = recipe.network_config, compiled.network.config
    differing = [
        f"{f.name} = {getattr(wanted, f.name)}, compiled {getattr(found, f.name)}"
        for f in fields(NetworkConfig)
        if getattr(wanted, f.name) != getattr(found, f.name)
    ]
    if differing:
        raise InvalidInput(
            f"the recipe's network is not the one that {recipe.start_from} compiles to "
            f"({'; '.join(differing)})"
        )
    return compiled


def starting_network(recipe: Recipe, key: Key[Array, ""]) -> Network:
    """Random parameters, or compiled ones with the recipe's noise."""
    if not recipe.start_from:
        return Network.initial(recipe.posed, key, recipe.network_config)
    network = compiled_start(recipe).network
    if not recipe.start_noise:
        return network
    direction = random_direction(key, network)
    return jax.tree.map(lambda w, d: w + recipe.start_noise * d, network, direction)
