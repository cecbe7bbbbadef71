"""Updates as hidden units: ``h' = relu(Σ_j α_ij · (sender's part) + receiver's part)``.

A component x is held as its difference from its initial value, which is 0 at the start as the
hidden state is: ``x = init + Σ coefficient · unit``. Where nobody is selected the node attends to
itself and must keep x. Which of these holds decides how:

- *same formula*: the update with the node itself as `other` gives its own x;
- *first or never*: nodes keep only before their first update, when x is initial, and the update
  with itself as `other` gives the initial value;
- *written once*: x is initial when it is written; adding the stored difference keeps it later;
- *gated*: nodes keep only before their first update; a large number forces the difference to 0
  unless the selected sender has the flags that the mask asks for.
"""

from dataclasses import dataclass

from mechgap.compiler.affine import Affine, affine, term
from mechgap.compiler.domain import Domain
from mechgap.compiler.facts import (
    Mask,
    is_monotone,
    keepers_lack_a_flag,
    simplified_update,
    updates_always_after_first,
    updates_once,
)
from mechgap.errors import InvalidInput
from mechgap.programs.components import Component, Kind
from mechgap.programs.expressions import Side
from mechgap.programs.program import Program


class CannotKeep(InvalidInput):
    """An update that no construction keeps where nobody is selected."""


@dataclass(frozen=True)
class HiddenUnit:
    """One unit of the hidden state: its component, its sign, and what goes into relu."""

    component: str
    sign: float
    """The component is its initial value plus sign times this unit (over all its units)."""
    before_relu: Affine

    @property
    def label(self) -> str:
        """The unit's name in figures."""
        return self.component if self.sign > 0 else f"-{self.component}"


def hidden_units(program: Program, mask: Mask, domain: Domain) -> list[HiddenUnit]:
    """The units that hold the program's state."""
    return [unit for c in program.hidden for unit in component_units(program, mask, domain, c)]


def component_units(
    program: Program, mask: Mask, domain: Domain, component: Component
) -> list[HiddenUnit]:
    """The units that hold one component: one if it never falls below its start, else two."""
    difference, gated = _difference(program, mask, domain, component)
    units = [HiddenUnit(component.name, 1.0, difference)]
    if not gated and not _never_below_initial(program, component):
        units.append(HiddenUnit(component.name, -1.0, -1.0 * difference))
    return units


def _never_below_initial(program: Program, component: Component) -> bool:
    if component.kind is Kind.BOOL:
        return is_monotone(program, component.name)
    starts_at_zero = affine(program.starts[component.name]) == Affine()
    return component.kind is Kind.FLOAT and starts_at_zero


def _difference(
    program: Program, mask: Mask, domain: Domain, component: Component
) -> tuple[Affine, bool]:
    """The next difference from the initial value, and whether it is gated."""
    name = component.name
    new = affine(simplified_update(program, mask, name))
    initial = affine(program.starts[name])
    alone = new.with_other_as_self()
    never_keeps = not mask.sender_flags and not mask.blocking_flags and not mask.excludes_self
    if alone == term(Side.SELF, name) or never_keeps:
        return new - initial, False
    if updates_always_after_first(program, mask) and alone == initial:
        return new - initial, False
    if updates_once(program, mask) and alone == initial:
        return new - initial + (term(Side.SELF, name) - initial), False
    can_gate = updates_always_after_first(program, mask) and keepers_lack_a_flag(program, mask)
    if can_gate and _never_below_initial(program, component):
        low, high = new.range(lambda at: domain.bounds(program, at))
        large = max(abs(low), abs(high))
        gate = Affine({}, 1.0 - len(mask.sender_flags))
        for flag in mask.sender_flags:
            gate = gate + term(Side.OTHER, flag)
        for flag in mask.blocking_flags:
            gate = gate - term(Side.SELF, flag)
        return new - initial + large * (gate - 1.0), True
    raise CannotKeep(
        f"'{name} = {program.phases[0].update[name]}' cannot be kept where nobody is selected: it "
        "is neither the same formula for the node itself, nor written once, nor written in every "
        "step after the first"
    )
