"""Programs that are like others but for some of their parts."""

from dataclasses import fields, replace

from mechgap.programs.phases import Phase
from mechgap.programs.program import Program

_OF_PHASES = {field.name for field in fields(Phase)}


def changed(program: Program, phase: int = 0, **change) -> Program:
    """A program with other parts: its own, or those of one of its phases."""
    of_phase = {name: value for name, value in change.items() if name in _OF_PHASES}
    phases = list(program.phases)
    phases[phase] = replace(phases[phase], **of_phase)
    own = {name: value for name, value in change.items() if name not in _OF_PHASES}
    return replace(program, **{"phases": tuple(phases), **own})
