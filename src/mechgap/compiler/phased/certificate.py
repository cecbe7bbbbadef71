"""What a compiled program with phases guarantees, and on which inputs.

On inputs inside, the attention of every phase is the interpreter's selection or default, up to
`attention_error`; flags are never off by more than their entry in `errors`, however long the run;
and a pointer that is remembered for at most `memory` phases means the right node.
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
    errors: Mapping[str, float]
    """How far each flag can be off."""
    memory: int
    """For how many phases a pointer may be remembered without being looked at."""

    @property
    def guarantees(self) -> list[tuple[str, str]]:
        """The numbers, for a reader."""
        domain, weights = self.domain, self.weights
        worst = max(self.errors, key=lambda name: self.errors[name])
        return [
            ("keep, follow", f"{weights.keep:.4g}, {weights.follow:.4g}"),
            ("mask, sharpness", f"{weights.mask:.4g}, {weights.sharpness:.4g}"),
            ("point", f"{weights.point:.4g}"),
            ("certified for", f"up to {domain.nodes} nodes, {domain.dtype}"),
            ("positions apart", f"at least {domain.position_gap:.4g}"),
            ("a pointer is remembered", f"for at most {self.memory} phases"),
            ("attention error", f"at most {self.attention_error:.2g}"),
            ("error of a flag", f"at most {self.errors[worst]:.2g} ({worst})"),
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
        return {
            f"more than {domain.nodes} nodes": np.full(samples, nodes > domain.nodes),
            "a position outside [0, 1]": ((positions < 0) | (positions > 1)).any(-1),
            f"positions closer than {domain.position_gap:.3g} or not increasing": np.asarray(
                apart < domain.position_gap - rounding
            ),
            "two nodes that point to the same one compete for it": (run.shared & counted).any(0),
            "a pointer is written that already has a value": (run.overwritten & counted).any(0),
            f"a pointer is remembered for more than {self.memory} phases": (
                (run.ages > self.memory) & counted
            ).any(0),
        }
