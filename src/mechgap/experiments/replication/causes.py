"""The table of causes: does a network use what it attends to?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import TableOfRows, measures_of
from mechgap.experiments.replication.objectives import missing
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.internal import ROWS

_UNDER = ("own", "hardened", "sharper", "softer", "uniform", "self", "floor")


@dataclass(frozen=True)
class CausalTable(TableOfRows):
    """Accuracy when attention is replaced, and which parts of a mechanism are used."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Means over seeds, and for every foil how many seeds use what it lacks."""
        head = ("", "mechanism", *(f"{under} (%)" for under in _UNDER), "exact (%)",
                *(f"exact in {rows} rows only (%)" for rows in ROWS),
                "wrong key: right, named (%)", "key", "wrong mask: right (%)", "mask",
                "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            measures = measures_of(results, row.population)
            known = [r for r in (measures or {"seeds": []})["seeds"] if r.get("causal")]
            if measures is None or not known:
                empty = ["-"] * (len(head) - 4)
                rows.append((row.label, "-", missing(row.population, results), *empty, "0"))
                continue
            people = {row.label: [r["causal"] for r in known]}
            compiled = measures["yardsticks"].get("compiled")
            if compiled and compiled.get("causal"):
                people[f"{row.population.task}, compiled"] = [compiled["causal"]]
            for label, each in people.items():
                for mechanism in each[0]["mechanisms"] or (None,):
                    cells, numbers = _causal_cells(each, mechanism)
                    rows.append((label, mechanism or "-", *cells, str(len(each))))
                    data.append({"row": label, "mechanism": mechanism, **numbers})
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def _causal_cells(
    found: Sequence[Mapping[str, Any]], mechanism: str | None
) -> tuple[list[str], dict[str, Any]]:
    def mean(values: Sequence[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return 100 * sum(known) / len(known) if known else None

    flat = [{**c, **c["tempered"], **c["fixed"]} for c in found]
    numbers: dict[str, Any] = {under: mean([f[under] for f in flat]) for under in _UNDER}
    if mechanism is None:
        return [*map(_number, numbers.values()), *["-"] * 8], numbers
    forced = [c["mechanisms"][mechanism] for c in found]
    numbers["exact"] = mean([f["exact"] for f in forced])
    numbers |= {f"exact in {r}": mean([f["rows"][r] for f in forced]) for r in ROWS}
    cells = [*map(_number, numbers.values())]
    for part in ("key", "mask"):
        foils = [f["foils"][part] for f in forced]
        verdicts = [foil["verdict"] for foil in foils]
        numbers[part] = {
            "right": mean([foil["right"] for foil in foils]),
            "named": mean([foil["named"] for foil in foils]),
            "verdicts": {v: verdicts.count(v) for v in dict.fromkeys(verdicts)},
        }
        right = _number(numbers[part]["right"])
        named = f", {_number(numbers[part]['named'])}" if part == "key" else ""
        counts = numbers[part]["verdicts"].items()
        cells += [f"{right}{named}", ", ".join(f"{v} {n}" for v, n in counts)]
    return cells, numbers


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
