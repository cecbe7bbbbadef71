"""What the compiler knows about a program before it builds anything.

The mask is a conjunction. Its parts about the sender decide who is eligible; its parts about the
receiver decide whether the node is updated at all; ``~edge.loop`` says that it cannot select
itself. From these follow the facts that make updates exact:

- a flag is *monotone* if its update is ``self.f | …``: once set, it stays, and it is never below
  its initial value;
- a node is updated *once* if the mask needs a flag unset that the update sets;
- a node is updated *always after the first time* if the mask only needs monotone flags set;
- a node *without a flag was never updated*, and so is as it started, if every update sets the flag;
- a component *relaxes* if it becomes the very value that was selected as the minimum: then no later
  best offer is worse than what a node has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from mechgap.compiler.affine import Affine, affine
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.expressions import Expression, Name, Not, Side, conjuncts, disjuncts
from mechgap.programs.phases import Extreme
from mechgap.programs.program import Program


@dataclass(frozen=True)
class Mask:
    """A mask, taken apart."""

    sender_flags: tuple[str, ...] = ()
    """Flags that the sender must have."""
    blocking_flags: tuple[str, ...] = ()
    """Flags (or inputs) that the receiver must not have."""
    excludes_self: bool = False


class NotAConjunction(InvalidInput):
    """A mask that is not built from the parts that attention can test."""


def read_mask(program: Program) -> Mask:
    """The parts of the program's mask."""
    senders, blocking, excludes = [], [], False
    for part in conjuncts(program.phases[0].mask):
        match part:
            case Name(Side.OTHER, name):
                senders.append(name)
            case Not(Name(Side.EDGE, "loop")):
                excludes = True
            case Not(Name(Side.SELF | Side.INIT, name)):
                blocking.append(name)
            case _:
                raise NotAConjunction(
                    f"the mask must be a conjunction of other.flag, ~self.flag, ~init.flag and "
                    f"~edge.loop; '{part}' is none of these"
                )
    return Mask(tuple(senders), tuple(blocking), excludes)


def is_monotone(program: Program, name: str) -> bool:
    """Whether a flag, once set, stays. Inputs never change."""
    if name not in program.components:
        return True
    parts = set(disjuncts(program.phases[0].update[name]))
    return program.components[name].kind is Kind.BOOL and Name(Side.SELF, name) in parts


def initial_flag(program: Program, name: str) -> str | None:
    """The input that a flag starts as, if it does."""
    match program.starts.get(name):
        case Name(Side.INIT | Side.SELF, start):
            return start
    return None


def simplified_update(program: Program, mask: Mask, name: str) -> Expression:
    """A component's update with a disjunction removed where the selection decides it.

    A selected sender has every flag that the mask asks of it, and where nobody is selected
    `other` is the node itself. So ``self.f | other.f`` is ``other.f`` if the mask asks for
    `other.f`; and a flag's own starting input adds nothing to ``self.f``.
    """
    parts = set(disjuncts(program.phases[0].update[name]))
    itself, selected = Name(Side.SELF, name), Name(Side.OTHER, name)
    if itself in parts and selected in parts and name in mask.sender_flags:
        start = initial_flag(program, name)
        rest = parts - {itself, selected}
        if rest <= {Name(side, start) for side in (Side.INIT, Side.SELF) if start}:
            return selected
    return program.phases[0].update[name]


def updates_once(program: Program, mask: Mask) -> bool:
    """Whether a node, once updated, is never updated again."""
    return any(
        flag in mask.sender_flags and is_monotone(program, flag) for flag in mask.blocking_flags
    )


def updates_always_after_first(program: Program, mask: Mask) -> bool:
    """Whether a node that was updated is updated in every later step."""
    return all(is_monotone(program, flag) for flag in mask.sender_flags) and not any(
        flag in program.components for flag in mask.blocking_flags
    )


def set_by_every_update(program: Program, mask: Mask) -> tuple[str, ...]:
    """Flags without which a node was never updated, so that all its state is initial."""
    return tuple(
        flag
        for flag in mask.sender_flags
        if flag in program.components
        and simplified_update(program, mask, flag) == Name(Side.OTHER, flag)
        and is_monotone(program, flag)
    )


def keepers_lack_a_flag(program: Program, mask: Mask) -> bool:
    """Whether a node that is not blocked and keeps lacks a flag that the mask asks of senders.

    Where a node may select itself, one with all flags selects. Where it may not, it needs another
    that has them: there is one if it got a flag from a neighbour, which still has it, and did not
    start with it.
    """
    if not mask.excludes_self:
        return True
    return any(
        initial_flag(program, flag) in {None, *mask.blocking_flags}
        and (initial_flag(program, flag) is not None or _starts_unset(program, flag))
        for flag in set_by_every_update(program, mask)
    )


def _starts_unset(program: Program, flag: str) -> bool:
    return affine(program.starts[flag]) == Affine()


def relaxed_component(program: Program, mask: Mask) -> str | None:
    """The component that always holds the best offer so far, if there is one."""
    smallest = program.phases[0].select.extreme is Extreme.MINIMUM
    has_offers = bool(set_by_every_update(program, mask)) and keepers_lack_a_flag(program, mask)
    if not (smallest and has_offers and updates_always_after_first(program, mask)):
        return None
    offered = affine(program.phases[0].select.expression)
    for name in program.components:
        grows = offered.terms.get(Name(Side.OTHER, name), 0.0) > 0
        others_fixed = all(
            at.name == name or at.name not in program.components for at in offered.terms
        )
        if (
            grows
            and others_fixed
            and program.phases[0].update[name] == program.phases[0].select.expression
        ):
            return name
    return None


def receiver_cases(program: Program, mask: Mask) -> Iterator[dict[str, int]]:
    """Every combination of the mask's flags that a receiver can have."""
    flags = sorted({*mask.sender_flags, *mask.blocking_flags})
    for values in product((0, 1), repeat=len(flags)):
        case: dict[str, int] = dict(zip(flags, values, strict=True))
        below_start = any(
            is_monotone(program, flag)
            and case[flag] < case.get(str(initial_flag(program, flag)), 0)
            for flag in flags
        )
        if not below_start:
            yield case
