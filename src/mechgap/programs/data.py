"""A program as plain data and back: for files that keep one. Reading runs no code.

Expressions are their own text, which is parsed; everything else is names and numbers.
"""

from collections.abc import Mapping
from typing import Any

from mechgap.errors import InvalidInput
from mechgap.programs.components import Component, Kind
from mechgap.programs.conclusions import Becomes, Conclusion, First, Grows, Linked
from mechgap.programs.expressions import as_number, parse
from mechgap.programs.phases import Phase, parse_otherwise, parse_selection
from mechgap.programs.program import Fixpoint, Program, fixpoint

FORMAT = 1


def program_data(program: Program) -> dict[str, Any]:
    """A program as mappings, lists, texts and numbers, such as JSON has."""
    return {
        "format": FORMAT,
        "name": program.name,
        "task": program.task,
        "inputs": dict(program.inputs),
        "hidden": [
            {"name": c.name, "kind": c.kind.value, "classes": list(c.classes)}
            for c in program.hidden
        ],
        "init": {name: str(value) for name, value in program.init.items()},
        "phases": [
            {
                "select": str(phase.select),
                "mask": None if phase.mask is None else str(phase.mask),
                "otherwise": str(phase.otherwise),
                "update": {name: str(value) for name, value in phase.update.items()},
            }
            for phase in program.phases
        ],
        "conclude": {name: _conclusion(value) for name, value in program.conclude.items()},
        "sees_all": program.sees_all,
        "hints": {name: c.name for name, c in program.hints.items()},
        "output": {name: c.name for name, c in program.output.items()},
        "unclaimed": dict(program.unclaimed),
        "steps": "fixpoint" if isinstance(program.steps, Fixpoint) else program.steps,
    }


def program_of(data: Any) -> Program:
    """The program that some data mean. Raises `InvalidInput` where they mean none."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise InvalidInput(f"a program's data are of format {FORMAT}; got {found}")
    try:
        return _read(data)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(f"these data are no program: {error}") from error


def _read(data: Mapping[str, Any]) -> Program:
    hidden = [Component(c["name"], Kind(c["kind"]), tuple(c["classes"])) for c in data["hidden"]]
    known = {component.name: component for component in hidden}
    steps = data["steps"]
    return Program(
        name=str(data["name"]),
        task=str(data["task"]),
        inputs=dict(data["inputs"]),
        hidden=tuple(hidden),
        init={name: parse(text) for name, text in data["init"].items()},
        phases=tuple(
            Phase(
                select=parse_selection(phase["select"]),
                mask=None if phase["mask"] is None else parse(phase["mask"]),
                otherwise=parse_otherwise(phase["otherwise"]),
                update={name: parse(text) for name, text in phase["update"].items()},
            )
            for phase in data["phases"]
        ),
        conclude={name: _conclude(value) for name, value in data["conclude"].items()},
        sees_all=bool(data["sees_all"]),
        hints={name: known[component] for name, component in data["hints"].items()},
        output={name: known[component] for name, component in data["output"].items()},
        unclaimed=dict(data["unclaimed"]),
        steps=fixpoint if steps == "fixpoint" else int(steps),
    )


def _conclusion(conclusion: Conclusion) -> dict[str, Any]:
    match conclusion:
        case Becomes(conditions):
            return {"becomes": {name: str(value) for name, value in conditions.items()}}
        case First(flags):
            return {"first": [str(flag) for flag in flags]}
        case Grows(by, flags):
            return {"grows": [str(flag) for flag in flags], "by": by}
        case Linked(links, to, otherwise):
            return {"linked": [str(links), str(to), str(otherwise)]}
        case _:
            return {"is": str(conclusion)}


def _conclude(data: Mapping[str, Any]) -> Conclusion:
    match data:
        case {"becomes": conditions}:
            return Becomes({name: parse(text) for name, text in conditions.items()})
        case {"grows": flags, "by": by}:
            return Grows(as_number(by), tuple(map(parse, flags)))
        case {"first": flags}:
            return First(tuple(map(parse, flags)))
        case {"linked": [links, to, otherwise]}:
            return Linked(parse(links), parse(to), parse(otherwise))
        case {"is": text}:
            return parse(text)
    raise InvalidInput(f"'{data}' is no conclusion")
