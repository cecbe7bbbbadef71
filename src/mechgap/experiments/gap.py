"""The main job: compile, verify, train, measure, and write the page.

Everything is kept in one run folder. Running it again resumes it, and does nothing twice.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from mechgap.compiler.target import Target
from mechgap.compiler.verify import Verification, fresh_graphs, verify
from mechgap.errors import InvalidInput
from mechgap.experiments.size import Size, gap_size
from mechgap.measures.data import DEEP_NODES
from mechgap.measures.reference import Reference, compile_reference
from mechgap.measures.results import Results, load_results
from mechgap.measures.run import measure_run
from mechgap.measures.snapshot import STEPS, Observer
from mechgap.measures.workers import Workers, this_process
from mechgap.programs.library import mechanisms
from mechgap.programs.program import Program
from mechgap.report.answer import answer, beyond_the_answer
from mechgap.report.page.page import write_page
from mechgap.tasks.specs import TASKS
from mechgap.training.engines import make_engine
from mechgap.training.presets import make_recipe
from mechgap.training.recipe import Recipe
from mechgap.training.run import Run
from mechgap.training.store import Store
from mechgap.training.train import OnProgress, Watcher, default_chunk, snapshots_at, train, watching

NODES = 64
VERIFIED_GRAPHS = 64


@dataclass(frozen=True)
class GapReport:
    """What the main job found."""

    folder: Path
    """The run folder, which holds everything."""
    reference: Reference
    """The compiled network, or why there is none."""
    verification: Verification | None
    """Whether the compiled network is exact."""
    results: Results
    """All that was measured."""
    page: Path
    seconds: float
    """How long it took."""

    @property
    def answer(self) -> str:
        """What was found, in a few sentences."""
        return f"{answer(self.results)} {beyond_the_answer(self.results)}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "answer": self.answer,
            "page": str(self.page),
            "seconds": self.seconds,
            "verification": self.verification and self.verification.to_json(),
            **self.results.to_json(),
        }

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.answer)}</p>{self.results._repr_html_()}"


def gap(
    task: str | Program,
    *,
    seeds: int | None = None,
    steps: int | None = None,
    out: Path | str | None = None,
    hidden_size: int = 128,
    official: bool | None = None,
    progress: OnProgress | Watcher | None = None,
) -> GapReport:
    """Compile an algorithm, train networks on it, measure the gap, write a page about it.

    Args:
        task: A task, a program (itself or by its name in the library), or ``file.py:name`` (a
            program file is Python code that is run: use only files that you trust).
        seeds: How many networks to train; with `steps`, what takes about five minutes on two
            cores if not given.
        steps: Training steps of each.
        out: The run folder, ``gap-TASK`` if not given. An existing one is resumed.
        hidden_size: Hidden units of each network.
        official: Whether to test on the official graphs of 64 nodes, or on ones of the training
            size; where traces are so long that it would take too long, not, if not given.
        progress: Is told how it goes; a watcher can also stop it.

    Raises:
        InvalidInput: there is no exact program of the task, or the folder holds another run.
        Stopped: the watcher asked for it; what was trained is kept.
    """
    began = time.monotonic()
    watcher = watching(progress)
    recipe = gap_recipe(task, hidden_size)
    size = gap_size(recipe).with_(seeds, steps, official)
    recipe = replace(recipe, train_steps=size.steps, length_generalize=size.on_official_graphs)
    called = task.name if isinstance(task, Program) else task
    folder = Path(out) if out is not None else Path(f"gap-{called.rpartition(':')[2]}")
    Store.check(folder, recipe, default_chunk(recipe))
    engine = make_engine("local")
    watcher.begin(f"{called} exactly")
    nodes = NODES if size.on_official_graphs else DEEP_NODES
    reference = compile_reference(recipe, nodes)
    verification = _verified(reference, NODES if nodes == NODES else recipe.validation_nodes)
    watcher.say(reference_sentence(recipe, reference, verification))
    watcher.say(_plan_sentence(called, folder, recipe, size))
    looked = snapshots_at(recipe, STEPS, partial(Observer, deep=size.deep_graphs))
    train(recipe, range(size.seeds), folder, engine, snapshots=looked, watcher=watcher)
    results = measured_run(folder, watcher.tell, size.deep_graphs)
    page = write_page(folder, reference.compiled)
    seconds = time.monotonic() - began
    return GapReport(folder, reference, verification, results, page, seconds)


def gap_recipe(task: str | Program, hidden_size: int = 128) -> Recipe:
    """The paper's recipe for a network that has the shape of the task's compiled program.

    Of the architectures that the program fits into, the one most like dm-clrs's own; dm-clrs's own
    where it fits into none.
    """
    given = {"hidden_size": hidden_size}
    usual = make_recipe(task, overrides=given)
    if not usual.mechanisms:
        known = [name for name in TASKS if mechanisms(name)]
        raise InvalidInput(
            f"there is no exact program of {usual.task}, so there is no gap to measure. "
            f"Choose one of {', '.join(known)}, give a program of your own, or train and measure "
            "it: mechgap train"
        )
    program = usual.mechanisms[0]
    processor = "gatv2_full" if program.sees_all else "gatv2"
    for edges, norm in ((False, True), (False, False), (True, True), (True, False)):
        shape = {
            "nb_msg_passing_steps": program.selections,
            "processor_type": processor,
            "use_edge_info": edges,
            "use_ln": norm,
        }
        recipe = make_recipe(task, overrides={**given, **shape})
        found = compile_reference(recipe, NODES).compiled
        if found is not None and found.target == Target.of(recipe.network_config):
            return recipe
    return usual


def _verified(reference: Reference, nodes: int) -> Verification | None:
    """The compiled network on new graphs of the test set's size."""
    if reference.compiled is None:
        return None
    graphs = fresh_graphs(reference.compiled.program, nodes, VERIFIED_GRAPHS, 11)
    return verify(reference.compiled, graphs)


