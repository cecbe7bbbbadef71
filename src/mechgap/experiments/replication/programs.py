"""What populations run: their programs, and what they answer when they are made to attend so.

`results/decompiled/POPULATION.json` has what was found about every seed that was decompiled.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from statistics import mean
from typing import ClassVar

from mechgap.decompiler.explanation import Explanation
from mechgap.decompiler.graphs import HELD_OUT, TEST
from mechgap.decompiler.population import DecompiledRun, decompile_run
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Study, TableOfRows, finished_run, missing
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.training.train import OnProgress

COLUMNS = {
    "agreement": "agrees (%)",
    "from_own_state": "from own state (%)",
    "small": "16 nodes: agrees (%)",
    "small_from_own_state": "from own state (%)",
    "soft_explains": "soft form explains (%)",
    "own": "own (%)",
    "hardened": "hardened (%)",
    "rule": "rule (%)",
    "soft": "soft form (%)",
    "uniform": "uniform (%)",
    "answers": "the program alone (%)",
}


def _path(results: Path, population: Population) -> Path:
    return results / "decompiled" / f"{population.name}.json"


def kept_programs(results: Path, population: Population) -> DecompiledRun | None:
    """What was found about a population; None where nothing was."""
    return DecompiledRun.read(_path(results, population), "Remove it and run again")


def keep_programs(
    population: Population, runs: Path, results: Path, on_progress: OnProgress
) -> None:
    """Decompile the finished networks of a run, and join what was found to what is kept."""
    run = finished_run(population, runs)
    if run is None:
        return
    found = decompile_run(run, on_progress=on_progress)
    kept = kept_programs(results, population)
    (found if kept is None else kept.with_seeds(found.seeds)).write(_path(results, population))


PROGRAMS = Study(
    keep_programs, lambda population, results: kept_programs(results, population) is not None
)


@dataclass(frozen=True)
class ProgramsTable(TableOfRows):
    """Which programs the seeds of populations run, by the decompiler's verdicts."""

    study: ClassVar[Study | None] = PROGRAMS

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each verdict of a population, with the means of its seeds."""
        head = ("", "verdict", "seeds", *COLUMNS.values(), "does not use")
        rows, data = [], []
        for row in self.rows:
            run = kept_programs(results, row.population)
            if run is None:
                why = missing(row.population, results, "decompiled")
                rows.append((row.label, why, "0", *["-"] * (len(COLUMNS) + 1)))
                about = {"row": row.label, "population": row.population.name}
                data.append({**about, "missing": why})
                continue
            for verdict in run.programs:
                found = [e for e in run.seeds.values() if e.in_short == verdict]
                numbers = {
                    column: _mean([_numbers(e)[column] for e in found]) for column in COLUMNS
                }
                cells = ["-" if isnan(v) else f"{100 * v:.1f}" for v in numbers.values()]
                seeds = f"{len(found)} of {len(run.seeds)}"
                rows.append((row.label, verdict, seeds, *cells, _idle(found)))
                about = {"row": row.label, "population": row.population.name, "verdict": verdict}
                data.append({**about, "seeds": len(found), **numbers})
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def _numbers(found: Explanation) -> dict[str, float]:
    """Of the test graphs, if not of the small ones; of several message-passing steps, the worst."""
    test = found.forced[TEST]
    return {
        "agreement": found.told(TEST),
        "from_own_state": found.told(TEST, own=True),
        "small": found.told(HELD_OUT),
        "small_from_own_state": found.told(HELD_OUT, own=True),
        "soft_explains": min(phase.soft_explains[TEST] for phase in found.phases),
        **{under: getattr(test, under) for under in ("own", "hardened", "rule", "soft", "uniform")},
        "answers": found.answers.get(TEST, float("nan")),
    }


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not isnan(value)]
    return mean(known) if known else float("nan")


def _idle(found: Sequence[Explanation]) -> str:
    """The parts of their programs that networks do not use, and how many do not."""
    parts = Counter(
        f"{p.part} of phase {p.phase}" if len(e.phases) > 1 else p.part
        for e in found
        for p in e.parts
        if p.verdict == "idle"
    )
    return ", ".join(f"{part} ({count})" for part, count in parts.most_common()) or "-"
