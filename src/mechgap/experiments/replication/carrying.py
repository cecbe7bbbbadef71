"""Is softness a message? What attention carries of a task's weights, by population, as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import TableOfRows, measures_of, missing
from mechgap.experiments.replication.numbers import KeptNetwork
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.channels import Channels
from mechgap.report.measures import FOLLOWED, follows, mean_of, verdicts
from mechgap.typed import plain


@dataclass(frozen=True)
class ChannelsTable(TableOfRows):
    """Whether an edge's weight can be read from attention, and which weights numbers follow."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each number of a population, and of the untrained network beside it."""
        head = ("", "network", "read from attention", "from the hidden state", "number",
                *FOLLOWED.values(), "comes by", "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            measures = measures_of(results, row.population)
            found = {} if measures is None else {
                "learned": _known(measures.seeds),
                "untrained": _known(
                    [measures.baselines[w] for w in ("untrained",) if w in measures.baselines]
                ),
            }  # fmt: skip
            if not found.get("learned"):
                known = measures is not None
                told = (
                    "measured before this was asked" if known else missing(row.population, results)
                )
                rows.append((row.label, told, *["-"] * (len(head) - 3), "0"))
                data.append({"row": row.label, "missing": told})
                continue
            for who, each in found.items():
                rows += [(row.label, who, *cells, str(len(each))) for cells in _cells(each)]
                data.append({"row": row.label, "network": who, "channels": plain(each)})
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def _known(networks: Sequence[KeptNetwork]) -> list[Channels]:
    return [each.channels for each in networks if each.channels is not None]


def _cells(found: Sequence[Channels]) -> list[tuple[str, ...]]:
    """A row for each number; one without, where no number is predicted."""
    if not found:
        return []
    read = [mean_of([getattr(c, kind) for c in found]) for kind in ("attention", "hidden")]
    rows = []
    for number in found[0].numbers:
        each = [one.numbers[number] for one in found]
        under = [one.first.under for one in each]
        cells = (follows([u[key] for u in under if key in u]) for key in FOLLOWED)
        rows.append((*read, number, *cells, verdicts(each)))
    return rows or [(*read, "-", *["-"] * (len(FOLLOWED) + 1))]
