"""Tables of populations by accuracy and gaps: does the gap close? What is it made of?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mechgap.experiments.replication.comparison import LEVEL, Spread, holm, permutation_p
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Row, TableOfRows, measures_of, not_run
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.internal import KINDS, ROWS
from mechgap.report.measures import YARDSTICKS

COLUMNS = {
    "accuracy": "accuracy (%)",
    "graph_accuracy": "graphs right (%)",
    "external": "hint accuracy (%)",
    "agreement": "agreement (%)",
    "misplaced": "misplaced there (%)",
    "hardened": "accuracy, hardened (%)",
    "tv": "tv, all rows (%)",
}


def values_of(row: Mapping[str, Any], mechanism: str | None) -> dict[str, float | None]:
    """What was measured of one network beside one mechanism; None where it was not."""
    gap = row["gaps"].get(mechanism, {})
    causal = row.get("causal")
    return {
        **{key: row.get(key) for key in ("accuracy", "graph_accuracy", "external")},
        **{key: gap.get(key) for key in ("agreement", "misplaced", "tv")},
        "hardened": causal["tempered"]["hardened"] if causal else None,
    }


@dataclass(frozen=True)
class ObjectivesTable(TableOfRows):
    """Does the gap close? Populations by accuracy, internal and external gap."""

    yardsticks: bool = False
    """Whether each task's rows are followed by what they are to be held against."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Each population's measures, and whether they differ from those of its task's first."""
        columns = [_columns(row.population, results) for row in self.rows]
        tasks = [row.population.task for row in self.rows]
        firsts = [columns[tasks.index(task)] for task in tasks]
        chances = holm(
            {
                f"{k} {c}": permutation_p(found[c], first[c])
                for k, (found, first) in enumerate(zip(columns, firsts, strict=True))
                for c in COLUMNS
                if found is not first and found.get(c) and first.get(c)
            }
        )
        rows, data = [], []
        for k, (row, found) in enumerate(zip(self.rows, columns, strict=True)):
            cells = [_text(found.get(c), chances.get(f"{k} {c}")) for c in COLUMNS]
            if not found:
                cells[0] = _missing(row.population, results)
            seeds = str(max((len(v) for v in found.values()), default=0))
            rows.append((row.label, *cells, seeds, f"{row.population.recipe.train_steps:,}"))
            spreads = {c: asdict(Spread.of(v)) for c, v in found.items() if v}
            data.append({"row": row.label, "population": row.population.name, **spreads})
            if self.yardsticks and tasks[k] not in tasks[k + 1 :]:
                held = [r for r in self.rows if r.population.task == tasks[k]]
                rows += _yardstick_rows(held, results)
        star = (
            "* differs from the task's first row (permutations of seeds, at 5 % after Holm's "
            "correction for this table)."
        )
        head = ("", *COLUMNS.values(), "seeds", "steps")
        remarks = [f"{row.label}: {row.remark}." for row in self.rows if row.remark]
        return Rendered(name, self.caption, head, rows, [star, *remarks, *self.remarks], data)


def _missing(population: Population, results: Path) -> str:
    if load_numbers(results, population.name) is not None:
        return "trained, not measured"
    return not_run(population)


def _columns(population: Population, results: Path) -> dict[str, list[float]]:
    """Every measure of the seeds that have it, in percent."""
    measures = measures_of(results, population)
    if measures is None:
        return {}
    rows = [values_of(row, measures["reference"]) for row in measures["seeds"]]
    return {c: [100 * v for row in rows if (v := row[c]) is not None] for c in COLUMNS}


def _yardstick_rows(rows: Sequence[Row], results: Path) -> list[tuple[str, ...]]:
    """What the first measured of some populations is to be held against."""
    known = [m for row in rows if (m := measures_of(results, row.population)) is not None]
    task = rows[0].population.task
    found = []
    for name, measured in (known[0]["yardsticks"] if known else {}).items():
        values = values_of(measured, known[0]["reference"])
        cells = ["-" if values[c] is None else f"{100 * (values[c] or 0):.2f}" for c in COLUMNS]
        found.append((f"{task}, {YARDSTICKS[name]}", *cells, "-", "-"))
    return found


def _text(values: Sequence[float] | None, chance: float | None) -> str:
    if not values:
        return "-"
    spread = Spread.of(values)
    deviation = "" if spread.std is None else f" ± {spread.std:.2f}"
    return f"{spread.mean:.2f}{deviation}{' *' if chance is not None and chance < LEVEL else ''}"


@dataclass(frozen=True)
class PartsTable(TableOfRows):
    """What the gap in all rows is made of, for every mechanism, beside attention without skill."""

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """Means over seeds; the parts add up to the first column."""
        head = ("", "mechanism", "tv, all rows (%)", "updated rows: wrong", "soft", "tie",
                "unchanged rows", "inactive rows", "seeds")  # fmt: skip
        rows, data = [], []
        for row in self.rows:
            measures = measures_of(results, row.population)
            if measures is None or not measures["seeds"]:
                rows.append((row.label, "-", _missing(row.population, results), *["-"] * 5, "0"))
                continue
            known = [r["gaps"] for r in measures["seeds"] if r["gaps"]]
            known = [gaps for gaps in known if all("parts" in gap for gap in gaps.values())]
            names = [r for r in measures["yardsticks"] if r != "compiled"]
            for mechanism in known[0] if known else ():
                beside = {row.label: [gaps[mechanism] for gaps in known]}
                beside |= {
                    f"{row.population.task}, {YARDSTICKS[n]}": [gap]
                    for n in names
                    if "parts" in (gap := measures["yardsticks"][n]["gaps"].get(mechanism, {}))
                }
                for label, gaps in beside.items():
                    parts = mean_parts(gaps)
                    data.append({"row": label, "mechanism": mechanism, "parts": parts})
                    seeds = str(len(gaps)) if label == row.label else "-"
                    rows.append((label, mechanism, *_part_cells(parts), seeds))
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def mean_parts(gaps: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The mean of the parts of some gaps."""
    return {
        rows: {kind: sum(gap["parts"][rows][kind] for gap in gaps) / len(gaps) for kind in KINDS}
        for rows in ROWS
    }


def _part_cells(parts: Mapping[str, Mapping[str, float]]) -> list[str]:
    updated = parts["updated"]
    whole = {rows: sum(each.values()) for rows, each in parts.items()}
    values = [sum(whole.values()), updated["wrong"], updated["soft"], updated["tie"],
              whole["unchanged"], whole["inactive"]]  # fmt: skip
    return [f"{100 * value:.2f}" for value in values]


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
                rows.append((row.label, "-", _missing(row.population, results), *empty, "0"))
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
