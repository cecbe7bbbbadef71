"""The table of parts: what the gap is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import TableOfRows, measures_of, missing
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.internal import KINDS, ROWS, Parts
from mechgap.report.measures import BASELINES


@dataclass(frozen=True)
class PartsTable(TableOfRows):
    """What the gap in all rows is made of, for every mechanism, beside attention without skill."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Means over seeds; the parts add up to the first column."""
        head = ("", "mechanism", "tv, all nodes (%)", "updated nodes: wrong", "soft", "tie",
                "unchanged nodes", "inactive nodes", "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            measures = measures_of(results, row.population)
            if measures is None or not measures.seeds:
                rows.append((row.label, "-", missing(row.population, results), *["-"] * 5, "0"))
                continue
            known = [r.gaps for r in measures.seeds if r.gaps]
            known = [gaps for gaps in known if all(gap.parts for gap in gaps.values())]
            held = {n: y.gaps for n, y in measures.baselines.items() if n != "compiled"}
            for mechanism in known[0] if known else ():
                beside = {row.label: [gaps[mechanism] for gaps in known]}
                beside |= {
                    f"{row.population.task}, {BASELINES[n]}": [gaps[mechanism]]
                    for n, gaps in held.items()
                    if mechanism in gaps and gaps[mechanism].parts
                }
                for label, gaps in beside.items():
                    parts = mean_parts([gap.parts for gap in gaps])
                    data.append({"row": label, "mechanism": mechanism, "parts": parts})
                    seeds = str(len(gaps)) if label == row.label else "-"
                    rows.append((label, mechanism, *_part_cells(parts), seeds))
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def mean_parts(several: Sequence[Parts]) -> dict[str, dict[str, float]]:
    """The mean of the parts of some gaps."""
    return {
        rows: {kind: mean(parts[rows][kind] for parts in several) for kind in KINDS}
        for rows in ROWS
    }


def made_of(several: Sequence[Parts]) -> str:
    """In percent, wrong, soft and tie on updated nodes, and all that is on others: their sum is tv.

    >>> halves = {rows: {"wrong": 0.25, "soft": 0.0, "tie": 0.0} for rows in ROWS}
    >>> made_of([halves]), made_of([])
    ('25.0 + 0.0 + 0.0 + 50.0', '-')
    """
    if not several:
        return "-"
    parts = mean_parts(several)
    updated = [parts["updated"][kind] for kind in ("wrong", "soft", "tie")]
    others = sum(parts["unchanged"].values()) + sum(parts["inactive"].values())
    return " + ".join(f"{100 * value:.1f}" for value in (*updated, others))


def _part_cells(parts: Mapping[str, Mapping[str, float]]) -> list[str]:
    updated = parts["updated"]
    whole = {rows: sum(each.values()) for rows, each in parts.items()}
    values = [sum(whole.values()), updated["wrong"], updated["soft"], updated["tie"],
              whole["unchanged"], whole["inactive"]]  # fmt: skip
    return [f"{100 * value:.2f}" for value in values]
