"""Populations that tables need. They are shared: the default BFS population serves five tables."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from mechgap.measures.snapshot import STEPS
from mechgap.training.presets import PRESETS, make_recipe
from mechgap.training.recipe import Recipe

LARGER = (("er", 160), ("er-sparse", 160))
"""Graphs that are ten times as large as the largest that most networks are trained on."""


@dataclass(frozen=True)
class Population:
    """Networks trained by one recipe."""

    task: str
    preset: str = "default"
    seeds: int = 8
    """As many as are trained if nobody says otherwise: what two cores can do."""
    overrides: Mapping[str, Any] = field(default_factory=dict, hash=False)
    suffix: str = ""
    """Tells it from others of the same task and preset."""
    snapshots: tuple[int, ...] = STEPS
    """Steps to look at on the way; the last is always looked at."""
    elsewhere: tuple[tuple[str, int], ...] = ()
    """Kinds and sizes of other graphs that its networks are looked at on."""
    in_full: bool = True
    """Whether its networks are measured in full when they are finished. If not, what is seen at
    the best validation score is kept; on long traces the rest takes longer than training."""

    def __post_init__(self):
        assert self.preset in PRESETS
        object.__setattr__(self, "overrides", MappingProxyType(dict(self.overrides)))

    @property
    def name(self) -> str:
        """Its folder among the runs, and its file in `results/`."""
        parts = [self.task, "" if self.preset == "default" else self.preset, self.suffix]
        return "_".join(part for part in parts if part)

    @cached_property
    def recipe(self) -> Recipe:
        """How it is trained."""
        return make_recipe(self.task, self.preset, overrides=self.overrides)

    @property
    def full_recipe(self) -> Recipe:
        """The recipe with as many steps as its preset has."""
        others = {name: v for name, v in self.overrides.items() if name != "train_steps"}
        return make_recipe(self.task, self.preset, overrides=others)

    def shortened(self, steps: int) -> "Population":
        """The same with fewer steps, under a name of its own."""
        if steps == self.recipe.train_steps:
            return self
        return replace(
            self,
            overrides={**self.overrides, "train_steps": steps},
            suffix="_".join(part for part in (self.suffix, f"{steps}_steps") if part),
        )

    @property
    def unshortened_name(self) -> str:
        """Its name without a number of steps: what its speed is kept by."""
        return self.name.removesuffix(f"_{self.recipe.train_steps}_steps")

    @property
    def rate(self) -> float:
        """Seed-steps per second on the machine of `benchmarks/rates.py`: two cores.

        What was not measured there is taken to be as fast as its task's preset, else as its task's
        default, message-passing step by step; a task of which nothing was measured, as dfs.
        """
        rates = _rates()
        task = self.task if self.task in rates else "dfs"
        usual = rates[task] / self.recipe.nb_msg_passing_steps
        of_preset = rates.get(f"{task}_{self.preset}", usual)
        return rates.get(self.unshortened_name, of_preset)

    def seconds(self, seeds: int, rate: float | None = None) -> float:
        """How long so many seeds take."""
        return seeds * self.recipe.train_steps / (rate or self.rate)


@cache
def _rates() -> Mapping[str, float]:
    return json.loads((files("mechgap.experiments.replication") / "rates.json").read_text())
