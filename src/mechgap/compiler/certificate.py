"""What a compiled network guarantees, and on which inputs.

Every bound is a worst case over the order in which numbers are added (see `noise`). On inputs
inside, the attention of every phase is the interpreter's selection or default, up to
`attention_error`; flags are never off by more than their entry in `flag_errors`, however long the
run, and pointers mean the right nodes. Values that compete are told apart if they differ by what
the phase's race needs, the more the longer the chains of numbers are that were made of each other
(`hops`), and the larger these numbers (`carried`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.compiler.constants import Race
from mechgap.compiler.domain import Domain
from mechgap.compiler.errors import Growth
from mechgap.compiler.logits import Weights
from mechgap.programs.components import Kind
from mechgap.programs.program import Program
from mechgap.tasks.specs import Location, Type, get_task


@runtime_checkable
class Ran(Protocol):
    """What a program's run tells: see `Execution`. Time is steps times phases."""

    @property
    def states(self) -> Mapping[str, Float[np.ndarray, "steps batch nodes"]]: ...
    @property
    def gaps(self) -> Float[np.ndarray, "time batch"]: ...
    @property
    def shared(self) -> Bool[np.ndarray, "time batch"]: ...
    @property
    def widened(self) -> Bool[np.ndarray, "time batch"]: ...
    @property
    def hops(self) -> Int[np.ndarray, "batch"]: ...
    @property
    def carried(self) -> Float[np.ndarray, "batch"]: ...


@dataclass(frozen=True)
class Certificate:
    """The guarantee of one compilation."""

    domain: Domain
    weights: Weights
    logit_error: float
    """How far a logit can be off."""
    attention_error: float
    """How much attention can go to anyone but the selected sender."""
    flag_errors: Mapping[str, float]
    """How far each flag can be off, however long the run."""
    total_each_step: Mapping[str, float]
    """How much further off a total can be after one more hint step."""
    numbers: Mapping[str, Growth]
    """How much further off a number can be than those that it is made of."""
    races: tuple[Race, ...]
    """How far apart competing values must be, by phase."""

    def errors(self, steps: int) -> dict[str, float]:
        """How far each total and each number can be off after so many hint steps."""
        totals = {name: steps * error for name, error in self.total_each_step.items()}
        return {**totals, **{name: growth.worst(steps) for name, growth in self.numbers.items()}}

    def value_gap(self, hops: int) -> float:
        """Values at least this far apart are told apart, with so many made of each other.

        Each of these is taken to be as large as the domain allows; a graph's own are smaller.
        """
        largest = max((growth.largest for growth in self.numbers.values()), default=0.0)
        return max(race.needs(hops, hops * largest) for race in self.races)

    @property
    def guarantees(self) -> list[tuple[str, str]]:
        """The numbers, for a reader."""
        domain, weights = self.domain, self.weights
        worst = sorted(self.flag_errors.items(), key=lambda item: item[1])[-1:]
        totals = self.errors(domain.steps)
        races = []
        if self.value_gap(0):
            races = [
                (
                    "competing values apart",
                    f"at least {self.value_gap(1):.2g} for 1 hop, {self.value_gap(8):.2g} for 8",
                )
            ]
        return [
            ("keep, follow", f"{weights.keep:.4g}, {weights.follow:.4g}"),
            ("mask", ", ".join(f"{mask:.4g}" for mask in weights.mask)),
            ("sharpness", ", ".join(f"{sharp:.4g}" for sharp in weights.sharpness)),
            ("point", f"{weights.point:.4g}"),
            (
                "certified for",
                f"up to {domain.nodes} nodes and {domain.steps} steps, {domain.dtype}",
            ),
            ("positions apart", f"at least {domain.position_gap:.4g}"),
            *races,
            ("attention error", f"at most {self.attention_error:.2g}"),
            *(("error of a flag or pointer", f"at most {off:.2g} ({name})") for name, off in worst),
            *((f"error of {name}", f"at most {error:.2g}") for name, error in totals.items()),
        ]

    def closest(
        self, run: Ran, lengths: Int[np.ndarray, "batch"]
    ) -> list[tuple[Float[np.ndarray, "batch"], Float[np.ndarray, "batch"]]]:
        """For every phase how close competing values came, and how far apart they must be."""
        gaps = np.where(self._counted(run, lengths), run.gaps, np.inf)
        phases = len(self.races)
        return [
            (gaps[phase::phases].min(0, initial=np.inf), race.needs(run.hops, run.carried))
            for phase, race in enumerate(self.races)
        ]

    def _counted(self, run: Ran, lengths: np.ndarray) -> Bool[np.ndarray, "time batch"]:
        """Which selections are before a sample's end."""
        live = len(self.races) * np.maximum(1, lengths - 1)
        return np.arange(len(run.gaps))[:, None] < live

    def outside(
        self,
        program: Program,
        inputs: Mapping[str, np.ndarray],
        run: Ran,
        lengths: Int[np.ndarray, "batch"],
    ) -> dict[str, Bool[np.ndarray, "batch"]]:
        """Which samples lie outside, by reason, given the interpreter's run on them."""
        domain = self.domain
        rounding = 4 * np.finfo(np.float32).eps  # inputs are float32
        positions = np.asarray(inputs["pos"], float)
        samples, nodes = positions.shape
        apart = np.diff(positions, axis=-1).min(-1, initial=np.inf)
        counted = self._counted(run, lengths)
        reasons = {
            f"more than {domain.nodes} nodes": np.full(samples, nodes > domain.nodes),
            f"more than {domain.steps} steps": lengths - 1 > domain.steps,
            "a position outside [0, 1]": ((positions < 0) | (positions > 1)).any(-1),
            f"positions closer than {domain.position_gap:.3g} or not increasing": (
                apart < domain.position_gap - rounding
            ),
            f"a position that is no multiple of {domain.position_grid}": (
                (positions % (domain.position_grid or 1.0) != 0).any(-1)
                if domain.position_grid is not None
                else np.zeros(samples, bool)
            ),
            "two nodes that point to the same one compete for it": (run.shared & counted).any(0),
            "a pointer that is fed back lets a node select beyond its neighbours": (
                run.widened & counted
            ).any(0),
        }
        if self.value_gap(0):
            close = [apart < needs for apart, needs in self.closest(run, lengths)]
            reasons["competing values closer than certified"] = np.any(close, axis=0)
        for component in program.hidden:
            if component.kind is Kind.FLOAT:
                values = run.states[component.name]
                reasons[f"'{component.name}' below 0 or above {domain.largest_value:.3g}"] = (
                    (values < 0) | (values > domain.largest_value)
                ).any((0, 2))
        scalars = {f.name for f in get_task(program.task).inputs
                   if f.location is Location.EDGE and f.type is Type.SCALAR}  # fmt: skip
        for ours, theirs in program.inputs.items():
            if theirs in scalars:
                weights = np.asarray(inputs[theirs])  # of all pairs, or of a list's
                reasons[f"'{ours}' below 0 or above {domain.largest_weight:.4g}"] = (
                    ((weights < 0) | (weights > domain.largest_weight)).reshape(samples, -1).any(-1)
                )
        return {why: np.asarray(where) for why, where in reasons.items()}
