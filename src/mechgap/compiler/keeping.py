"""How a component stays as it is where nobody passes the mask of a phase that keeps.

There a node attends to itself, and what its phase makes of that must be what it had:

- *same*: the update with the node itself as `other` is what it had;
- *never*: everyone may be selected, oneself too, so nobody ever keeps;
- *first*: nodes keep only as long as nobody ever passed. All pointers are then to the node itself,
  as they started; a number is forced to 0, which it started with, unless somebody passes;
- *once*: nodes are updated once, and a pointer is held as its difference from the node itself, to
  which every step adds what it sees less the node itself: nothing, where a node keeps.
"""

from enum import Enum

from mechgap.programs.components import Kind
from mechgap.programs.expressions import (
    Add,
    Constant,
    Equal,
    Expression,
    Name,
    Not,
    Side,
    conjuncts,
    disjuncts,
    sides,
)
from mechgap.programs.phases import Extreme, Phase
from mechgap.programs.program import Program

LOOP = Name(Side.EDGE, "loop")


class Keeping(Enum):
    """Why a component stays as it is."""

    SAME = "same"
    NEVER = "never"
    FIRST = "first"
    ONCE = "once"


def keeping_of(program: Program, phase: Phase, name: str) -> Keeping | None:
    """How a component of a phase that keeps does so; None if no construction can."""
    if phase.mask is None:
        return Keeping.NEVER
    value = phase.update[name]
    if _with_itself(value) == {Name(Side.SELF, name)}:
        return Keeping.SAME
    if len(program.phases) > 1:
        return None
    if program.components[name].kind is Kind.FLOAT and program.starts[name] == Constant(0.0):
        is_sum = not isinstance(value, Add) or Name(Side.SELF, name) not in value.walk()
        seen = _always_after_first(program, phase) and _keepers_lack_a_flag(program, phase)
        return Keeping.FIRST if is_sum and seen else None
    looks = value == Name(Side.OTHER, program.position)
    if (looks or copies_a_pointer(program, value)) and _always_after_first(program, phase):
        return Keeping.FIRST
    return Keeping.ONCE if looks and _updates_once(program, phase) else None


def copies_a_pointer(program: Program, value: Expression) -> bool:
    """Whether a value is a pointer of the node or of the sender, in a program of one phase."""
    match value:
        case Name(Side.SELF | Side.OTHER, name) if name in program.components:
            return len(program.phases) == 1 and program.components[name].kind is Kind.POINTER
    return False


def pointers_from_the_start(program: Program) -> set[str]:
    """The pointers of a program of one phase whose nodes copy or compare them.

    They are read before they are ever set, and so must begin at the node itself.
    """
    phase, *others = program.phases
    if others:
        return set()
    copied = any(copies_a_pointer(program, value) for value in phase.update.values())
    compared = any(isinstance(part, Equal) for part in conjuncts(phase.mask))
    if not (copied or compared):
        return set()
    return {c.name for c in program.hidden if c.kind is Kind.POINTER}


def excludes_itself(phase: Phase) -> bool:
    """Whether a node cannot select itself."""
    return Not(LOOP) in conjuncts(phase.mask)


def own_flags(phase: Phase) -> list[Expression]:
    """What a node must be to pass its own mask, but for being itself."""
    parts = [*conjuncts(phase.mask)]
    of_nodes = (part for part in parts if not _is_of_edge(part) and not isinstance(part, Equal))
    return list(dict.fromkeys(part.replaced(Side.OTHER, Side.SELF) for part in of_nodes))


def own_flags_are_one(program: Program, phase: Phase) -> bool:
    """Whether these flags' conjunction, as a sum, is never below 0: it is a width."""
    match own_flags(phase):
        case [] | [_]:
            return True
        case [Name(_, flag), Not(Name(_, start))] | [Not(Name(_, start)), Name(_, flag)]:
            return _starts_as(program, flag) == start and _stays_set(program, phase, flag)
    return False


def relaxes(program: Program, phase: Phase) -> bool:
    """Whether a number becomes the very value that was selected as the smallest.

    Then what a node has is no better than what it is offered next, since offers only fall.
    """
    offer = phase.select.expression
    if phase.select.extreme is not Extreme.MINIMUM or not phase.keeps:
        return False
    for name, value in phase.update.items():
        terms = [part for part in offer.walk() if not isinstance(part, Add)]
        grows = all(
            part == Name(Side.OTHER, name) or (isinstance(part, Name) and part.side is Side.EDGE)
            for part in terms
        )
        once = terms.count(Name(Side.OTHER, name)) == 1
        if value == offer and grows and once:
            return keeping_of(program, phase, name) is Keeping.FIRST
    return False


def _is_of_edge(part: Expression) -> bool:
    return Side.EDGE in sides(part)


def _starts_as(program: Program, flag: str) -> str | None:
    """The input that a flag starts as; None where it starts unset or otherwise."""
    match program.starts.get(flag):
        case Name(_, start):
            return start
    return None


def _keepers_lack_a_flag(program: Program, phase: Phase) -> bool:
    """Whether a node that keeps fails its own mask, also where it cannot select itself.

    It does if it got a flag that the mask asks for from a neighbour, who still has it, and did not
    start with it.
    """
    if not excludes_itself(phase):
        return True
    parts = set(conjuncts(phase.mask))
    for part in parts:
        match part:
            case Name(Side.OTHER, flag) if flag in phase.update:
                passed_on = {Name(Side.SELF, flag), Name(Side.OTHER, flag)}
                unset = program.starts[flag] == Constant(0.0)
                start = _starts_as(program, flag)
                blocked = any(Not(Name(s, str(start))) in parts for s in (Side.SELF, Side.INIT))
                if set(disjuncts(phase.update[flag])) == passed_on and (unset or blocked):
                    return True
    return False


def _with_itself(value: Expression) -> set[Expression]:
    """The alternatives of a value where a node attends to itself."""
    return {
        Name(Side.SELF, part.name) if isinstance(part, Name) and part.side is Side.OTHER else part
        for part in disjuncts(value)
    }


def _stays_set(program: Program, phase: Phase, name: str) -> bool:
    """Whether a flag, once set, stays. Inputs never change."""
    if name in program.inputs:
        return True
    return name in phase.update and Name(Side.SELF, name) in disjuncts(phase.update[name])


def _always_after_first(program: Program, phase: Phase) -> bool:
    """Whether somebody who once passed the mask goes on passing it."""

    def stays(part: Expression) -> bool:
        match part:
            case Name(Side.EDGE, _) | Not(Name(Side.EDGE, _)):
                return True
            case Name(_, name):
                return _stays_set(program, phase, name)
            case Not(Name(_, name)):
                return name in program.inputs
        return False

    return all(map(stays, conjuncts(phase.mask)))


def _updates_once(program: Program, phase: Phase) -> bool:
    """Whether a node that was updated is never updated again.

    So it is if the mask asks for a flag of the sender that the receiver must not have, and the
    update passes it on: whoever has it is not updated any more, so it has it for good.
    """
    parts = set(conjuncts(phase.mask))
    for part in parts:
        match part:
            case Not(Name(Side.SELF, flag)) if Name(Side.OTHER, flag) in parts:
                passed_on = disjuncts(phase.update[flag]) if flag in phase.update else ()
                if Name(Side.OTHER, flag) in passed_on:
                    return program.components[flag].kind is Kind.BOOL
    return False
