"""Why networks fail, as rows: what was first wrong, and at what kind of node."""

from collections.abc import Iterable, Mapping, Sequence

from mechgap.measures.failing import FIRSTS, Failing
from mechgap.measures.interchange.measure import Interchange
from mechgap.measures.interchange.reading import Reading
from mechgap.measures.results import Results
from mechgap.report.measures import percent, tabular, wide_console

NOTE = (
    "Of the nodes of the test graphs that are answered wrongly. First wrong: the node's attention "
    "(in a step that updates it, most of it on a sender that no correct run could have chosen), or "
    "a hint of it. After another: another node of the graph was wrong before. Below, how common a "
    "kind of node is among the wrong ones and among all; late and many: the last quarter of all. "
    "Where variables were interchanged: the state is wrong first if it is before any hint or the "
    "attention of the node is; what is not read rightly nine times in ten cannot tell."
)
KIND_HEAD = ("kind of node", "of the wrong ones", "of all")
STATE_HEAD = ("variable of the state", "wrong before either", "read rightly")


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


def states(networks: Iterable[Mapping[str, Interchange]]) -> list[tuple[str, list[str]]]:
    """By variable of a mechanism: of the wrong nodes, those at which the hidden state says it
    wrongly before a hint or attention is wrong; and how often it is read rightly."""
    found: dict[str, list[Reading]] = {}
    for network in networks:
        for mechanism, interchange in network.items():
            for variable, carried in interchange.variables.items():
                if carried.reading is not None:
                    found.setdefault(f"{mechanism}: {variable}", []).append(carried.reading)
    return [
        (name, [percent([r.wrong_first for r in each]),
                percent([r.right for r in each])])
        for name, each in found.items()
    ]  # fmt: skip


def show_failing(results: Results) -> None:
    """Print these tables, if anything is wrong."""
    found = failing(results)
    if not found:
        return
    console = wide_console()
    head, cells = firsts(found)
    table = tabular(*head)
    table.add_row(*cells)
    console.print()
    console.print(table)
    state = states(m.interchange for m in results.networks)
    for head, rows in ((KIND_HEAD, kinds(found)), (STATE_HEAD, state)):
        table = tabular(*head)
        for name, shares in rows:
            table.add_row(name, *shares)
        if rows:
            console.print(table)
