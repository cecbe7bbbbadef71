"""`docs/replication.md`: every table and figure on one page, made from `results/` alone."""

from collections.abc import Sequence
from pathlib import Path

from mechgap.experiments.replication.figures import FIGURES
from mechgap.experiments.replication.rendering import Rendered, markdown
from mechgap.experiments.replication.tables import TABLES

_INTRODUCTION = """\
# The paper beside our own runs

Made by `mechgap reproduce page` from the numbers in [`results/`](../results): nothing here is typed
by hand. Accuracy is that of outputs on the test graphs, in percent: mean ± standard deviation
(largest) over seeds, each seed with the parameters of its best validation score. *Agree*: the means
differ by no more than chance would have it, if our seeds were of the paper's population (Student's
t at 5 %, with the deviations and seeds of both).
*Last*: the same seeds with the parameters of the last step. The best validation score is the first
that is reached, as in dm-clrs, and where that is early the last parameters are better.

`mechgap reproduce TABLE` trains (or goes on with) what a table needs; `mechgap reproduce all
--budget 2h` spends a given time where it tells most; `mechgap reproduce status` shows what is done.
Runs and numbers of your own are kept in `reproduction/`. With `--results results` you go on from
these: seeds whose numbers are here are not trained again, further ones join them. Only distances
between solutions need networks, which are not kept here, so they are of seeds trained together.
"""


def replication_page(results: Path, figures: Path | None = None) -> str:
    """The page; with the drawings in a folder beside it, if there is one."""
    tables = [table.rendered(name, results) for name, table in TABLES.items()]
    parts = [_INTRODUCTION, _summary(tables), "## Tables\n"]
    parts += [f"`mechgap reproduce {table.name}`\n\n{markdown(table)}" for table in tables]
    if figures is not None:
        parts.append(_figures(figures))
    return "\n".join(parts)


def _summary(tables: Sequence[Rendered]) -> str:
    """Which rows agree, disagree, or wait."""
    short = "have too few steps or seeds to tell"
    found: dict[str, list[str]] = {"agree": [], "disagree": [], short: [], "have not been run": []}
    for table in tables:
        for row in table.data:
            if row.get("paper") is None or "agree" not in row:
                continue
            name = f"{table.name}: {row['row']}"
            if row["ours"] is None:
                found["have not been run"].append(name)
            else:
                verdict = {True: "agree", False: "disagree", None: short}[row["agree"]]
                found[verdict].append(name)
    lines = [
        "## In short\n",
        f"Of the paper's accuracies and correlations, {len(found['agree'])} agree with ours.\n",
    ]
    lines += [f"- {kind}: {'; '.join(names) or 'none'}." for kind, names in found.items()]
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
