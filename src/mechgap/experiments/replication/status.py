"""What is done, running or missing, and what it would cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.kinds import Table
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.training.store import DATABASE, Store, is_worked_on


@dataclass(frozen=True)
class PopulationStatus:
    """How one population stands."""

    population: Population
    finished: int
    """Seeds whose numbers are known, in `results/` or in the run."""
    wanted: int
    to_train: tuple[int, ...]
    """The wanted seeds but for those whose numbers are all that is left of them."""
    share: float
    """Of the wanted seeds' steps, how much is done."""
    running: bool
    rate: float
    """Seed-steps per second: this machine's if it has trained this before."""

    @property
    def state(self) -> str:
        """done, running, partly or missing."""
        if self.running:
            return "running"
        if self.finished >= self.wanted:
            return "done"
        return "partly" if self.finished or self.share else "missing"

    @property
    def seconds(self) -> float:
        """What is left to do."""
        return (1 - self.share) * self.population.seconds(self.wanted, self.rate)

    def data(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "population": self.population.name,
            "state": self.state,
            "seeds": {"finished": self.finished, "wanted": self.wanted},
            "steps": self.population.recipe.train_steps,
            "estimated_seconds": self.seconds,
        }


def status_of(
    population: Population, seeds: int | None, runs: Path, results: Path
) -> PopulationStatus:
    """How far a population is, by what is in both folders."""
    wanted = population.seeds if seeds is None else seeds
    folder, steps = runs / population.name, population.recipe.train_steps
    numbers = load_numbers(results, population.name)
    kept = set() if numbers is None else {*numbers.seed}
    diverged = set() if numbers is None else {*map(int, numbers.diverged)}
    rows, rate = [], None
    if (folder / DATABASE).exists():
        with Store.reading(folder) as store:
            rows, rate = store.seeds(), store.rate
    done = dict.fromkeys(kept, steps)
    done |= {row.seed: row.step for row in rows if row.seed not in done}
    finished = kept | {*(row.seed for row in rows if row.state == "finished")}
    gone = (kept | diverged) - {row.seed for row in rows}
    share = sum(done.get(seed, 0) for seed in range(wanted)) / (wanted * steps)
    return PopulationStatus(
        population,
        len(finished),
        wanted,
        tuple(seed for seed in range(wanted) if seed not in gone),
        1.0 if len(finished) >= wanted else share,
        is_worked_on(folder),
        rate or population.rate,
    )


def table_state(states: Iterable[str]) -> str:
    """The state of what needs several populations."""
    found = set(states)
    if not found:  # it needs none
        return "done"
    if "running" in found:
        return "running"
    if len(found) == 1:
        return found.pop()
    return "partly"


def statuses(
    table: Table, seeds: int | None, runs: Path, results: Path
) -> dict[str, PopulationStatus]:
    """Every population of a table, by name."""
    return {p.name: status_of(p, seeds, runs, results) for p in table.populations}
