"""Why the answers of populations are wrong, as a table."""

from dataclasses import dataclass
from pathlib import Path

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import TableOfRows, measures_of, missing
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.failing import FIRSTS
from mechgap.report.failing import firsts, kinds, states
from mechgap.typed import plain


@dataclass(frozen=True)
class FailingTable(TableOfRows):
    """What was first wrong at nodes that are answered wrongly, and of what kind they are."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each population: means over the seeds that have wrong answers."""
        head = ("", "nodes answered wrongly", *(f"first wrong: {first}" for first in FIRSTS),
                "after another node", "the state, before either (read rightly)",
                "kinds of nodes: of the wrong ones (of all)", "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            measures = measures_of(results, row.population)
            seeds = measures.seeds if measures is not None else ()
            found = [each.failing for each in seeds if each.failing is not None]
            wrong = [each for each in found if each.nodes]
            data.append({"row": row.label, "seeds": plain(found)})
            if not wrong:
                told = "nothing is wrong" if found else _told(row.population, results)
                rows.append((row.label, told, *["-"] * (len(head) - 3), str(len(found))))
                continue
            _, cells = firsts(wrong)
            told = "; ".join(f"{kind} {of[0]} ({of[1]})" for kind, of in kinds(wrong))
            state = states(seed.interchange for seed in seeds)
            held = "; ".join(f"{name} {of[0]} ({of[1]})" for name, of in state) or "-"
            rows.append((row.label, *cells, held, told, f"{len(wrong)} of {len(found)}"))
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def _told(population: Population, results: Path) -> str:
    known = measures_of(results, population) is not None
    return "measured before this was asked" if known else missing(population, results)
