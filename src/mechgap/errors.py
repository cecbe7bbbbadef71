"""One exception for every mistake a user can make.

The command line prints its text as one line and exits with code 2; in Python it is a
``ValueError``. The text says the rule, then the values, then the remedy.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class InvalidInput(ValueError):
    """A request that cannot be carried out as it was made."""


def unknown(kind: str, given: str, known: Iterable[str]) -> InvalidInput:
    """The error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("task", "bsf", ["bfs", "dfs"]))
    unknown task 'bsf'. Did you mean 'bfs'? There are: bfs, dfs
    """
    names = list(known)
    near = get_close_matches(given, names, n=1, cutoff=0.4)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return InvalidInput(f"unknown {kind} '{given}'.{hint} There are: {', '.join(names)}")
