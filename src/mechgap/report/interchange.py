"""Interchange interventions as rows: variable by variable, the networks beside their baselines."""

from collections.abc import Iterator, Sequence

import numpy as np

from mechgap.measures.interchange.agreement import Agreement
from mechgap.measures.interchange.measure import Carried, Interchange, score
from mechgap.measures.results import NetworkMeasures, Results
from mechgap.report.measures import people, percent, tabular, wide_console

COLUMNS = (
    "directions",
    "outputs follow",
    "next hints follow",
    "outputs, 64 nodes",
    "random directions",
    "of another node",
    "whole state",
    "read rightly",
    "first wrong",
)
LEARNED = "learned"
NOTE = (
    "One variable of the program is put from one run into another at one node, and both go on. "
    "Follow: cases in which the network then answers as the program does, wherever that makes a "
    "difference (test cases on graphs of 16 nodes). Directions: how much of the hidden state is "
    "put in, found on other cases; hints that say the variable are put in, too. Beside it, about "
    "outputs (of hints, where no output changes): as many random directions; the same directions "
    "from another node of the source run; and all of the node's state. Where hints alone say the "
    "variable, as in compiled networks, random directions follow too. An untrained network has its "
    "directions sought in the same way. Read rightly: the variable as these directions say it at "
    "every node and step of the test graphs (least squares on other graphs of 16 nodes). First "
    "wrong: of the nodes that are answered wrongly, those at which it is wrong before any hint or "
    "attention of the node is; told of variables of which nine in ten are read rightly."
)


def show_interchange(results: Results) -> None:
    """Print the table, if variables were interchanged."""
    found = list(rows(results))
    if not found:
        return
    table = tabular("does it compute …", "", *COLUMNS)
    for variable, name, cells in found:
        table.add_row(variable, name, *cells)
    console = wide_console()
    console.print()
    console.print(table)


def interchanged(results: Results) -> dict[str, list[NetworkMeasures]]:
    """Learned networks and baselines whose variables were interchanged."""
    asked = {
        name: [row for row in rows if row.interchange]
        for name, rows in people(results, LEARNED).items()
    }
    return {name: rows for name, rows in asked.items() if rows}


def rows(results: Results) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Mechanism and variable, who, and the cells of `COLUMNS`."""
    for variable, name, each in carried_by(results):
        yield variable, name, cells(each)


def by_directions(results: Results) -> Iterator[tuple[str, str, dict[int, float]]]:
    """Mechanism and variable, who, and the mean share that follows by how many directions are put
    in, where their number was chosen; not of the compiled network, whose layout says it."""
    for variable, name, each in carried_by(results):
        tried = sorted({k for one in each for k in one.curve})
        if len(tried) > 1:
            means = {k: [one.curve[k] for one in each if k in one.curve] for k in tried}
            yield variable, name, {k: float(np.mean(values)) for k, values in means.items()}


def carried_by(results: Results) -> Iterator[tuple[str, str, list[Carried]]]:
    """Mechanism and variable, who, and what was found about each of them."""
    everyone = interchanged(results)
    for mechanism in results.mechanisms:
        for variable in _variables(mechanism, everyone):
            for name, asked in everyone.items():
                found = [m.interchange[mechanism] for m in asked if mechanism in m.interchange]
                each = [i.variables[variable] for i in found if variable in i.variables]
                if each:
                    yield f"{mechanism}: {variable}", name, each


def without_cases(results: Results) -> dict[str, tuple[str, ...]]:
    """By mechanism, the variables of which nothing follows."""
    found = [m.interchange for rows in interchanged(results).values() for m in rows]
    return {name: i.without_cases for each in found for name, i in each.items() if i.without_cases}


def scores(results: Results, mechanism: str) -> list[tuple[str, float, float]]:
    """Of each network: who it is, its agreement with a mechanism, and its interchange score."""
    everyone = {f"seed {seed}": row for seed, row in results.seeds.items()}
    everyone |= {name: results.baselines[name] for name in ("untrained", "compiled")
                 if name in results.baselines}  # fmt: skip
    return [
        (name, row.gaps["test"][mechanism].agreement, row.interchange[mechanism].score)
        for name, row in everyone.items()
        if mechanism in row.interchange
    ]


def _variables(mechanism: str, everyone: dict[str, list[NetworkMeasures]]) -> list[str]:
    of_it: list[Interchange] = [
        m.interchange[mechanism]
        for asked in everyone.values()
        for m in asked
        if mechanism in m.interchange
    ]
    return list(dict.fromkeys(name for found in of_it for name in found.variables))


def cells(each: Sequence[Carried]) -> list[str]:
    """One variable in some networks: the cells of `COLUMNS`."""
    dimensions = f"{np.median([c.dimensions for c in each]):.0f}"
    return [
        dimensions,
        percent([c.small.outputs.follows for c in each]),
        percent([c.small.hints.follows for c in each]),
        percent([c.large.outputs.follows for c in each if c.large is not None]),
        *(
            percent([score_beside(c, getattr(c, k)) for c in each])
            for k in ("random", "shuffled", "whole")
        ),
        percent([c.reading.right for c in each if c.reading is not None]),
        percent([c.reading.wrong_first for c in each if c.reading is not None]),
    ]


def score_beside(carried: Carried, baseline: Agreement) -> float:
    """A baseline's score, about what the variable's own score is about."""
    return score(baseline) if carried.small.outputs.cases else baseline.hints.follows
