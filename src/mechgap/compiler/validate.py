"""Every reason why a program cannot compile to a target, before anything is built."""

from collections.abc import Iterator

from mechgap.compiler.affine import NotAffine, affine
from mechgap.compiler.domain import Domain
from mechgap.compiler.facts import Mask, NotAConjunction, read_mask
from mechgap.compiler.target import Target
from mechgap.compiler.updates import CannotKeep, component_units
from mechgap.programs.expressions import Name, Side
from mechgap.programs.program import Program
from mechgap.programs.validate import Problem, refuse


def check_target(program: Program, target: Target, domain: Domain) -> Mask:
    """Refuse a program with problems, all of them at once; else give its mask."""
    refuse(program, list(target_problems(program, target, domain)))
    return read_mask(program)


def target_problems(program: Program, target: Target, domain: Domain) -> Iterator[Problem]:
    """What a target cannot do of a program that makes sense."""
    if target.full_attention:
        yield Problem(
            "neighbours-only",
            f"its nodes look at their neighbours, and in {target.name} attention goes to all nodes",
        )
    try:
        affine(program.phases[0].select.expression)
    except NotAffine as error:
        yield Problem("not-affine", f"the selection {error}")
    for name, start in program.starts.items():
        try:
            affine(start)
        except NotAffine as error:
            yield Problem("not-affine", f"the initial value of '{name}': {error}")
    mask = None
    try:
        mask = read_mask(program)
    except NotAConjunction as error:
        yield Problem("mask-not-a-conjunction", str(error))
    for component in program.hidden:
        reads_edge = any(
            isinstance(part, Name) and part.side is Side.EDGE
            for part in program.phases[0].update[component.name].walk()
        )
        if reads_edge and not target.edge_information:
            yield Problem(
                "edge-information-needed",
                f"the update of '{component.name}' reads an edge, and in {target.name} the values "
                "that attention selects are a function of nodes alone. Use general or paper",
            )
        if Name(Side.EDGE, "loop") in program.phases[0].update[component.name].walk():
            yield Problem(
                "loop-in-update",
                f"the update of '{component.name}' asks for edge.loop; "
                "a program of one phase that keeps can ask for it in its mask alone",
            )
        try:
            component_units(program, mask or Mask(), domain, component)
        except NotAffine as error:
            yield Problem("not-affine", f"the update of '{component.name}': {error}")
        except CannotKeep as error:
            if mask is not None:
                yield Problem("cannot-keep", str(error))