def reference_sentence(
    recipe: Recipe, reference: Reference, verification: Verification | None
) -> str:
    """What was compiled and how exact it is, or every reason why nothing was."""
    name = recipe.mechanisms[0].name
    compiled = reference.compiled
    if compiled is None or verification is None:
        reasons = "; ".join(reference.refused)
        return (
            f"{name} fits into no architecture ({reasons}). Networks are trained and compared with "
            "its own run; what needs a compiled network is left out"
        )
    shape = "" if reference.same_architecture else ", another shape than is trained"
    return (
        f"compiled {name} ({compiled.target.name}, {compiled.network.parameters:,} parameters"
        f"{shape}): {verification.sentence}, every hint of every step"
    )


def _plan_sentence(task: str, folder: Path, recipe: Recipe, size: Size) -> str:
    full = [f"mechgap gap {task}", "--seeds 128", "--steps 10000"]
    on = "the official graphs of 64 nodes"
    if not size.on_official_graphs:
        on = f"graphs of {recipe.validation_nodes} nodes (its traces are long)"
        full.append("--official")
    return (
        f"training {size.seeds} networks for {size.steps:,} steps each, about "
        f"{max(1, round(size.seconds / 60))} min on two cores, tested on {on}; a full run is: "
        f"{' '.join(full)} --out {folder}-full"
    )


def measured_run(
    folder: Path,
    on_progress: OnProgress,
    deep: int | None = None,
    which: str = "best",
    workers: Workers = this_process,
) -> Results:
    """A run's measures: those of an earlier time if they are of the seeds that are finished now.

    `deep` is how many deep graphs they are measured on if there are none.
    """
    finished = [row.seed for row in Run.open(folder).finished]
    try:
        results = load_results(folder)
    except InvalidInput:
        return measure_run(folder, which, deep=deep, workers=workers, on_progress=on_progress)
    same = list(results.seeds) == finished and results.parameters == which
    if same:
        return results
    return measure_run(folder, which, deep=deep, workers=workers, on_progress=on_progress)


def report_run(folder: Path, out: Path | None, on_progress: OnProgress) -> Path:
    """The page of any run; measured first if that has not been done."""
    results = measured_run(folder, on_progress)
    return write_page(folder, compile_reference(results.recipe, NODES).compiled, out)
