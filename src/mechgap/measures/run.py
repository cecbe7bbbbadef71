"""Measure the finished seeds of a run folder, and write what was found into it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from mechgap.compiler.compile import Compiled
from mechgap.errors import InvalidInput, unknown
from mechgap.measures.data import make_data
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
from mechgap.measures.workers import Workers, this_process
from mechgap.network.network import Network
from mechgap.training.population import initial, test_graphs
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store
from mechgap.training.train import OnProgress


def measure_run(
    folder: Path,
    which: str = "best",
    *,
    elsewhere: Elsewhere | None = None,
    deep: int | None = None,
    margins: Margins | None = None,
    workers: Workers = this_process,
    on_progress: OnProgress = lambda *_: None,
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
            workers=workers,
            on_progress=on_progress,
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
    workers: Workers = this_process,
    on_progress: OnProgress = lambda *_: None,
) -> Results:
    """Count how far the networks of a measured run compute what its mechanisms compute.

    It is written network by network into the run's measures, so that the same call resumes where an
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
    names: list[int | str] = [*results.seeds, "untrained"]
    asked = [n for n in names if dimensions is not None or not _measures(results, n).interchange]
    compiled = compile_reference(recipe, LARGE).compiled
    if compiled is not None and not results.baselines["compiled"].interchange:
        asked.append("compiled")
    with Store.reading(folder) as store:

        def network(name: int | str) -> Network | Compiled:
            if name == "compiled":
                assert compiled is not None
                return compiled
            if name == "untrained":
                return initial(recipe, jnp.int32(0)).network
            return store.network(int(name), which)

        on_progress("interchange", 0, len(asked))
        jobs = ((name, network(name)) for name in asked)
        work = Interchanging(recipe, None if dimensions is None else tuple(dimensions))
        for done, ((name, _), found) in enumerate(workers(work, jobs), 1):
            results = _with_interchange(results, name, found)
            save_results(folder, results)
            on_progress("interchange", done, len(asked))
    return results


@dataclass(frozen=True)
class Interchanging:
    """Counts for one network how far it computes what each mechanism of a recipe does."""

    recipe: Recipe
    dimensions: tuple[int, ...] | None

    def __call__(self, job: tuple[int | str, Network | Compiled]) -> Mapping[str, Interchange]:
        """By mechanism; of a compiled network only for its own program."""
        _, network = job
        if isinstance(network, Compiled):
            return {network.program.name: compiled_interchange(network)}
        test = make_data("test", test_graphs(self.recipe), self.recipe.mechanisms)
        return {
            program.name: interchange(network, program, self.dimensions, test=test)
            for program in self.recipe.mechanisms
        }


def _measures(results: Results, name: int | str) -> NetworkMeasures:
    return results.seeds[name] if isinstance(name, int) else results.baselines[name]


def _with_interchange(
    results: Results, name: int | str, found: Mapping[str, Interchange]
) -> Results:
    of_this = {name: replace(_measures(results, name), interchange=found)}
    if isinstance(name, int):
        return replace(results, seeds={**results.seeds, **of_this})
    return replace(results, baselines={**results.baselines, **of_this})


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
    for name, before in earlier.baselines.items():
        if name in results.baselines and earlier.recipe == results.recipe:
            results = _with_interchange(results, name, before.interchange)
    return results
