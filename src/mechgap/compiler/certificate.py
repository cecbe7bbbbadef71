"""What a compiled network guarantees, and on which inputs.

Every bound is a worst case over the order in which numbers are added (see `rounding`). On inputs
inside the certificate the attention of every step is the interpreter's selection: its weight is 1
up to `attention_error`, and each component is off by at most its entry in `errors`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

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
    errors: Mapping[str, float]
    """How far each component can be off after `domain.steps` steps."""
    value_gap: float
    """Selections between values at least this far apart are correct."""

    def covers(
        self, program: GraphProgram, inputs: Mapping[str, np.ndarray], run: Execution
    ) -> Bool[np.ndarray, "batch"]:
        """Which samples lie inside, given the interpreter's run on them."""
        positions = np.asarray(inputs["pos"], float)
        samples, nodes = positions.shape
        inside = np.full(samples, nodes <= self.domain.nodes)
        inside &= len(run.senders) <= self.domain.steps
        if nodes > 1:
            # Positions are float32; a gap that rounding made smaller is still that gap.
            rounding = 4 * np.finfo(np.float32).eps
            inside &= np.diff(positions, axis=-1).min(-1) >= self.domain.position_gap - rounding
        if len(run.gaps):
            inside &= run.gaps.min(0) >= self.value_gap - 4 * np.finfo(np.float32).eps
        for component in program.hidden:
            if component.kind is Kind.FLOAT:
                inside &= run.states[component.name].max((0, 2)) <= self.domain.largest_value
        for theirs in program.inputs.values():
            if np.ndim(inputs[theirs]) == 3:
                inside &= np.asarray(inputs[theirs]).max((1, 2)) <= self.domain.largest_weight
        return inside
