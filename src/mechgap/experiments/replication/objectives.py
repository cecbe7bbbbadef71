"""Tables of populations by accuracy and gaps: does the gap close?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path

from mechgap.experiments.replication.comparison import LEVEL, Spread, holm, permutation_p
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Row, TableOfRows, measures_of, missing
from mechgap.experiments.replication.numbers import KeptGap, KeptNetwork
from mechgap.experiments.replication.parts import made_of, mean_parts
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.replication.sizes import mechanism_of, seen_elsewhere, shares_text
from mechgap.experiments.replication.snapshots import kept_snapshots
from mechgap.measures.elsewhere import name_of
from mechgap.measures.internal import Parts
from mechgap.measures.snapshot import MechanismSeen, Seen, SeenRun, Snapshot
from mechgap.report.measures import BASELINES, known

COLUMNS = {
    "accuracy": "accuracy (%)",
    "graph_accuracy": "graph accuracy (%)",
    "deep": "accuracy, sparse (%)",
    "deep_graphs": "graph accuracy, sparse (%)",
    "external": "hint accuracy (%)",
    "agreement": "top-1 agreement (%)",
    "misplaced": "misplaced attention there (%)",
    "hardened": "accuracy, hardened (%)",
    "tv": "tv, all nodes (%)",
}


_OF_GAP = ("agreement", "misplaced", "tv")


@dataclass(frozen=True)
class _Network:
    """One network beside one mechanism: its columns, and what its gap is made of where that is
    known."""

    columns: Mapping[str, float]
    """NaN where it was not measured."""
    parts: Parts

    @staticmethod
    def measured(row: KeptNetwork, mechanism: str | None) -> "_Network":
        """By the measures of a finished run."""
        gap = row.gaps.get(mechanism or "")
        hardened = row.causal.tempered["hardened"] if row.causal else None
        found = (row.accuracy, row.graph_accuracy, row.external, hardened)
        return _Network._of(found, row.deep, gap)

    @staticmethod
    def seen(snapshot: Snapshot, mechanism: str | None) -> "_Network":
        """By what was seen of it in training, which are the same numbers."""
        test = snapshot.test
        gap = test.mechanisms.get(mechanism or "")
        found = (test.accuracy, test.graph_accuracy, test.hints, snapshot.hardened)
        return _Network._of(found, snapshot.deep, gap)

    @staticmethod
    def _of(
        found: tuple[float | None, ...], deep: Seen | None, gap: KeptGap | MechanismSeen | None
    ) -> "_Network":
        named = zip(("accuracy", "graph_accuracy", "external", "hardened"), found, strict=True)
        columns = {
            **dict(named),
            "deep": deep and deep.accuracy,
            "deep_graphs": deep and deep.graph_accuracy,
            **{key: getattr(gap, key, None) for key in _OF_GAP},
        }
        parts = {} if gap is None else {rows: _numbers(each) for rows, each in gap.parts.items()}
        return _Network(_numbers(columns), parts)


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    """NaN where there is no number."""
    return {name: float("nan") if value is None else value for name, value in values.items()}


@dataclass(frozen=True)
class ObjectivesTable(TableOfRows):
    """Does the gap close? Populations by accuracy, internal and external gap."""

    baselines: bool = False
    """Whether each task's rows are followed by what they are to be held against."""
    elsewhere: tuple[tuple[str, int], ...] = ()
    """Kinds and sizes of other graphs, whose columns stand beside."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Each population's measures, and whether they differ from those of its task's first."""
        networks = [_networks(row.population, results) for row in self.rows]
        columns = [_columns(each) for each in networks]
        tasks = [row.population.task for row in self.rows]
        firsts = [columns[tasks.index(task)] for task in tasks]
        chances = holm(
            {
                f"{k} {c}": permutation_p(found[c], first[c])
                for k, (found, first) in enumerate(zip(columns, firsts, strict=True))
                for c in COLUMNS
                if found is not first and found.get(c) and first.get(c)
            }
        )
        rows, data = [], []
        for k, (row, found) in enumerate(zip(self.rows, columns, strict=True)):
            cells = [_text(found.get(c), chances.get(f"{k} {c}")) for c in COLUMNS]
            if not found:
                cells[0] = missing(row.population, results)
            seeds = max((len(v) for v in found.values()), default=0)
            larger = self._elsewhere(row, results)
            cells += [shares_text(seen, mechanism_of(row), seeds) for seen in larger.values()]
            parts = [each.parts for each in networks[k] if each.parts]
            steps = f"{row.population.recipe.train_steps:,}"
            rows.append((row.label, *cells, made_of(parts), str(seeds), steps))
            spreads = {c: asdict(Spread.of(v)) for c, v in found.items() if v}
            about = {"row": row.label, "population": row.population.name}
            seen = {name: [asdict(each) for each in of] for name, of in larger.items()}
            data.append({**about, **spreads, **seen, "parts": mean_parts(parts) if parts else None})
            if self.baselines and tasks[k] not in tasks[k + 1 :]:
                held = [r for r in self.rows if r.population.task == tasks[k]]
                rows += self._baseline_rows(held, results)
        star = (
            "* differs from the task's first row (permutations of seeds, at 5 % after Holm's "
            "correction for this table)."
        )
        others = [f"{kind}, {nodes} nodes (%)" for kind, nodes in self.elsewhere]
        head = ("", *COLUMNS.values(), *others, "made of", "seeds", "steps")
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(name, self.caption, head, rows, [star, *remarks, *self.remarks], data)

    def _elsewhere(self, row: Row, results: Path) -> dict[str, Sequence[SeenRun]]:
        seen = seen_elsewhere(row.population, results)
        return {name_of(*graphs): seen.get(name_of(*graphs), ()) for graphs in self.elsewhere}

    def _baseline_rows(self, rows: Sequence[Row], results: Path) -> list[tuple[str, ...]]:
        """What the first measured of some populations is to be held against."""
        measured = [m for row in rows if (m := measures_of(results, row.population)) is not None]
        task = rows[0].population.task
        found = []
        for name, baseline in (measured[0].baselines if measured else {}).items():
            network = _Network.measured(baseline, measured[0].reference)
            values = [network.columns[c] for c in COLUMNS]
            cells = ["-" if isnan(value) else f"{100 * value:.2f}" for value in values]
            label = f"{task}, {BASELINES[name]}"
            cells += ["-"] * len(self.elsewhere)
            found.append(
                (label, *cells, made_of([network.parts] if network.parts else []), "-", "-")
            )
        return found


def _networks(population: Population, results: Path) -> list[_Network]:
    """A population's networks, beside the program that taught them or the one that compiles."""
    measures = measures_of(results, population)
    teacher = population.recipe.mechanism
    beside = (teacher or population.recipe.mechanisms[0]).name
    looked_at = [s for s in kept_snapshots(results, population.name) if s.which == "best"]
    found = {each.seed: _Network.seen(each, beside) for each in looked_at}
    if measures is not None:
        beside = teacher.name if teacher else measures.reference
        found |= {row.seed: _Network.measured(row, beside) for row in measures.seeds}
    return list(found.values())


def _columns(networks: Sequence[_Network]) -> dict[str, list[float]]:
    """Every measure of the networks that have it, in percent."""
    if not networks:
        return {}
    return {c: [100 * v for v in known([n.columns[c] for n in networks])] for c in COLUMNS}


def _text(values: Sequence[float] | None, chance: float | None) -> str:
    if not values:
        return "-"
    spread = Spread.of(values)
    deviation = "" if spread.std is None else f" ± {spread.std:.2f}"
    return f"{spread.mean:.2f}{deviation}{' *' if chance is not None and chance < LEVEL else ''}"
