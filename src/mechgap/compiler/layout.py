"""Which unit of the network is which input, variable and term of the logit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechgap.compiler.affine import Affine, affine
from mechgap.compiler.gadgets import Unit
from mechgap.compiler.updates import HiddenUnit
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.program import Program
from mechgap.tasks.specs import Location, get_task


def check_size(program: str, hidden_size: int, needed: Mapping[str, int]) -> None:
    """Refuse a network that is too small, saying what needs how many units."""
    if max(needed.values()) > hidden_size:
        listed = ", ".join(f"{count} for {what}" for what, count in needed.items())
        raise InvalidInput(
            f"{program} needs hidden_size of at least {max(needed.values())} here "
            f"({listed}); got {hidden_size}"
        )


@dataclass(frozen=True)
class Layout:
    """Which unit of the network is what."""

    initial: Mapping[str, Affine]
    """What components are worth while all units are 0."""
    reads: Mapping[str, Mapping[int, float]]
    """Components to the units that hold them, with their weights."""
    nodes: dict[str, int]
    """Node inputs (the program's names) to units of the node features."""
    edges: dict[str, int]
    """Edge inputs to units of the edge features."""
    state: tuple[HiddenUnit, ...]
    attention: tuple[Unit, ...]
    hidden_size: int
    reference: int | None
    """The unit that values are read against where there is layer norm; the next is the ballast."""

    @staticmethod
    def of(
        program: Program,
        state: Sequence[HiddenUnit],
        attention: Sequence[Unit],
        hidden_size: int,
        normed: bool,
    ) -> "Layout":
        """Units in order of appearance, or an error that says how many are needed."""
        locations = {f.name: f.location for f in get_task(program.task).inputs}
        nodes = [n for n, theirs in program.inputs.items() if locations[theirs] is Location.NODE]
        edges = [n for n, theirs in program.inputs.items() if locations[theirs] is Location.EDGE]
        check_size(
            program.name,
            hidden_size,
            {
                "state": len(state) + 2 * normed,
                "attention": len(attention),
                "node inputs": len(nodes),
                "edge inputs": len(edges),
                "pointer decoder": 3 if any(c.kind is Kind.POINTER for c in program.hidden) else 0,
            },
        )
        return Layout(
            {name: affine(value) for name, value in program.starts.items()},
            {
                c: {i: unit.sign for i, unit in enumerate(state) if unit.component == c}
                for c in program.components
            },
            {name: i for i, name in enumerate(nodes)},
            {name: i for i, name in enumerate(edges)},
            tuple(state),
            tuple(attention),
            hidden_size,
            len(state) if normed else None,
        )

    def node_row(self, form: Affine, offset: int, width: int) -> np.ndarray:
        """An affine form of one node's values, as weights over ``[features | … | hidden]``.

        `offset` is where the hidden state begins. The constant is left to the caller; a
        component's initial value contributes through the inputs.
        """
        row = np.zeros(width)
        for name, coefficient in form.terms.items():
            if name.name in self.nodes:
                row[self.nodes[name.name]] += coefficient
                continue
            for unit, weight in self.reads[name.name].items():
                row[offset + unit] += coefficient * weight
                if self.reference is not None:
                    row[offset + self.reference] -= coefficient * weight
            for at, value in self.initial[name.name].terms.items():
                row[self.nodes[at.name]] += coefficient * value
        return row

    def constant(self, form: Affine) -> float:
        """The constant of a form, with that of the components' initial values."""
        total = form.constant
        for name, coefficient in form.terms.items():
            if name.name in self.initial:
                total += coefficient * self.initial[name.name].constant
        return total

    def edge_row(self, form: Affine) -> np.ndarray:
        """An affine form of an edge's values, as weights over the edge features."""
        row = np.zeros(self.hidden_size)
        for name, coefficient in form.terms.items():
            row[self.edges[name.name]] += coefficient
        return row
