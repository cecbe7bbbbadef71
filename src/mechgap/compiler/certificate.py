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
from mechgap.programs.interpreter import Execution
from mechgap.programs.language import GraphProgram, Kind


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

    def covers(
        self,
        program: GraphProgram,
        inputs: Mapping[str, np.ndarray],
        run: Execution,
        lengths: Int[np.ndarray, "batch"],
    ) -> Bool[np.ndarray, "batch"]:
        """Which samples lie inside, given the interpreter's run on them and their lengths."""
        positions = np.asarray(inputs["pos"], float)
        samples, nodes = positions.shape
        inside = np.full(samples, nodes <= self.domain.nodes)
        inside &= lengths - 1 <= self.domain.steps
        if nodes > 1:
            # Positions are float32; a gap that rounding made smaller is still that gap.
            rounding = 4 * np.finfo(np.float32).eps
            inside &= np.diff(positions, axis=-1).min(-1) >= self.domain.position_gap - rounding
        if len(run.gaps):
            steps = np.maximum(1, lengths - 1)
            counted = np.arange(len(run.gaps))[:, None] < steps
            closest = np.where(counted, run.gaps, np.inf).min(0)
            inside &= closest >= self.value_gap(steps) - 4 * np.finfo(np.float32).eps
        for component in program.hidden:
            if component.kind is Kind.FLOAT:
                inside &= run.states[component.name].max((0, 2)) <= self.domain.largest_value
        for theirs in program.inputs.values():
            if np.ndim(inputs[theirs]) == 3:
                inside &= np.asarray(inputs[theirs]).max((1, 2)) <= self.domain.largest_weight
        return inside
