"""The main job: compile, verify, train, measure, and write the page.

Everything is kept in one run folder. Running it again goes on where it was, and does nothing twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechgap.compiler.compile import Compiled
from mechgap.compiler.verify import Verification, fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.measures.data import mechanisms
from mechgap.measures.population import Tell, compile_reference
from mechgap.measures.results import Results, load_results
from mechgap.measures.run import measure_run
from mechgap.report.page.page import write_page
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store
from mechgap.training.train import Engine, Watcher, train

VERIFIED_GRAPHS = 64
SEEDS, STEPS = 4, 2000
"""What two cores do in about five minutes."""


@dataclass(frozen=True)
class GapReport:
    """What came out."""

    results: Results
    page: Path


def compile_and_verify(recipe: Recipe, nodes: int = 64) -> tuple[Compiled, Verification]:
    """The task's compiled network, checked on new graphs of that size."""
    compiled = compile_reference(recipe, nodes)
    if compiled is None:
        known = [p for p in ("bfs", "bellman_ford") if mechanisms(p)]
        raise InvalidInput(
            f"there is no compiled program for {recipe.task}, so there is no gap to measure. "
            f"Choose one of {', '.join(known)}, or train and measure it: mechgap train"
        )
    return compiled, verify(compiled, fresh_graphs(compiled.program, nodes, VERIFIED_GRAPHS, 11))


def measure_gap(
    recipe: Recipe,
    compiled: Compiled,
    seeds: Sequence[int],
    folder: Path,
    engine: Engine,
    *,
    watcher: Watcher,
    tell: Tell,
    begin: Callable[[str], None],
) -> GapReport:
    """Train what is missing, measure if anything is new, write the page."""
    begin("train")
    train(recipe, seeds, folder, engine, watcher=watcher)
    begin("measure")
    results = _measured(folder)
    if results is None:
        results = measure_run(folder, tell=tell)
    begin("report")
    return GapReport(results, write_page(folder, compiled))


def _measured(folder: Path) -> Results | None:
    """The measures of an earlier time, if they are of the seeds that are finished now."""
    with Store.reading(folder) as store:
        finished = [row.seed for row in store.seeds() if row.state == "finished"]
    try:
        results = load_results(folder)
    except InvalidInput:
        return None
    measured = [row["seed"] for row in results.numbers["seeds"]]
    same = measured == finished and results.numbers["parameters"] == "best"
    return results if same else None


def report_run(folder: Path, out: Path | None, tell: Tell) -> Path:
    """The page of any run; measured first if that has not been done."""
    with Store.reading(folder) as store:
        recipe = store.recipe
    if _measured(folder) is None:
        measure_run(folder, tell=tell)
    return write_page(folder, compile_reference(recipe, 64), out)
