"""Why networks fail, as rows: what was first wrong, and at what kind of node."""

from collections.abc import Sequence

from mechgap.measures.failing import FIRSTS, Failing
from mechgap.measures.results import Results
from mechgap.report.measures import percent, tabular, wide_console

NOTE = (
    "Of the nodes of the test graphs that are answered wrongly. First wrong: the node's attention "
    "(in a step that updates it, most of it on a sender that no correct run could have chosen), or "
    "a hint of it. After another: another node of the graph was wrong before. Below, how common a "
    "kind of node is among the wrong ones and among all; late and many: the last quarter of all."
)


def failing(results: Results) -> list[Failing]:
    """Of the seeds that have wrong answers."""
    return [m.failing for m in results.networks if m.failing is not None and m.failing.nodes]


def firsts(found: Sequence[Failing]) -> tuple[list[str], list[str]]:
    """What was first wrong: names, and shares of the wrong nodes."""
    head = ["nodes answered wrongly", *(f"first wrong: {n}" for n in FIRSTS), "after another"]
    cells = [
        percent([f.nodes / f.of for f in found]),
        *(percent([f.first[name] for f in found]) for name in FIRSTS),
        percent([f.elsewhere_before for f in found]),
    ]
    return head, cells


def kinds(found: Sequence[Failing]) -> list[tuple[str, list[str]]]:
    """By kind of node: its share of the wrong ones, and of all."""

    def shares(name: str, which: str) -> str:
        return percent([getattr(each.kinds[name], which) for each in found])

    return [(name, [shares(name, "wrong"), shares(name, "all")]) for name in found[0].kinds]


def show_failing(results: Results) -> None:
    """Print both tables, if anything is wrong."""
    found = failing(results)
    if not found:
        return
    console = wide_console()
    head, cells = firsts(found)
    table = tabular(*head)
    table.add_row(*cells)
    console.print()
    console.print(table)
    table = tabular("kind of node", "of the wrong", "of all")
    for name, shares in kinds(found):
        table.add_row(name, *shares)
    console.print(table)
