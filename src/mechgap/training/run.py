"""A run folder as it stands: its recipe, its seeds, and their networks."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechgap.display import html_table
from mechgap.network.network import Network
from mechgap.training.provenance import Provenance
from mechgap.training.recipe import Recipe
from mechgap.training.rows import SeedRow
from mechgap.training.store import Store


@dataclass(frozen=True)
class Scores:
    """Test scores of finished seeds, in percent; None where there are too few."""

    mean: float | None
    std: float | None
    max: float | None
    n: int

    @staticmethod
    def of(scores: Sequence[float | None]) -> "Scores":
        """Of shares; those that are not known are left out.

        >>> Scores.of([0.5, None, 0.7])
        Scores(mean=60.0, std=14.142135623730951, max=70.0, n=2)
        """
        known = [100 * score for score in scores if score is not None]
        return Scores(
            mean=statistics.fmean(known) if known else None,
            std=statistics.stdev(known) if len(known) > 1 else None,
            max=max(known, default=None),
            n=len(known),
        )


@dataclass(frozen=True)
class Run:
    """A run folder as it was when it was opened."""

    folder: Path
    recipe: Recipe
    seeds: tuple[SeedRow, ...]
    provenance: Provenance
    native: tuple[bool, ...]
    """Whether mechgap's own kernels computed it: both, if it was resumed on another machine."""

    @staticmethod
    def open(folder: Path | str) -> "Run":
        """Read a run. Raises `InvalidInput` where there is none, or it is damaged."""
        with Store.reading(Path(folder)) as store:
            about = store.about
            made = Provenance(about["versions"], about["commit"])
            native = tuple(about.get("native", ()))
            return Run(Path(folder), store.recipe, tuple(store.seeds()), made, native)

    @property
    def finished(self) -> tuple[SeedRow, ...]:
        """The seeds that reached their last step."""
        return tuple(row for row in self.seeds if row.state == "finished")

    @property
    def accuracy(self) -> Scores:
        """With the parameters of the best validation score."""
        return Scores.of([row.test_of_best for row in self.finished])

    @property
    def accuracy_last(self) -> Scores:
        """With the last parameters."""
        return Scores.of([row.test for row in self.finished])

    @property
    def diverged(self) -> dict[int, int]:
        """At which step seeds diverged."""
        return {row.seed: row.diverged_at for row in self.seeds if row.diverged_at is not None}

    def network(self, seed: int, which: str = "best") -> Network:
        """A seed's network: `best` (by validation) or `last`."""
        with Store.reading(self.folder) as store:
            return store.network(seed, which)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        states = [row.state for row in self.seeds]
        return {
            "folder": str(self.folder),
            "task": self.recipe.task,
            "recipe": self.recipe.data(),
            **vars(self.provenance),
            "native": list(self.native),
            "states": {state: states.count(state) for state in sorted(set(states))},
            "steps": {
                "done": sum(row.step for row in self.seeds),
                "all": self.recipe.train_steps * len(self.seeds),
            },
            "accuracy": vars(self.accuracy),
            "accuracy_last": vars(self.accuracy_last),
            "diverged": self.diverged,
            "seeds": [vars(row) for row in self.seeds],
        }

    def _repr_html_(self) -> str:
        columns = ("seed", "state", "step", "best_step", "best_validation", "test_of_best", "test")
        rows = [[getattr(row, column) for column in columns] for row in self.seeds]
        return html_table(columns, rows, f"{self.folder}: {self.recipe.task}")
