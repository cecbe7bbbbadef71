"""What size does to populations, as a table.

`results/sizes/POPULATION.json` has what was seen of every seed on every kind and size of graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import ClassVar

from matplotlib.figure import Figure

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Row, Study, TableOfRows, finished_run, missing
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.at_sizes import AtSizes, OnGraphs, measure_sizes
from mechgap.measures.snapshot import SeenRun
from mechgap.report.sizes import LEARNED, BySize, lines_of, over_sizes
from mechgap.training.train import OnProgress

KINDS = ("er-sparse", "ws", "delaunay")
COUNTS = {16: 32, 64: 32, 160: 32, 800: 8, 1600: 8}
"""How many graphs of each kind have so many nodes."""
DECIDED = 64
"""Of so many nodes they also run as lists of edges: what deciding predicted pointers changes."""


def _path(results: Path, population: Population) -> Path:
    return results / "sizes" / f"{population.name}.json"


def kept_sizes(results: Path, population: Population) -> AtSizes | None:
    """What was seen of a population; None where nobody looked."""
    return AtSizes.read(_path(results, population))


def keep_sizes(population: Population, runs: Path, results: Path, on_progress: OnProgress) -> None:
    """Look at a run's networks on other graphs, and join what was seen to what is kept."""
    run, found = finished_run(population, runs), AtSizes("best")
    if run is None:
        return
    for nodes, count in COUNTS.items():
        found = measure_sizes(run.folder, KINDS, [nodes], count=count, on_progress=on_progress)
    found = measure_sizes(
        run.folder, KINDS, [DECIDED], count=COUNTS[DECIDED], lists=True, on_progress=on_progress
    )
    kept = kept_sizes(results, population)
    for on in () if kept is None else kept.graphs:
        now = found.of(*on.key)
        found = found.with_(replace(now, seeds={**on.seeds, **now.seeds}))
    _path(results, population).parent.mkdir(parents=True, exist_ok=True)
    found.write(_path(results, population))


AT_SIZES = Study(
    keep_sizes, lambda population, results: kept_sizes(results, population) is not None
)


@dataclass(frozen=True)
class AtSizesTable(TableOfRows):
    """Outputs and whole graphs that are right, and agreement, the larger the graphs."""

    study: ClassVar[Study | None] = AT_SIZES

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each population and kind of graphs, and one for the compiled network."""
        rows, data = [], []
        for row in self.rows:
            found = kept_sizes(results, row.population)
            if found is None:
                why = missing(row.population, results, "looked at")
                rows.append((row.label, why, *["-"] * (len(COUNTS) + 2)))
                data.append({"row": row.label, "missing": why})
                continue
            for kind in KINDS:
                at = [found.of(kind, nodes, count) for nodes, count in COUNTS.items()]
                decided = found.of(kind, DECIDED, COUNTS[DECIDED], lists=True)
                of_row, beside = _told(row, at)
                changes = _decided(row, found.of(kind, DECIDED, COUNTS[DECIDED]), decided)
                seeds = str(max(len(on.seeds) for on in at))
                rows.append((row.label, kind, *of_row, changes, seeds))
                rows.append((f"{row.label}, compiled", kind, *beside, "-", "-"))
                data.append({"row": row.label, "graphs": kind, "nodes": list(COUNTS),
                             "learned": of_row, "compiled": beside, "decided": changes,
                             "decided_seeds": len(decided.seeds)})  # fmt: skip
        sizes = (f"{nodes:,} nodes" for nodes in COUNTS)
        head = ("", "graphs", *sizes, f"{DECIDED} nodes: decided, less soft", "seeds")
        return Rendered(name, self.caption, head, rows, self.remarks, data)

    def drawn(self, results: Path) -> Figure | None:
        """The populations and their compiled networks; None where nobody looked yet."""
        told: dict[str, dict[str, dict[str, BySize]]] = {}
        for row in self.rows:
            found = kept_sizes(results, row.population)
            for measure, lines in ({} if found is None else lines_of(found)).items():
                for kind, named in lines.items():
                    of_kind = told.setdefault(measure, {}).setdefault(kind, {})
                    seeds = max(map(len, named[LEARNED].values()))
                    of_kind[f"{row.label} ({seeds} seeds)"] = named[LEARNED]
                    if "compiled" in named:
                        of_kind[f"{row.population.task}, compiled"] = named["compiled"]
        return over_sizes(told) if told else None


def _told(row: Row, at: Sequence[OnGraphs]) -> tuple[list[str], list[str]]:
    recipe = row.population.recipe
    mechanism = (recipe.mechanism or recipe.mechanisms[0]).name
    learned = [_text(list(on.seeds.values()), mechanism) for on in at]
    compiled = [on.baselines.get("compiled") for on in at]
    first = recipe.mechanisms[0].name
    return learned, [_text([each] if each else [], first) for each in compiled]


def _decided(row: Row, soft: OnGraphs, decided: OnGraphs) -> str:
    """What deciding pointers changes in networks that were looked at both ways, in points."""
    both = [seed for seed in decided.seeds if seed in soft.seeds]
    if not both:
        return "-"
    recipe = row.population.recipe
    mechanism = (recipe.mechanism or recipe.mechanisms[0]).name
    means = [_means([on.seeds[seed] for seed in both], mechanism) for on in (soft, decided)]
    changes = [None if a is None or b is None else b - a for a, b in zip(*means, strict=True)]
    told = " / ".join("-" if change is None else f"{100 * change:+.1f}" for change in changes)
    return f"{told} ({len(both)} seed{'s' * (len(both) != 1)})"


def _text(seen: Sequence[SeenRun], mechanism: str) -> str:
    """Outputs / whole graphs / agreement, in percent."""
    if not seen:
        return "-"
    means = _means(seen, mechanism)
    return " / ".join("-" if value is None else f"{100 * value:.1f}" for value in means)


def _means(seen: Sequence[SeenRun], mechanism: str) -> list[float | None]:
    """Of outputs, whole graphs and agreement; None where nothing is known."""
    beside = [each.mechanisms.get(mechanism) for each in seen]
    numbers = (
        [each.accuracy for each in seen],
        [each.graph_accuracy for each in seen],
        [None if each is None else each.agreement for each in beside],
    )
    known = [[value for value in values if value is not None] for values in numbers]
    return [mean(values) if values else None for values in known]
