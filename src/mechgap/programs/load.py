"""Find a program by name, or in a file of the user's own.

``my_program.py:reachability`` runs the file and takes the program of that name from it. A program
file is Python code: run only files that you trust.
"""

import runpy
from pathlib import Path

from mechgap.errors import InvalidInput, unknown
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.programs.validate import problems, refuse
from mechgap.tasks.specs import TASKS, Task


def find_task(name: str | Program) -> tuple[Task, Program | None]:
    """A task by its name, or the one that a program poses, with the program if it is no library's.

    A program is given itself, by its name in the library, or as ``file.py:name``.

    Raises:
        InvalidInput: there is no such task or program, it makes no sense, or it never ends.
    """
    if isinstance(name, Program):
        program = name
    elif name in TASKS:
        return TASKS[name], None
    elif ":" not in name and name not in LIBRARY:
        raise unknown("task", name, [*TASKS, *LIBRARY])
    else:
        program = find_program(name)
    refuse(program, list(problems(program)), "is no task")
    task = posed(program)
    task.max_hints(16)
    known = task.tracer is None and program in LIBRARY.values()
    return task, None if known else program


def find_program(name: str) -> Program:
    """A program of the library, or ``file.py:name``."""
    path, colon, inside = name.rpartition(":")
    if not colon:
        if name not in LIBRARY:
            raise unknown("program", name, LIBRARY)
        return LIBRARY[name]
    if not Path(path).is_file():
        raise InvalidInput(f"there is no program file '{path}'. Write FILE.py:NAME")
    try:
        found = runpy.run_path(path)
    except (SyntaxError, NameError, TypeError, ValueError, ImportError, AttributeError) as error:
        raise InvalidInput(f"the program file '{path}' fails: {error}") from error
    programs = {key: value for key, value in found.items() if isinstance(value, Program)}
    if not programs:
        raise InvalidInput(f"the program file '{path}' defines no program, so no '{inside}'")
    if inside not in programs:
        raise unknown(f"program in '{path}'", inside, programs)
    return programs[inside]
