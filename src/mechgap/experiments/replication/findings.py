"""`docs/findings.md`: what was found, in a few pages, made from `results/` alone.

Sentences say how to read what stands beside them; every number is read from a table or counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import measures_of
from mechgap.experiments.replication.library import BF, BFS
from mechgap.experiments.replication.numbers import KeptMeasures
from mechgap.experiments.replication.page import VERDICTS, by_verdict
from mechgap.experiments.replication.parts import mean_parts
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered, markdown_rows
from mechgap.experiments.replication.tables import TABLES

_INTRODUCTION = """\
# What was found

A network can answer as an algorithm does without running it. The paper compiles breadth-first
search (BFS) and Bellman-Ford into a graph attention network, trains populations of the same
network, and finds their attention far from the compiled one. These pages say what became of that
here, and of the question that follows: what do they run instead?

Made by `mechgap reproduce findings` from the numbers in `results/`; every table is
part of one in [replication](replication.md), which says how each was made. Intervals are 95 %,
deviations are over seeds. What is meant by agreement, tv and the like is in
the [glossary](glossary.md).
"""


@dataclass(frozen=True)
class Excerpt:
    """Some rows and columns of a table."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[str, ...] = ()
    """By their first cell; all of them if none is named."""

    def markdown(self, tables: Mapping[str, Rendered]) -> str:
        """As Markdown, with where it is from."""
        table = tables[self.table]
        places = [table.head.index(column) for column in self.columns]
        chosen = [row for row in table.rows if not self.rows or row[0] in self.rows]
        cells = [[row[0], *(row[place] for place in places)] for row in chosen]
        head = [table.head[0], *self.columns]
        return f"{markdown_rows(head, cells)}\n*From* `mechgap reproduce {self.table}`.\n"


@dataclass(frozen=True)
class Section:
    """A heading, what is to be said, and what shows it."""

    heading: str
    prose: str
    shown: Sequence[Excerpt | str]
    """Excerpts, and figures by their file's name."""


def findings_page(results: Path, figures: Path) -> str:
    """The page, beside a folder with the drawings."""
    judge = Judge.of(TABLES.values(), results)
    tables = {name: table.rendered(name, results, judge) for name, table in TABLES.items()}
    parts = [_INTRODUCTION]
    for number, section in enumerate(_sections(results, tables), start=1):
        parts.append(f"## {number}. {section.heading}\n\n{section.prose}\n")
        for shown in section.shown:
            if isinstance(shown, Excerpt):
                parts.append(shown.markdown(tables))
            elif (figures / f"{shown}.png").exists():
                parts.append(f"![{section.heading}]({figures.name}/{shown}.png)\n")
    return "\n".join(parts)


