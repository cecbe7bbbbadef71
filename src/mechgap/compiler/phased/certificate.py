"""What a compiled program with phases guarantees, and on which inputs.

On inputs inside, the attention of every phase is the interpreter's selection or default, up to
`attention_error`; flags are never off by more than their entry in `flag_errors`, however long the
run; and a pointer that is remembered for at most `memory` phases means the right node.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from mechgap.compiler.domain import Domain
from mechgap.compiler.phased.logits import Weights
from mechgap.programs.phased_interpreter import PhasedExecution
from mechgap.programs.phases import PhasedProgram


@dataclass(frozen=True)
class PhasedCertificate:
    """The guarantee of one compilation."""

    domain: Domain
    weights: Weights
    logit_error: float
    """How far a logit can be off."""
    attention_error: float
    """How much attention can go to anyone but the selected sender."""
    flag_errors: Mapping[str, float]
    """How far each flag can be off, however long the run."""
    memory: int
    """For how many phases a pointer may be remembered without being looked at."""
    total_each_step: Mapping[str, float]
    """How much further off a total can be after one more hint step."""

    def errors(self, steps: int) -> dict[str, float]:
        """How far each total can be off after so many hint steps."""
        return {name: steps * error for name, error in self.total_each_step.items()}

    @property
    def guarantees(self) -> list[tuple[str, str]]:
        """The numbers, for a reader."""
        domain, weights = self.domain, self.weights
        worst = max(self.flag_errors, key=lambda name: self.flag_errors[name])
        totals = self.errors(domain.steps)
        return [
            ("keep, follow", f"{weights.keep:.4g}, {weights.follow:.4g}"),
            ("mask, sharpness", f"{weights.mask:.4g}, {weights.sharpness:.4g}"),
            ("point", f"{weights.point:.4g}"),
            (
                "certified for",
                f"up to {domain.nodes} nodes and {domain.steps} steps, {domain.dtype}",
            ),
            ("positions apart", f"at least {domain.position_gap:.4g}"),
            ("a pointer is remembered", f"for at most {self.memory} phases"),
            ("attention error", f"at most {self.attention_error:.2g}"),
            ("error of a flag", f"at most {self.flag_errors[worst]:.2g} ({worst})"),
            *((f"error of {name}", f"at most {error:.2g}") for name, error in totals.items()),
        ]

    def outside(
        self,
        program: PhasedProgram,
        inputs: Mapping[str, np.ndarray],
        run: PhasedExecution,
        lengths: Int[np.ndarray, "batch"],
    ) -> dict[str, Bool[np.ndarray, "batch"]]:
        """Which samples lie outside, by reason, given the interpreter's run on them."""
        domain = self.domain
        rounding = 4 * np.finfo(np.float32).eps  # inputs are float32
        positions = np.asarray(inputs["pos"], float)
        samples, nodes = positions.shape
        apart = np.diff(positions, axis=-1).min(-1, initial=np.inf)
        live = len(program.phases) * np.maximum(1, lengths - 1)
        counted = np.arange(len(run.senders))[:, None] < live
        reasons = {
            f"more than {domain.nodes} nodes": np.full(samples, nodes > domain.nodes),
            f"more than {domain.steps} steps": lengths - 1 > domain.steps,
            "a position outside [0, 1]": ((positions < 0) | (positions > 1)).any(-1),
            f"positions closer than {domain.position_gap:.3g} or not increasing": (
                apart < domain.position_gap - rounding
            ),
            "two nodes that point to the same one compete for it": (run.shared & counted).any(0),
            "a pointer is written that already has a value": (run.overwritten & counted).any(0),
            f"a pointer is remembered for more than {self.memory} phases": (
                (run.ages > self.memory) & counted
            ).any(0),
        }
        return {why: np.asarray(where) for why, where in reasons.items()}
