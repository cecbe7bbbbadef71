"""Tables of one task's populations on graphs of several kinds and sizes: does it carry over?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Row, TableOfRows, missing
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.breaking import Breaking
from mechgap.measures.elsewhere import name_of
from mechgap.measures.snapshot import Seen, SeenRun
from mechgap.report.sizes import MEASURES, BySize, over_sizes


@dataclass(frozen=True)
class SizesTable(TableOfRows):
    """Shares on every kind and size of graphs: outputs and whole graphs that are right, and updated
    nodes whose largest attention is where the mechanism could have it."""

    lines: tuple[str, ...] = ()
    """Which rows are drawn, by their labels; all of them if none is named."""
    largest: int = 64
    """The largest graphs that are shown."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Each population's mean over seeds."""
        known = dict.fromkeys(graphs for p in self.populations for graphs in p.elsewhere)
        graphs = [(kind, nodes) for kind, nodes in known if nodes <= self.largest]
        rows, data = [], []
        for row in self.rows:
            found = seen_elsewhere(row.population, results)
            seeds = max((len(seen) for seen in found.values()), default=0)
            cells = [
                shares_text(found.get(name_of(*each), ()), mechanism_of(row), seeds)
                for each in graphs
            ]
            if not found:
                cells[0] = missing(row.population, results)
            steps = f"{row.population.recipe.train_steps:,}"
            rows.append((row.label, *cells, str(seeds), steps))
            shares = {
                name: [_shares(s, mechanism_of(row)) for s in seen] for name, seen in found.items()
            }
            data.append({"row": row.label, "population": row.population.name, **shares})
        head = ("", *(f"{kind}, {nodes} nodes" for kind, nodes in graphs), "seeds", "steps")
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(name, self.caption, head, rows, [*remarks, *self.remarks], data)

    def drawn(self, results: Path) -> Figure | None:
        """Whole graphs that are right against their size; None where there are no numbers yet."""
        lines: dict[str, dict[str, BySize]] = {}
        for row in (r for r in self.rows if not self.lines or r.label in self.lines):
            for kind, by_size in self._by_size(row.population, results).items():
                seeds = max(map(len, by_size.values()))
                lines.setdefault(kind, {})[f"{row.label} ({seeds} seeds)"] = by_size
        return over_sizes({MEASURES["graph_accuracy"]: lines}) if lines else None

    def _by_size(self, population: Population, results: Path) -> dict[str, dict[int, list[float]]]:
        seen, shares = seen_elsewhere(population, results), dict[str, dict[int, list[float]]]()
        for kind, nodes in population.elsewhere:
            of_seeds = [each.graph_accuracy for each in seen.get(name_of(kind, nodes), ())]
            if of_seeds and nodes <= self.largest:
                shares.setdefault(kind, {})[nodes] = [share or 0.0 for share in of_seeds]
        return shares