def _sections(results: Path, tables: Mapping[str, Rendered]) -> list[Section]:
    return [
        Section(
            "What replicates",
            _replicates(tables),
            [
                Excerpt(
                    "baselines",
                    ("paper (%)", "ours (%)", "difference (95 % interval)", "verdict",
                     "graph accuracy (%)"),
                )
            ],
        ),
        Section(
            "What the gap is made of",
            " ".join(_gap(results, population) for population in (BFS, BF))
            + " Accuracy under hardened attention says whether the rest of a row is noise or a "
            "message.",
            [
                Excerpt(
                    "parts",
                    ("mechanism", "tv, all nodes (%)", "updated nodes: wrong", "soft", "tie",
                     "unchanged nodes", "inactive nodes", "seeds"),
                    ("bfs", "bellman_ford"),
                ),
                "gap_parts_bfs",
                Excerpt(
                    "causal",
                    ("mechanism", "own (%)", "hardened (%)", "exact (%)", "uniform (%)",
                     "floor (%)", "seeds"),
                    ("bfs", "bellman_ford"),
                ),
            ],
        ),
        Section(
            "The paper's two sentences",
            'That there is "no significant correlation between faithfulness and accuracy" (a), and '
            'that the gap is "far beyond the amount that would be explained by tie-breaking or '
            'attention sharpness" (b), was put to tests that were written down '
            "([preregistration](preregistration.md)) before the seeds that decide were trained. "
            + " ".join(tables["sentences"].remarks[1:]),
            [
                Excerpt("sentences", ("sentence", "what", "ours", "95 % interval", "p", "verdict",
                                      "count"))
            ],
        ),
        Section(
            "When the mechanism forms",
            "Every seed is looked at on its way. Where attention is half way there before accuracy "
            "is, it is not what is learned last; where agreement is largest early and less at the "
            "end, training goes on to take it away.",
            [
                Excerpt("forming", ("measure", "untrained (%)", "first look (%)", "last (%)",
                                    "half way there", "largest", "seeds")),
                "forming",
            ],
        ),
        Section(
            "What the networks run, and what they compute",
            "Decompiling searches for a program whose rule selects whom a network attends to, and "
            "makes the network attend so: if it then answers as before, that is what it runs "
            "([decompiling](decompiling.md)). Interchange asks the other half: put a variable's "
            "value from one run into another, does the network follow as the program does "
            "([measures](measures.md))?",
            [
                Excerpt("programs", ("verdict", "seeds", "agrees (%)", "own (%)", "rule (%)",
                                     "the program alone (%)")),
                Excerpt("computes", ("variable", "outputs follow", "random directions", "untrained",
                                     "compiled", "seeds")),
                "attends_and_computes",
            ],
        ),
        Section(
            "Whether softness is a message",
            "Where making a network attend exactly costs accuracy, its softness may carry what the "
            "exact attention does not: Bellman-Ford without edge information has no other way for "
            "an edge's weight. Attention is computed from other weights, everything else stays "
            "true; which weights does the predicted distance follow? Cells: R² with the true / "
            "with the other weights, after the first step ([decompiling](decompiling.md)).",
            [
                Excerpt("channels", ("network", "read from attention", "from the hidden state",
                                     "number", "own attention", "of other weights", "hardened",
                                     "comes by", "seeds")),
            ],
        ),
        Section(
            "What size does",
            "A mechanism that is run does not depend on size: the compiled networks' lines are "
            "flat. Of learned ones attention and answers are told apart, because one may last "
            "longer than the other ([large graphs](large.md)). Cells: outputs / whole graphs that "
            "are right / top-1 agreement on updated nodes, in percent.",
            [
                Excerpt("at_sizes", ("graphs", "16 nodes", "64 nodes", "1,600 nodes", "seeds"),
                        tuple(dict.fromkeys(r[0] for r in tables["at_sizes"].rows
                                            if not r[0].endswith("compiled")))),
                "at_sizes",
            ],
        ),
        Section(
            "What teaching changes",
            "The same networks, taught whom to attend to, or also what to hold, by the exact "
            "program ([teaching](teaching.md)). A network that runs the program and is out of step "
            "agrees little with its run, and much with what it would select from the network's own "
            "state: the second table. The figure: depth-first search, learned by hints alone and "
            "taught, by kind and size of graphs.",
            [
                Excerpt("teaching", ("accuracy (%)", "graph accuracy (%)", "top-1 agreement (%)",
                                     "tv, all nodes (%)", "seeds", "steps")),
                Excerpt("from_own_state", ("graphs", "output accuracy (%)", "its run (%)",
                                           "from its own state (%)", "seeds"),
                        tuple(dict.fromkeys(r[0] for r in tables["from_own_state"].rows
                                            if r[-1] != "0"))),
                "dfs_learned",
            ],
        ),
        Section("What is open", _open(tables), []),
    ]  # fmt: skip


def _replicates(tables: Mapping[str, Rendered]) -> str:
    """How many of the printed numbers differ, are the same, or cannot be told."""
    found = by_verdict(list(tables.values()))
    counts = {kind: len(found[kind]) for kind in VERDICTS}
    differ = "; ".join(found["differs"]) or "none"
    return (
        f"Of {sum(counts.values())} numbers and effects that the paper prints and that were run "
        f"for as long, {counts['differs']} differ, {counts['equivalent']} are equivalent, and of "
        f"{counts['cannot tell']} so few seeds cannot tell. Those that differ: {differ}."
    )


def _gap(results: Path, population: Population) -> str:
    """What a population's gap is made of, in a sentence."""
    measures = measures_of(results, population)
    if measures is None:
        return f"{population.name} is not measured."
    name = measures.reference or ""
    parts = mean_parts([seed.gaps[name].parts for seed in measures.seeds if seed.gaps[name].parts])
    whole = sum(sum(each.values()) for each in parts.values())
    updated = sum(parts["updated"].values())
    return (
        f"In {population.task} ({len(measures.seeds)} seeds) {100 * whole:.1f} % of all attention "
        f"is misplaced, beside {name}. {100 * updated / whole:.0f} % of that is on nodes that the "
        f"algorithm updates; there the largest entry is on a sender that a correct run could have "
        f"chosen in {100 * _agreement(measures, name):.1f} % of cases."
    )


def _agreement(measures: KeptMeasures, name: str) -> float:
    return mean(seed.gaps[name].agreement for seed in measures.seeds)


def _open(tables: Mapping[str, Rendered]) -> str:
    """What waits, by the tables themselves."""
    waiting = [
        f"`{name}`: {row[0]}"
        for name, table in tables.items()
        for row in table.rows
        if any(cell.startswith(("not run", "trained, not", "measured, not")) for cell in row)
    ]
    few = [
        f"- Rows that are not run, or not studied yet ({len(waiting)}): {'; '.join(waiting)}."
        if waiting
        else "- Every row of every table has numbers."
    ]
    cannot = by_verdict(list(tables.values()))["cannot tell"]
    few.append(f"- Rows of which so few seeds cannot tell ({len(cannot)}): {'; '.join(cannot)}.")
    return "\n".join(few)
