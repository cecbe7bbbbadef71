"""`docs/replication.md`: every table and figure on one page, made from `results/` alone."""

from collections.abc import Sequence
from pathlib import Path

from mechgap.experiments.replication.figures import FIGURES
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.rendering import Rendered, markdown
from mechgap.experiments.replication.tables import TABLES

_INTRODUCTION = """\
# The paper beside our own runs

Made by `mechgap reproduce page` from the numbers in `results/`: nothing here is typed
by hand. Accuracy is that of outputs on the test graphs, in percent: mean ± standard deviation
(largest) over seeds, each seed with the parameters of its best validation score. *Last*: the same
seeds with the parameters of the last step. The best validation score is the first that is reached,
as in dm-clrs, and where that is early the last parameters are better.

Not to differ is not to agree, so there are three verdicts. *Differs*: the hypothesis that our seeds
are of the paper's population (Student's t, with the deviation and seeds of both) is rejected at
5 %, after Holm's correction for all tests of this page. *Equivalent*: two one-sided tests at 5 %
say that the difference is less than one of the paper's standard deviations (of a change's effect:
half of it; of a correlation: 0.3 in Fisher's z). *Cannot tell*: neither, with the difference that
so many seeds would have seen in four of five cases. Where the question is what a change does, that
effect is compared, not its rows.

`mechgap reproduce TABLE` trains (or resumes) what a table needs; `mechgap reproduce all
--budget 2h` spends a given time on the seeds that narrow most intervals; `mechgap reproduce status`
shows what is done.
Runs and numbers of your own are kept in `reproduction/`. With `--results results` you resume from
these: seeds whose numbers are here are not trained again, further ones join them. What was seen of
every seed along its training is in `results/snapshots/`, a fingerprint of its attention in
`results/fingerprints/`. The same seed on another kind of processor rounds otherwise, and becomes
another network of the same population.
"""


def replication_page(results: Path, figures: Path | None = None) -> str:
    """The page; with the drawings in a folder beside it, if there is one."""
    figures = figures if figures is not None and figures.is_dir() else None
    judge = Judge.of(TABLES.values(), results)
    tables = [table.rendered(name, results, judge) for name, table in TABLES.items()]
    parts = [_INTRODUCTION, _summary(tables, judge), "## Tables\n"]
    for table in tables:
        parts.append(f"`mechgap reproduce {table.name}`\n\n{markdown(table)}")
        if figures is not None and (figures / f"{table.name}.png").exists():
            parts.append(f"![{table.caption}]({figures.name}/{table.name}.png)\n")
    if figures is not None:
        parts.append(_figures(figures))
    return "\n".join(parts)


VERDICTS = ("differs", "equivalent", "cannot tell")
_SHORT, _NOT_RUN = "trained for fewer steps than the paper's", "not run"


def by_verdict(tables: Sequence[Rendered]) -> dict[str, list[str]]:
    """The rows that the paper prints: which differ, are equivalent, cannot tell, or wait."""
    found: dict[str, list[str]] = {kind: [] for kind in (*VERDICTS, _SHORT, _NOT_RUN)}
    told: set[str] = set()
    for table in tables:
        for row in table.data:
            if row.get("paper") is None or "verdict" not in row:
                continue
            what = row.get("contrast") or row.get("population") or f"{table.name}: {row['row']}"
            if what in told:  # printed in two tables
                continue
            told.add(what)
            name = f"{table.name}: {row['row']}"
            if row["ours"] is None:
                found[_NOT_RUN].append(name)
            elif row["verdict"] is None:
                found[_SHORT].append(name)
            else:
                kind = next(kind for kind in VERDICTS if row["verdict"].startswith(kind))
                found[kind].append(name)
    return found


def _summary(tables: Sequence[Rendered], judge: Judge) -> str:
    """The verdicts, with the rows of each."""
    lines = ["## In short\n", f"{len(judge.adjusted)} tests, corrected together.\n"]
    lines += [
        f"- **{kind}** ({len(names)}): {'; '.join(names)}."
        for kind, names in by_verdict(tables).items()
        if names
    ]
    return "\n".join(lines) + "\n"


def _figures(folder: Path) -> str:
    lines = ["## Figures\n", "Drawn by `mechgap reproduce figures` from the measured runs.\n"]
    for figure in FIGURES:
        lines.append(f"### {figure.caption}\n")
        for name in dict.fromkeys(map(figure.file, figure.populations)):
            drawn = name.removeprefix(f"{figure.drawing}_")
            if (folder / f"{name}.png").exists():
                lines.append(f"![{figure.caption}, {drawn}]({folder.name}/{name}.png)")
            else:
                lines.append(f"{drawn}: not drawn yet.")
            lines.append("")
    return "\n".join(lines)
