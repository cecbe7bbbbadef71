"""The inputs that a compilation is made for.

Attention selects by softmax and numbers have finite precision, so no network is exact on all
inputs. The compiler derives its constants from this declared domain and guarantees exactness on
it (see `certificate`); `verify` and `run` tell which inputs lie outside.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechgap.compiler.affine import Affine, NotAffine, affine
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.expressions import Name, Side, Where
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.specs import Type, get_task


@dataclass(frozen=True)
class Domain:
    """What may be given to a compiled network."""

    nodes: int = 64
    """The largest number of nodes."""
    position_gap: float = 1 / 64
    """The smallest difference between two nodes' positions."""
    value_gap: float | None = None
    """The smallest difference between values that compete for a selection; None to certify the
    smallest that the dtype allows."""
    steps: int = 64
    """The largest number of steps that a run takes."""
    largest_value: float = 64.0
    """The largest value of any Float component."""
    largest_weight: float = 1.001
    """The largest edge weight (CLRS's are at most √1.001)."""
    dtype: str = "float32"

    def __post_init__(self):
        _check_nodes(self.nodes)
        for name in ("position_gap", "value_gap", "largest_value", "largest_weight"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise InvalidInput(f"{name} must be above 0; got {getattr(self, name)}")
        if self.dtype not in {"float32", "float64"}:
            raise InvalidInput(f"dtype must be float32 or float64; got {self.dtype}")

    @staticmethod
    def regular(program: Program, nodes: int, dtype: str = "float32") -> "Domain":
        """The domain of CLRS's test graphs: positions i / nodes.

        Distances are taken to stay below 4 (on CLRS's graphs of 64 nodes they reach about 0.9);
        other numbers, below what they start at and all that the steps can add.
        """
        _check_nodes(nodes)
        weights = {f.name for f in get_task(program.task).inputs if f.type is Type.SCALAR}
        read = (part for value in program.expressions() for part in value.walk())
        weighs = any(
            isinstance(part, Name)
            and part.side is Side.EDGE
            and program.inputs.get(part.name) in weights
            for part in read
        )
        steps = posed(program).max_hints(nodes)
        known = [4.0] if weighs else [_largest(program, name, steps) for name in _numbers(program)]
        return Domain(
            nodes=nodes,
            position_gap=1 / nodes,
            largest_value=max(known, default=0.0) or 1.0,
            steps=steps,
            dtype=dtype,
        )

    @property
    def epsilon(self) -> float:
        """The relative spacing of numbers of the dtype."""
        return float(np.finfo(self.dtype).eps)

    @property
    def rounding(self) -> float:
        """The largest relative error of one rounding."""
        return self.epsilon / 2


def _numbers(program: Program) -> list[str]:
    return [c.name for c in program.hidden if c.kind is Kind.FLOAT]


def _largest(program: Program, name: str, steps: int) -> float:
    """What a number starts at, and all that so many steps can add beside other numbers."""
    (value,) = (p.update[name] for p in program.phases if name in p.update)
    sums = [part.then for part in value.walk() if isinstance(part, Where)] or [value]
    try:
        forms = [affine(part) for part in (program.starts[name], *sums)]
    except NotAffine:  # no construction takes it, which `compile_program` says with all else
        return float(steps)
    start, *added = (_most(form, _numbers(program)) for form in forms)
    return start + steps * max(added)


def _most(form: Affine, numbers: Sequence[str]) -> float:
    """The largest value of a form of flags and positions, leaving out its numbers."""
    others = (weight for at, weight in form.terms.items() if at.name not in numbers)
    return max(0.0, form.constant) + sum(max(0.0, weight) for weight in others)


def _check_nodes(nodes: int) -> None:
    if nodes < 1:
        raise InvalidInput(f"nodes must be at least 1; got {nodes}")
