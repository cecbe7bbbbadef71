"""Which unit of the network is which input, variable and term of the logit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechgap.compiler.affine import Affine, term
from mechgap.compiler.gadgets import Unit
from mechgap.compiler.keeping import LOOP
from mechgap.compiler.reading import Reading
from mechgap.compiler.registers import HiddenUnit, Moved, Register
from mechgap.errors import InvalidInput
from mechgap.programs.components import Component, Kind
from mechgap.programs.conclusions import Becomes, Linked
from mechgap.programs.expressions import Name, Side
from mechgap.tasks.specs import Location, get_task


@dataclass(frozen=True)
class Layout:
    """Which unit of the network is what."""

    initial: Mapping[str, Affine]
    """What registers are worth while all units are 0."""
    reads: Mapping[str, Mapping[int, float]]
    """Registers to the units that hold them, with their weights."""
    nodes: Mapping[str, int]
    """Inputs and hints of nodes, those that are read, to units of the node features."""
    edges: Mapping[str, int]
    """Inputs and pointers of edges, those that are read, to units of the edge features."""
    state: tuple[HiddenUnit, ...]
    attention: tuple[Unit, ...]
    hidden_size: int
    reference: int | None
    """The unit that values are read against where there is layer norm; the next is the ballast."""

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
            if name != LOOP:  # the pre-attention bias tells it
                row[self.edges[name.name]] += coefficient
        return row


def lay_out(
    reading: Reading,
    state: Sequence[Register],
    attention: Sequence[Unit],
    hidden_size: int,
    normed: bool,
) -> Layout:
    """Units in order of appearance.

    Raises:
        InvalidInput: there are more than the network has; it says what needs how many.
    """
    units = tuple(unit for register in state for unit in register.units)
    read = _names_read(reading, state, attention)
    nodes, edges = _channels(reading)
    nodes = [name for name in nodes if Name(Side.SELF, name) in read]
    edges = [name for name in edges if Name(Side.EDGE, name) in read]
    pointers = [c for c in _predicted(reading) if c.kind is Kind.POINTER]
    linked = any(isinstance(c, Linked) for c in reading.program.conclude.values())
    needed = {
        "state": len(units) + 2 * normed,
        "attention": len(attention),
        "node inputs": len(nodes),
        "edge inputs": len(edges),
        "pointer decoder": (5 if linked else 3) if pointers else 0,
    }
    if max(needed.values()) > hidden_size:
        listed = ", ".join(f"{count} for {what}" for what, count in needed.items())
        raise InvalidInput(
            f"{reading.program.name} needs hidden_size of at least {max(needed.values())} here "
            f"({listed}); got {hidden_size}"
        )
    found: dict[str, dict[int, float]] = {}
    for i, unit in enumerate(units):
        found.setdefault(unit.component, {})[i] = unit.sign
    return Layout(
        initial={
            **dict.fromkeys(found, Affine()),
            **{r.name: term(Side.SELF, reading.position) for r in state if isinstance(r, Moved)},
        },
        reads=found,
        nodes={name: i for i, name in enumerate(nodes)},
        edges={name: i for i, name in enumerate(edges)},
        state=units,
        attention=tuple(attention),
        hidden_size=hidden_size,
        reference=len(units) if normed else None,
    )


def _channels(reading: Reading) -> tuple[list[str], list[str]]:
    """All that comes in at nodes and at edges: inputs, and hints that are fed back."""
    program = reading.program
    places = {f.name: f.location for f in get_task(program.task).inputs}
    nodes = [n for n, theirs in program.inputs.items() if places[theirs] is Location.NODE]
    edges = [n for n, theirs in program.inputs.items() if places[theirs] is Location.EDGE]
    for component in dict.fromkeys(program.hints.values()):
        if component.kind is Kind.POINTER:
            edges.append(component.name)
        elif component.kind is not Kind.TOTAL:
            nodes += component.classes or (component.name,)
    return nodes, edges


def _names_read(
    reading: Reading, state: Sequence[Register], attention: Sequence[Unit]
) -> set[Name]:
    """What units and decoders read, of a node or of an edge: nothing else needs a place."""
    forms = [unit.before_relu for register in state for unit in register.units]
    forms += [unit.zeta for unit in attention]
    forms += [reading.name(name, p) for p, name in reading.reads() if p == reading.phases]
    names = [name for form in forms for name in form.terms]
    for name, conclusion in reading.program.conclude.items():
        if isinstance(conclusion, Becomes):
            labels = reading.program.components[name].classes
            names += [Name(Side.SELF, label) for label in labels]
    by_position = {Kind.POINTER, Kind.CHOICE}
    if any(component.kind in by_position for component in _predicted(reading)):
        names.append(Name(Side.SELF, reading.position))
    return {n if n.side is Side.EDGE else Name(Side.SELF, n.name) for n in names}


def _predicted(reading: Reading) -> set[Component]:
    return {*reading.program.hints.values(), *reading.program.output.values()}
