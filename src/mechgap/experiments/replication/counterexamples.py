"""The smallest graphs on which populations are wrong, as a table.

`results/counterexamples/POPULATION.json` has what was tried and found about every seed.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Study, TableOfRows, finished_run, missing
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.counterexamples import SearchedRun, counterexamples
from mechgap.training.train import OnProgress
from mechgap.typed import plain


def _path(results: Path, population: Population) -> Path:
    return results / "counterexamples" / f"{population.name}.json"


def kept_counterexamples(results: Path, population: Population) -> SearchedRun | None:
    """What was found about a population; None where nobody searched."""
    return SearchedRun.read(_path(results, population), "Remove it and run again")


def keep_counterexamples(
    population: Population, runs: Path, results: Path, on_progress: OnProgress
) -> None:
    """Search for the smallest wrong graphs of a run, and join what was found to what is kept."""
    run = finished_run(population, runs)
    if run is None:
        return
    found, kept = (
        counterexamples(run, on_progress=on_progress),
        kept_counterexamples(results, population),
    )
    how = found.parameters, found.max_nodes
    if kept is not None and (kept.parameters, kept.max_nodes) == how:
        found = kept.with_seeds(found)
    found.write(_path(results, population))


COUNTEREXAMPLES = Study(
    keep_counterexamples,
    lambda population, results: kept_counterexamples(results, population) is not None,
)


@dataclass(frozen=True)
class CounterexampleTable(TableOfRows):
    """How large graphs must be for the networks of a population to be wrong."""

    study: ClassVar[Study | None] = COUNTEREXAMPLES

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each population."""
        head = ("", "all graphs up to", "seeds right on all", "smallest wrong: nodes (seeds)",
                "such as")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            found = kept_counterexamples(results, row.population)
            if found is None:
                why = missing(row.population, results, "searched")
                rows.append((row.label, why, "-", "-", "-"))
                data.append({"row": row.label, "missing": why})
                continue
            data.append({"row": row.label, **plain(found)})
            all_of = [sum(each.all_of.values()) for each in found.seeds.values()]
            wrong = [each.found for each in found.seeds.values() if each.found is not None]
            sizes = Counter(each.nodes for each in wrong)
            told = ", ".join(f"{nodes} ({count})" for nodes, count in sorted(sizes.items()))
            smallest = min(wrong, key=lambda each: (each.nodes, len(each.edges)), default=None)
            rows.append(
                (row.label, f"{found.max_nodes} nodes ({max(all_of):,})",
                 f"{found.right_on_all} of {len(found.seeds)}", told or "none was found",
                 "-" if smallest is None else smallest.sentence)
            )  # fmt: skip
        return Rendered(name, self.caption, head, rows, self.remarks, data)
