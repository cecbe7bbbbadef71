"""The inputs that a compilation is made for.

Attention selects by softmax and numbers have finite precision, so no network is exact on all
inputs. The compiler derives its constants from this declared domain and guarantees exactness on
it (see `certificate`); `verify` and `run` tell which inputs lie outside.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, frexp, log2

import numpy as np

from mechgap.compiler.affine import Affine, NotAffine, affine
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.expressions import Name, Side, Where
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.specs import Type, get_task

_TRIED = 64
"""How many nodes graphs have on which programs are run to see how long they take and how large
their numbers get; larger graphs go by these."""
_FAR = 4.0
"""The largest distance on CLRS's graphs of 64 nodes, with room to spare."""
_SLACK = 2**-6
"""How much steeper than 1 / gap is steep enough, so that rounding cannot reach a neighbour."""


@dataclass(frozen=True)
class Domain:
    """What may be given to a compiled network."""

    nodes: int = 64
    """The largest number of nodes."""
    position_gap: float = 1 / 64
    """The smallest difference between two nodes' positions."""
    position_grid: float | None = None
    """A power of two that all positions are multiples of, so that nothing is rounded where they are
    added up; None where they can be any."""
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
        if self.position_grid is not None:
            self._check_grid(self.position_grid)

    def _check_grid(self, grid: float) -> None:
        finest = 2 * self.epsilon
        if not (finest <= grid <= 1 and frexp(grid)[0] == 0.5):
            raise InvalidInput(
                f"position_grid must be a power of two from {finest:.3g}, below which sums of "
                f"positions are rounded in {self.dtype}, to 1; got {grid:.3g}"
            )

    @staticmethod
    def regular(program: Program, nodes: int, dtype: str = "float32") -> "Domain":
        """The domain of CLRS's test graphs: positions i / nodes.

        Distances are taken to stay below 4 (on CLRS's graphs of 64 nodes they reach about 0.9), and
        on larger graphs to grow with the root of the nodes, as in graphs that lie in a plane; other
        numbers, below what they start at and all that the steps can add.
        """
        _check_nodes(nodes)
        steps = _steps(program, nodes)
        numbers = [_largest(program, name, steps) for name in _numbers(program)]
        known = [_far(nodes)] if _weighs(program) else numbers
        return Domain(
            nodes=nodes,
            position_gap=1 / nodes,
            largest_value=max(known, default=0.0) or 1.0,
            steps=steps,
            dtype=dtype,
        )

    @staticmethod
    def large(program: Program, nodes: int, dtype: str = "float32") -> "Domain":
        """The domain of large graphs: positions i / nodes, put on a grid that is finer by far.

        What numbers other than distances can be is that of `regular` of a smaller graph.
        """
        known = min(nodes, _TRIED)
        domain = Domain.regular(program, known, dtype)
        grid = position_grid(nodes)
        return replace(
            domain,
            nodes=nodes,
            position_gap=max(grid, 1 / nodes - grid),
            position_grid=grid,
            largest_value=_far(nodes) if _weighs(program) else domain.largest_value,
            steps=_steps(program, nodes),
        )

    @property
    def steepness(self) -> float:
        """What positions are multiplied with, so that those of two nodes are more than 1 apart."""
        return self.steep(1 + _SLACK)

    def steep(self, apart: float) -> float:
        """What makes the smallest difference of positions at least `apart`.

        On a grid a power of two, so that products are exact.
        """
        least = apart / self.position_gap
        return least if self.position_grid is None else 2.0 ** ceil(log2(least))

    @property
    def epsilon(self) -> float:
        """The relative spacing of numbers of the dtype."""
        return float(np.finfo(self.dtype).eps)

    @property
    def rounding(self) -> float:
        """The largest relative error of one rounding."""
        return self.epsilon / 2


def _far(nodes: int) -> float:
    """The largest distance that graphs of so many nodes are taken to have."""
    return _FAR * max(1.0, nodes / _TRIED) ** 0.5


def _steps(program: Program, nodes: int) -> int:
    """How long a run on so many nodes may take; where that is found out by running the program, it
    is run on smaller graphs, and larger ones are taken to take as many times longer."""
    task = posed(program)
    known = nodes if task.tracer is None else min(nodes, _TRIED)
    return task.max_hints(known) * ceil(nodes / known)


def position_grid(nodes: int) -> float:
    """The grid of so many positions: an eighth of their distance, or finer; a power of two."""
    return 2.0 ** -(3 + ceil(log2(nodes)))


def _weighs(program: Program) -> bool:
    """Whether a program reads the weights of edges."""
    weights = {f.name for f in get_task(program.task).inputs if f.type is Type.SCALAR}
    return any(
        isinstance(part, Name)
        and part.side is Side.EDGE
        and program.inputs.get(part.name) in weights
        for value in program.expressions()
        for part in value.walk()
    )


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