@dataclass(frozen=True)
class BreakingTable(TableOfRows):
    """Graphs of every kind and one size: agreement in each phase, and where runs go wrong."""

    nodes: int = 64

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Two rows a population, if there are two kinds; means over seeds."""
        head = ("", "graphs", "agreement by phase (%)", "never wrong (%)", "first wrong step",
                "of steps", "wrong then (%)", "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            found = seen_elsewhere(row.population, results)
            for kind in dict.fromkeys(kind for kind, _ in row.population.elsewhere):
                graphs = name_of(kind, self.nodes)
                known = [seen for seen in found.get(graphs, ()) if seen.by_phase]
                broken = [seen.breaking for seen in known if seen.breaking is not None]
                if not broken:
                    told = missing(row.population, results)
                    rows.append((row.label, graphs, told, *["-"] * 4, "0"))
                    data.append({"row": row.label, "graphs": graphs, "missing": told})
                    continue
                numbers = _broken(known, broken, mechanism_of(row))
                rows.append((row.label, graphs, *_broken_cells(numbers), str(len(known))))
                data.append({"row": row.label, "graphs": graphs, **numbers})
        return Rendered(name, self.caption, head, rows, self.remarks, data)


@dataclass(frozen=True)
class OwnStateTable(TableOfRows):
    """Agreement beside a mechanism's run, and beside what it would select from the network's own
    state, on other graphs than the test set."""

    graphs: tuple[tuple[str, int], ...] = ()

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each population and kind of graphs; means over seeds."""
        head = ("", "graphs", "output accuracy (%)", "its run (%)", "by phase (%)",
                "from its own state (%)", "by phase (%)", "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            found, mechanism = seen_elsewhere(row.population, results), mechanism_of(row)
            for graphs in (name_of(*each) for each in self.graphs):
                known = [s for s in found.get(graphs, ()) if mechanism in s.from_own_state]
                if not known:
                    told = missing(row.population, results, "looked at so")
                    rows.append((row.label, graphs, told, *["-"] * 4, "0"))
                    data.append({"row": row.label, "graphs": graphs, "missing": told})
                    continue
                run = [seen.mechanisms[mechanism].agreement for seen in known]
                own = [seen.from_own_state[mechanism] for seen in known]
                numbers = {
                    "accuracy": _mean([seen.accuracy for seen in known]),
                    "agreement": _mean(run),
                    "by_phase": _means([seen.by_phase[mechanism] for seen in known]),
                    "from_own_state": _mean([each.agreement for each in own]),
                    "from_own_state_by_phase": _means([each.by_phase for each in own]),
                }
                cells = (_percentages(value) for value in numbers.values())
                rows.append((row.label, graphs, *cells, str(len(known))))
                data.append({"row": row.label, "graphs": graphs, **numbers})
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def _mean(values: Sequence[float | None]) -> list[float]:
    return [mean(value or 0.0 for value in values)]


def _means(seeds: Sequence[Sequence[float]]) -> list[float]:
    return [mean(phase) for phase in zip(*seeds, strict=True)]


def _percentages(values: Sequence[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


def _broken(known: Sequence[SeenRun], broken: Sequence[Breaking], mechanism: str) -> dict[str, Any]:
    steps = [each.step for each in broken if not isnan(each.step)]
    shares = {hint: mean(each.hints[hint] for each in broken) for hint in broken[0].hints}
    return {
        "by_phase": _means([seen.by_phase[mechanism] for seen in known]),
        "unbroken": mean(each.unbroken for each in broken),
        "step": mean(steps) if steps else None,
        "steps": max(each.steps for each in broken),
        "hints": shares,
    }


def _broken_cells(numbers: Mapping[str, Any]) -> tuple[str, ...]:
    first = sorted(numbers["hints"].items(), key=lambda share: -share[1])
    step = numbers["step"]
    return (
        _percentages(numbers["by_phase"]),
        f"{100 * numbers['unbroken']:.1f}",
        "-" if step is None else f"{step:.0f}",
        str(numbers["steps"]),
        ", ".join(f"{hint} {100 * share:.0f}" for hint, share in first if share >= 0.1) or "-",
    )


def seen_elsewhere(population: Population, results: Path) -> Mapping[str, Sequence[SeenRun]]:
    """What the seeds of a population do on other graphs, by their name."""
    numbers = load_numbers(results, population.name)
    elsewhere = {} if numbers is None else numbers.elsewhere
    return {name: list(seeds.values()) for name, seeds in elsewhere.items()}


def mechanism_of(row: Row) -> str:
    """The mechanism that taught, or the task's first."""
    recipe = row.population.recipe
    return (recipe.mechanism or recipe.mechanisms[0]).name


def _shares(seen: Seen, mechanism: str) -> dict[str, float]:
    beside = seen.mechanisms.get(mechanism)
    return {
        "accuracy": seen.accuracy or 0.0,
        "graph_accuracy": seen.graph_accuracy or 0.0,
        "agreement": (beside.agreement if beside else None) or 0.0,
    }


def shares_text(seen: Sequence[Seen], mechanism: str, seeds: int) -> str:
    """Outputs / graphs that are right / agreement, in percent; of how many, if not of all seeds."""
    rows = [_shares(each, mechanism).values() for each in seen]
    columns = zip(*rows, strict=True)
    told = " / ".join(f"{100 * mean(column):.1f}" for column in columns) or "-"
    return told if len(seen) in (0, seeds) else f"{told} ({len(seen)})"
