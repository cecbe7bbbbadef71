"""The tables of causes: does a network use what it attends to?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import TableOfRows, measures_of, missing
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.causal import Causal
from mechgap.measures.internal import ROWS
from mechgap.report.measures import FOIL_COLUMNS, foil_name, known, verdicts

_UNDER = ("own", "hardened", "sharper", "softer", "uniform", "self", "floor")


@dataclass(frozen=True)
class CausalTable(TableOfRows):
    """Accuracy when attention is replaced."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Means over seeds."""
        head = ("", "mechanism", *(f"{under} (%)" for under in _UNDER), "exact (%)",
                *(f"exact in {rows} rows only (%)" for rows in ROWS), "seeds")  # fmt: skip
        rows, data = [], []
        for label, mechanism, found in _people(self, results):
            if not found:
                rows.append((label, "-", mechanism, *["-"] * (len(head) - 4), "0"))
                continue
            numbers = {
                under: _mean([c.without_mechanism[under] for c in found]) for under in _UNDER
            }
            forced = [c.mechanisms[mechanism] for c in found if mechanism in c.mechanisms]
            numbers["exact"] = _mean([f.exact for f in forced])
            numbers |= {f"exact in {r}": _mean([f.rows[r] for f in forced]) for r in ROWS}
            rows.append((label, mechanism or "-", *map(_number, numbers.values()), str(len(found))))
            data.append({"row": label, "mechanism": mechanism, **numbers})
        return Rendered(name, self.caption, head, rows, self.remarks, data)


@dataclass(frozen=True)
class FoilTable(TableOfRows):
    """Which parts of a mechanism a network uses."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Means over seeds, and how many seeds use the part."""
        head = ("", "mechanism", "wrong", "cases",
                *(f"{title} (%)" for title in FOIL_COLUMNS.values()), "this part is",
                "seeds")  # fmt: skip
        rows, data = [], []
        for label, mechanism, found in _people(self, results):
            forced = [c.mechanisms[mechanism] for c in found if mechanism in c.mechanisms]
            forced = [f for f in forced if f.foils]
            if not forced:
                continue
            for foils in zip(*(f.foils for f in forced), strict=True):
                wrong = foil_name(foils[0], forced[0].foils)
                numbers = {key: _mean([getattr(f, key) for f in foils]) for key in FOIL_COLUMNS}
                rows.append(
                    (label, mechanism, wrong, f"{foils[0].cases:,}",
                     *map(_number, numbers.values()), verdicts(foils), str(len(foils)))
                )  # fmt: skip
                data.append(
                    {"row": label, "mechanism": mechanism, "part": foils[0].part,
                     "phase": foils[0].phase, "cases": foils[0].cases, **numbers,
                     "verdicts": [f.verdict for f in foils]}
                )  # fmt: skip
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def _people(table: TableOfRows, results: Path) -> Iterator[tuple[str, str, Sequence[Causal]]]:
    """Every population with every mechanism, and the compiled network beside it.

    Where nothing is measured: nobody, and what is missing instead of the mechanism.
    """
    for row in table.rows:
        measures = measures_of(results, row.population)
        learned = [r.causal for r in measures.seeds if r.causal] if measures else []
        if measures is None or not learned:
            yield row.label, missing(row.population, results), []
            continue
        people = {row.label: learned}
        compiled = measures.baselines.get("compiled")
        if compiled and compiled.causal:
            people[f"{row.population.task}, compiled"] = [compiled.causal]
        for label, each in people.items():
            for mechanism in each[0].mechanisms or ("",):
                yield label, mechanism, each


def _mean(values: Sequence[float]) -> float | None:
    each = known(values)
    return 100 * sum(each) / len(each) if each else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
