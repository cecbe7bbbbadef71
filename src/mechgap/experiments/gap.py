"""The main job: compile, verify, train, measure, and write the page.

Everything is kept in one run folder. Running it again goes on where it was, and does nothing twice.
"""

from pathlib import Path

from mechgap.compiler.compile import Compiled
from mechgap.compiler.verify import Verification, fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.measures.population import Tell, compile_reference
from mechgap.measures.results import Results, load_results
from mechgap.measures.run import measure_run
from mechgap.programs.library import mechanisms
from mechgap.report.page.page import write_page
from mechgap.tasks.specs import TASKS
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store

NODES = 64
VERIFIED_GRAPHS = 64


def compile_and_verify(recipe: Recipe) -> tuple[Compiled, Verification]:
    """The task's compiled network, checked on new graphs of the test set's size."""
    compiled = compile_reference(recipe, NODES)
    if compiled is None:
        known = [task for task in TASKS if mechanisms(task)]
        raise InvalidInput(
            f"there is no compiled program for {recipe.task}, so there is no gap to measure. "
            f"Choose one of {', '.join(known)}, or train and measure it: mechgap train"
        )
    return compiled, verify(compiled, fresh_graphs(compiled.program, NODES, VERIFIED_GRAPHS, 11))


def measured_run(folder: Path, tell: Tell) -> Results:
    """A run's measures: those of an earlier time if they are of the seeds that are finished now."""
    with Store.reading(folder) as store:
        finished = [row.seed for row in store.seeds() if row.state == "finished"]
    try:
        results = load_results(folder)
    except InvalidInput:
        return measure_run(folder, tell=tell)
    measured = [row["seed"] for row in results.numbers["seeds"]]
    same = measured == finished and results.numbers["parameters"] == "best"
    return results if same else measure_run(folder, tell=tell)


def report_run(folder: Path, out: Path | None, tell: Tell) -> Path:
    """The page of any run; measured first if that has not been done."""
    with Store.reading(folder) as store:
        recipe = store.recipe
    measured_run(folder, tell)
    return write_page(folder, compile_reference(recipe, NODES), out)
