"""Measure the finished seeds of a run folder, and write what was found into it."""

from pathlib import Path

from mechgap.errors import InvalidInput, unknown
from mechgap.measures.elsewhere import Elsewhere
from mechgap.measures.external import Margins
from mechgap.measures.population import measure_population
from mechgap.measures.results import Results, save_results
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
    save_results(results.folder(folder), results)
    return results
