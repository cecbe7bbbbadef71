"""A program as the Python text that makes it: running the text gives an equal program."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mechgap.programs.phases import Phase

if TYPE_CHECKING:
    from mechgap.programs.program import Program


def program_text(program: "Program") -> str:
    """The program as it is written, in the short form where that says all."""
    form = _short if program.is_short else _long
    declared = "".join(f"{c.name} = {c}\n" for c in program.hidden)
    inputs = ", ".join(f'"{ours}": "{theirs}"' for ours, theirs in program.inputs.items())
    hidden = ", ".join(c.name for c in program.hidden)
    kind = "GraphProgram" if program.is_short else "Program"
    return (
        f"{declared}\n{program.name} = {kind}(\n"
        f'    name="{program.name}",\n'
        f'    task="{program.task}",\n'
        f"    inputs={{{inputs}}},\n"
        f"    hidden=({hidden},),\n"
        f"{form(program)}"
        f"    steps={program.steps},\n"
        ")\n"
    )


def _short(program: "Program") -> str:
    (phase,) = program.phases
    mask = "" if phase.mask is None else f"    mask={phase.mask},\n"
    return (
        f"    init={_named(program.init)},\n"
        f"    select={phase.select},\n"
        f"{mask}"
        f"    update={_named(phase.update)},\n"
        f"{_predictions(program)}"
    )


def _long(program: "Program") -> str:
    phases = "".join(f"        {_phase(phase)},\n" for phase in program.phases)
    sees = "    sees_all=True,\n" if program.sees_all else ""
    init = f"    init={_named(program.init)},\n" if program.init else ""
    conclude = f"    conclude={_named(program.conclude)},\n" if program.conclude else ""
    reasons = "".join(f'        "{name}": "{why}",\n' for name, why in program.unclaimed.items())
    unclaimed = f"    unclaimed={{\n{reasons}    }},\n" if reasons else ""
    return f"{sees}{init}    phases=(\n{phases}    ),\n{conclude}{_predictions(program)}{unclaimed}"


def _phase(phase: Phase) -> str:
    inner = "            "
    mask = "" if phase.mask is None else f"{inner}mask={phase.mask},\n"
    otherwise = f"{inner}otherwise={phase.otherwise},\n"
    update = f"{inner}update={_named(phase.update, inner)},\n" if phase.update else ""
    return f"Phase(\n{inner}select={phase.select},\n{mask}{otherwise}{update}        )"


def _predictions(program: "Program") -> str:
    def referred(parts: Mapping[str, Any]) -> str:
        return "{" + ", ".join(f'"{name}": {c.name}' for name, c in parts.items()) + "}"

    return f"    hints={referred(program.hints)},\n    output={referred(program.output)},\n"


def _named(parts: Mapping[str, Any], indent: str = "    ") -> str:
    lines = "".join(f"{indent}    {name}={value},\n" for name, value in parts.items())
    return f"dict(\n{lines}{indent})"
