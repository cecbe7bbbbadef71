"""Programs that are like the library's but for some of their parts."""

from dataclasses import fields, replace

from mechgap.programs.library import bfs
from mechgap.programs.phases import Otherwise, Phase
from mechgap.programs.program import Program

_OF_PHASES = {field.name for field in fields(Phase)}


def changed(program: Program, phase: int = 0, **change) -> Program:
    """A program with other parts: its own, or those of one of its phases."""
    of_phase = {name: value for name, value in change.items() if name in _OF_PHASES}
    phases = list(program.phases)
    phases[phase] = replace(phases[phase], **of_phase)
    own = {name: value for name, value in change.items() if name not in _OF_PHASES}
    return replace(program, **{"phases": tuple(phases), **own})


def search(otherwise: Otherwise) -> Program:
    """Breadth-first search with something else where nobody passes the mask."""
    return changed(bfs, name="search", otherwise=otherwise)
