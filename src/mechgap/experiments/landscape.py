"""Which networks to look around: a run's learned, initial and compiled ones, or a program's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, get_target
from mechgap.compiler.verify import posed_batch
from mechgap.errors import InvalidInput
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.official import official
from mechgap.tasks.sampling import TEST_P, sample
from mechgap.tasks.specs import Task
from mechgap.training.population import initial
from mechgap.training.store import Store

_TARGETS = ("stock-ln", "stock", "general", "paper", "full")
"""The nearest to dm-clrs's own network first."""


class LandscapeJob(NamedTuple):
    """Networks to look around, and on which graphs."""

    title: str
    folder: Path
    """Where the landscape is kept if nobody says otherwise."""
    networks: Mapping[str, Network]
    batch: Batch


def landscape_of_run(folder: Path, seed: int, target: str | None) -> LandscapeJob:
    """A seed's learned and initial parameters, and the task's compiled ones."""
    with Store.reading(folder) as store:
        recipe, learned = store.recipe, store.network(seed)
    networks = {"learned": learned, "initial": initial(recipe, jnp.int32(seed)).network}
    batch = validation_graphs(learned, recipe.posed)
    for program in recipe.mechanisms[:1]:
        wanted = [target] if target else _nearest_targets(learned.config)
        compiled = _compile_first(program, wanted, recipe.hidden_size, batch.nodes)
        networks["compiled"] = compiled.network
    return LandscapeJob(f"{recipe.task}, seed {seed}", folder / "landscape", networks, batch)


def validation_graphs(network: Network, task: Task) -> Batch:
    """The official validation set; where a bias ties to another size, new graphs like it."""
    nodes = network.config.pre_att_bias_nodes
    found = official(task, "validation")
    if nodes in (None, found.nodes):
        return found
    key = jax.random.key(0x1A2D)
    return sample(task, key, batch_size=found.size, nodes=nodes, p=TEST_P, random_pos=False).trim()


def landscape_of_program(program: Program, target: str | None) -> LandscapeJob:
    """A program's compiled parameters, and initial ones of the same shape."""
    batch = posed_batch(program, official(program.task, "validation"))
    compiled = _compile_first(program, [target] if target else _TARGETS, 128, batch.nodes)
    untrained = Network.initial(batch.task, jax.random.key(0), compiled.network.config)
    networks = {"compiled": compiled.network, "initial": untrained}
    title = f"{program.name}, {compiled.target.name}"
    return LandscapeJob(title, Path(f"landscape-{program.name}"), networks, batch)


def _nearest_targets(config: NetworkConfig) -> list[str]:
    """The target of a network's own shape first."""
    return sorted(_TARGETS, key=lambda name: TARGETS[name].config(4, 16).use_ln != config.use_ln
                  or TARGETS[name].edge_information != config.use_edge_info
                  or TARGETS[name].pre_attention_bias != config.use_pre_att_bias)  # fmt: skip


def _compile_first(
    program: Program, targets: Sequence[str], hidden_size: int, nodes: int
) -> Compiled:
    """The program in the first of some targets that takes it."""
    refused: InvalidInput | None = None
    for name in targets:
        target = get_target(name)
        domain = Domain.regular(program, nodes)
        try:
            return compile_program(program, target, domain, hidden_size=hidden_size)
        except InvalidInput as error:
            refused = refused or error
    assert refused is not None
    raise refused
