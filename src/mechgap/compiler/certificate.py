"""What a compiled network guarantees, and on which inputs.

Every bound is a worst case: γ_k = k·u / (1 - k·u) bounds the relative error of k roundings of size
u (half the spacing of the dtype), whatever the order of summation. On inputs inside the
certificate the attention of every step is the interpreter's selection: its weight is 1 up to
`attention_error`, flags are exact, and numbers are off by at most `value_error`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mechgap.compiler.affine import Affine
from mechgap.compiler.domain import Domain
from mechgap.compiler.gadgets import Unit
from mechgap.compiler.updates import HiddenUnit
from mechgap.programs.expressions import Name
from mechgap.programs.interpreter import Execution
from mechgap.programs.language import GraphProgram, Kind

Bounds = Callable[[Name], tuple[float, float]]


@dataclass(frozen=True)
class Certificate:
    """The guarantee of one compilation."""

    domain: Domain
    sharpness: float
    """c: what values are multiplied with in the logit."""
    mask_weight: float
    """M: what an eligible sender is lifted by."""
    largest_logit: float
    logit_rounding: float
    """How far rounding can move a logit."""
    attention_error: float
    """How much attention can go to anyone but the selected sender."""
    value_error: float
    """How far a Float component can be off after `domain.steps` steps."""
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


def gamma(roundings: int, unit: float) -> float:
    """The relative error of so many roundings."""
    return roundings * unit / (1 - roundings * unit)


def logit_rounding(units: Sequence[Unit], bounds: Bounds, diagonal: float, unit: float) -> float:
    """A bound on the rounding error of a logit: of each pre-activation, then of their sum."""
    error = 0.0
    for part in units:
        size = _size(part.zeta, bounds) + abs(diagonal)
        inner = gamma(len(part.zeta.terms) + 5, unit)
        outer = gamma(len(units) + 3, unit)
        error += abs(part.omega) * size * (inner + outer)
    return error


def value_error(
    program: GraphProgram, state: Sequence[HiddenUnit], bounds: Bounds, steps: int, unit: float
) -> float:
    """A bound on the error of any Float component after some steps: rounding adds up."""
    errors = [
        steps * gamma(len(hidden.before_relu.terms) + 5, unit) * _size(hidden.before_relu, bounds)
        for hidden in state
        if program.components[hidden.component].kind is Kind.FLOAT
    ]
    return max(errors, default=0.0)


def _size(form: Affine, bounds: Bounds) -> float:
    """The sum of the absolute values that are added up."""
    parts = (abs(value) * max(map(abs, bounds(name))) for name, value in form.terms.items())
    return abs(form.constant) + sum(parts)
