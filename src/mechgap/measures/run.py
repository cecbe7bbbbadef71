"""Measure the finished seeds of a run folder, and write what was found into it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from mechgap.errors import InvalidInput, unknown
from mechgap.measures.elsewhere import Elsewhere
from mechgap.measures.external import Margins
from mechgap.measures.interchange.measure import (
    LARGE,
    Interchange,
    check,
    compiled_interchange,
    interchange,
)
from mechgap.measures.population import measure_population
from mechgap.measures.reference import compile_reference
from mechgap.measures.results import NetworkMeasures, Results, load_results, save_results
from mechgap.network.network import Network
from mechgap.training.population import initial
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store
from mechgap.training.train import Tell


def measure_run(
    folder: Path,
    which: str = "best",
    *,
    elsewhere: Elsewhere | None = None,
    deep: int | None = None,
    margins: Margins | None = None,
    tell: Tell = lambda *_: None,
) -> Results:
    """Measure a run's finished seeds; diverged ones are left out.

    With `elsewhere`, on these graphs in place of the test set; then the files are in a folder of
    their own inside the run's, and the run's own measures stay as they are.
    """
    if which not in {"best", "last"}:
        raise unknown("kind of parameters", which, ["best", "last"])
    with Store.reading(folder) as store:
        rows = store.seeds()
        finished = [row.seed for row in rows if row.state == "finished"]
        if not finished:
            states = ", ".join(sorted({row.state for row in rows})) or "none"
            raise InvalidInput(
                f"'{folder}' has no finished seeds to measure (its seeds: {states}). Go on training"
            )
        networks = ((seed, store.network(seed, which)) for seed in finished)
        results = measure_population(
            store.recipe,
            networks,
            len(finished),
            parameters=which,
            diverged=[row.seed for row in rows if row.state == "diverged"],
            elsewhere=elsewhere,
            deep=deep,
            margins=margins,
            tell=tell,
        )
    results = _with_interchange_of(results, _earlier(results.folder(folder)))
    save_results(results.folder(folder), results)
    return results


def check_interchange(recipe: Recipe, dimensions: Sequence[int] | None) -> None:
    """Refuse a run whose networks' variables cannot be interchanged, before any work.

    Raises:
        InvalidInput: no mechanism of the task is known, or it has another number of phases than the
            networks have message-passing steps; or there are not so many dimensions.
    """
    if not recipe.mechanisms:
        raise InvalidInput(
            f"no exact program of {recipe.task} is known, so it has no variables to interchange"
        )
    for program in recipe.mechanisms:
        check(program, recipe.network_config, (1,) if dimensions is None else dimensions)


def measure_interchange(
    folder: Path,
    which: str = "best",
    *,
    dimensions: Sequence[int] | None = None,
    tell: Tell = lambda *_: None,
) -> Results:
    """Count how far the networks of a measured run compute what its mechanisms compute.

    It is written seed by seed into the run's measures, so that the same call goes on where an
    earlier one was stopped. Seeds of which it is known are left as they are, unless `dimensions`
    to choose from are given.

    Raises:
        InvalidInput: the run is not measured with these parameters, or no mechanism of its task has
            as many phases as its networks have message-passing steps.
    """
    results = load_results(folder)
    recipe = results.recipe
    check_interchange(recipe, dimensions)
    if results.parameters != which:
        raise InvalidInput(
            f"'{folder}' has measures of its {results.parameters} parameters, not of its {which}"
        )
    with Store.reading(folder) as store:
        networks: dict[int | str, Callable[[], Network]] = {
            seed: partial(store.network, seed, which) for seed in results.seeds
        }
        networks["untrained"] = lambda: initial(recipe, jnp.int32(0)).network
        for done, (name, network) in enumerate(networks.items()):
            tell("interchange", done, len(networks))
            known = _measures(results, name).interchange
            if known and dimensions is None:
                continue
            found = {
                program.name: interchange(network(), program, dimensions)
                for program in recipe.mechanisms
            }
            results = _with_interchange(results, name, found)
            save_results(folder, results)
    compiled = compile_reference(recipe, LARGE).compiled
    if compiled is not None and not results.yardsticks["compiled"].interchange:
        found = {compiled.program.name: compiled_interchange(compiled)}
        results = _with_interchange(results, "compiled", found)
        save_results(folder, results)
    tell("interchange", len(networks), len(networks))
    return results


def _measures(results: Results, name: int | str) -> NetworkMeasures:
    return results.seeds[name] if isinstance(name, int) else results.yardsticks[name]


def _with_interchange(
    results: Results, name: int | str, found: Mapping[str, Interchange]
) -> Results:
    of_this = {name: replace(_measures(results, name), interchange=found)}
    if isinstance(name, int):
        return replace(results, seeds={**results.seeds, **of_this})
    return replace(results, yardsticks={**results.yardsticks, **of_this})


def _earlier(folder: Path) -> Results | None:
    try:
        return load_results(folder)
    except InvalidInput:
        return None


def _with_interchange_of(results: Results, earlier: Results | None) -> Results:
    """What is known of the same networks: it takes minutes to find, and is not sought again."""
    if earlier is None:
        return results
    for seed, now in results.seeds.items():
        before = earlier.seeds.get(seed)
        if before is None or before.fingerprint is None or now.fingerprint is None:
            continue
        if np.array_equal(before.fingerprint, now.fingerprint):
            results = _with_interchange(results, seed, before.interchange)
    for name, before in earlier.yardsticks.items():
        if name in results.yardsticks and earlier.recipe == results.recipe:
            results = _with_interchange(results, name, before.interchange)
    return results
