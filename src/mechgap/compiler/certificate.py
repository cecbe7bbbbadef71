"""What a compiled network guarantees, and on which inputs.

Every bound is a worst case over the order in which numbers are added (see `rounding`). On inputs
inside the certificate the attention of every step is the interpreter's selection: its weight is 1
up to `attention_error`, and each component is off by at most its entry in `errors(steps)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from mechgap.compiler.domain import Domain
from mechgap.programs.components import Kind
from mechgap.programs.interpreter import Execution
from mechgap.programs.program import Program


@dataclass(frozen=True)
class Certificate:
    """The guarantee of one compilation."""

    domain: Domain
    sharpness: float
    """c: what values are multiplied with in the logit."""
    mask_weight: float
    """M: what an eligible sender is lifted by."""
    largest_logit: float
    logit_error: float
    """How far a logit can be off."""
    attention_error: float
    """How much attention can go to anyone but the selected sender."""
    errors_each_step: Mapping[str, float]
    """How much further off each component can be after one more step."""
    value_gap_at_start: float
    value_gap_each_step: float

    def value_gap(self, steps: Any) -> Any:
        """Selections between values at least this far apart are correct for so many steps."""
        return self.value_gap_at_start + steps * self.value_gap_each_step

    def errors(self, steps: int) -> dict[str, float]:
        """How far each component can be off after so many steps."""
        return {name: steps * error for name, error in self.errors_each_step.items()}

    @property
    def guarantees(self) -> list[tuple[str, str]]:
        """The numbers, for a reader."""
        domain, errors = self.domain, self.errors(self.domain.steps)
        return [
            ("sharpness c", f"{self.sharpness:.4g}"),
            ("mask weight M", f"{self.mask_weight:.4g}"),
            (
                "certified for",
                f"up to {domain.nodes} nodes and {domain.steps} steps, {domain.dtype}",
            ),
            ("positions apart", f"at least {domain.position_gap:.4g}"),
            (
                "competing values apart",
                f"at least {self.value_gap(1):.2g} for 1 step, "
                f"{self.value_gap(domain.steps):.2g} for {domain.steps}",
            ),
            ("attention error", f"at most {self.attention_error:.2g}"),
            *((f"error of {name}", f"at most {error:.2g}") for name, error in errors.items()),
        ]

    def outside(
        self,
        program: Program,
        inputs: Mapping[str, np.ndarray],
        run: Execution,
        lengths: Int[np.ndarray, "batch"],
    ) -> dict[str, Bool[np.ndarray, "batch"]]:
        """Which samples lie outside, by reason, given the interpreter's run on them."""
        domain = self.domain
        # Inputs are float32; a gap that their rounding made smaller is still that gap.
        rounding = 4 * np.finfo(np.float32).eps
        positions = np.asarray(inputs["pos"], float)
        samples, nodes = positions.shape
        steps = np.maximum(1, lengths - 1)
        counted = np.arange(len(run.gaps))[:, None] < steps
        closest = np.where(counted, run.gaps, np.inf).min(0, initial=np.inf)
        apart = np.diff(positions, axis=-1).min(-1, initial=np.inf)
        reasons = {
            f"more than {domain.nodes} nodes": np.full(samples, nodes > domain.nodes),
            f"more than {domain.steps} steps": lengths - 1 > domain.steps,
            "a position outside [0, 1]": ((positions < 0) | (positions > 1)).any(-1),
            f"positions closer than {domain.position_gap:.3g} or not increasing": apart
            < domain.position_gap - rounding,
            "competing values closer than certified": closest < self.value_gap(steps) - rounding,
            "a pointer that is fed back lets a node select beyond its neighbours": (
                run.widened & counted
            ).any(0),
        }
        for component in program.hidden:
            if component.kind is Kind.FLOAT:
                values = run.states[component.name]
                reasons[f"'{component.name}' below 0 or above {domain.largest_value:.3g}"] = (
                    (values < 0) | (values > domain.largest_value)
                ).any((0, 2))
        for ours, theirs in program.inputs.items():
            if np.ndim(inputs[theirs]) == 3:
                weights = np.asarray(inputs[theirs])
                reasons[f"'{ours}' below 0 or above {domain.largest_weight:.4g}"] = (
                    (weights < 0) | (weights > domain.largest_weight)
                ).any((1, 2))
        return reasons
