"""`results/`: one small file of numbers per population. Tables are made from these alone.

A file holds the recipe, versions, scores and measures of finished seeds. No weights.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from mechgap.disk import write_file
from mechgap.errors import InvalidInput
from mechgap.measures.causal import Causal
from mechgap.measures.channels import Channels
from mechgap.measures.correlation import Correlations
from mechgap.measures.failing import Failing
from mechgap.measures.interchange.measure import Interchange
from mechgap.measures.internal import Parts
from mechgap.measures.results import NetworkMeasures, load_results
from mechgap.measures.snapshot import Seen, SeenRun
from mechgap.measures.solutions import Between
from mechgap.training.presets import recipe_from
from mechgap.training.recipe import Recipe
from mechgap.training.store import DATABASE, Store
from mechgap.typed import plain, rounded, typed

FORMAT = 3


@dataclass(frozen=True)
class KeptGap:
    """What is kept of a gap; see `measures.internal.Gap`."""

    agreement: float
    agreement_strict: float
    misplaced: float
    tv: float
    sharpness: float
    parts: Parts = field(default_factory=dict)
    """Empty in numbers from before it was told what a gap is made of."""


@dataclass(frozen=True, kw_only=True)
class KeptNetwork:
    """Of everything that was measured of a network, what is kept when it is gone."""

    accuracy: float
    graph_accuracy: float
    external: float
    nearest: str | None
    deep: Seen | None
    causal: Causal | None
    compiled_with_its_attention: float
    gaps: Mapping[str, KeptGap]
    """On the test graphs, by mechanism."""
    hint_accuracy: Mapping[str, float] = field(default_factory=dict)
    """Each hint's share of the trace that is within the paper's margins. Empty in older numbers."""
    hint_scores: Mapping[str, float] = field(default_factory=dict)
    """dm-clrs's score of each hint: by the more likely answer."""
    failing: Failing | None = None
    """None in older numbers, too."""
    interchange: Mapping[str, Interchange] = field(default_factory=dict)
    """By mechanism; nothing where nobody asked."""
    channels: Channels | None = None
    """None in older numbers, too."""


@dataclass(frozen=True, kw_only=True)
class KeptSeed(KeptNetwork):
    """The same of a learned network."""

    seed: int


@dataclass(frozen=True)
class KeptMeasures:
    """What is kept of a population's measures."""

    parameters: str
    reference: str | None
    seeds: tuple[KeptSeed, ...]
    baselines: Mapping[str, KeptNetwork]
    correlation: Correlations
    solutions: Between

    FORMERLY: ClassVar = {"baselines": "yardsticks"}


@dataclass(frozen=True)
class Made:
    """With what some seeds were made."""

    seed: tuple[int, ...]
    versions: Mapping[str, str]
    commit: str | None


SeenElsewhere = Mapping[str, Mapping[str, SeenRun]]
"""On other graphs than the test set, by their name and by seed."""


@dataclass(frozen=True)
class Numbers:
    """A population's file. Columns have a value for each finished seed."""

    recipe: Recipe
    versions: Mapping[str, str]
    commit: str | None
    diverged: Mapping[str, int | None]
    """At which step, by seed."""
    seed: tuple[int, ...]
    accuracy: tuple[float, ...]
    """With the best parameters, by validation."""
    accuracy_last: tuple[float, ...]
    best_step: tuple[int | None, ...]
    earlier: tuple[Made, ...] = ()
    """What is not of the last run."""
    measures: KeptMeasures | None = None
    elsewhere: SeenElsewhere = field(default_factory=dict)
    """With the best parameters."""


def numbers_of(folder: Path) -> Numbers | None:
    """What is kept of a run; None while no seed is finished."""
    if not (folder / DATABASE).exists():
        return None
    with Store.reading(folder) as store:
        rows, recipe, about = store.seeds(), store.recipe, store.about
    finished = [row for row in rows if row.state == "finished"]
    if not finished:
        return None
    columns = zip(*((r.seed, r.test_of_best, r.test, r.best_step) for r in finished), strict=True)
    seed, accuracy, accuracy_last, best_step = columns
    return Numbers(
        recipe=recipe,
        versions=about["versions"],
        commit=about["commit"],
        diverged={str(row.seed): row.diverged_at for row in rows if row.state == "diverged"},
        seed=seed,
        accuracy=accuracy,
        accuracy_last=accuracy_last,
        best_step=best_step,
        measures=_measures(folder),
    )


def _measures(folder: Path) -> KeptMeasures | None:
    try:
        results = load_results(folder)
    except InvalidInput:
        return None
    between = {f.name: getattr(results.solutions, f.name) for f in fields(Between)}
    return KeptMeasures(
        parameters=results.parameters,
        reference=results.reference,
        seeds=tuple(
            _as_kept(KeptSeed(seed=seed, **_kept(row))) for seed, row in results.seeds.items()
        ),
        baselines={name: KeptNetwork(**_kept(row)) for name, row in results.baselines.items()},
        correlation=results.correlations,
        solutions=Between(**between),
    )


def _as_kept(seed: KeptSeed) -> KeptSeed:
    """With as many digits as a file has, so that equal numbers of two runs are equal."""
    return typed(KeptSeed, rounded(plain(seed)))


def _kept(row: NetworkMeasures) -> dict[str, Any]:
    gaps = {
        mechanism: KeptGap(**{f.name: getattr(gap, f.name) for f in fields(KeptGap)})
        for mechanism, gap in row.gaps["test"].items()
    }
    return {f.name: getattr(row, f.name) for f in fields(KeptNetwork)} | {"gaps": gaps}


def save_numbers(results: Path, name: str, numbers: Numbers) -> None:
    """Write a population's file, whole or not at all."""
    told = {f.name: getattr(numbers, f.name) for f in fields(Numbers)}
    known = {
        k: v for k, v in plain(told).items() if v or k not in {"earlier", "measures", "elsewhere"}
    }
    save_data(results, name, {**known, "recipe": numbers.recipe.data()})


def load_numbers(results: Path, name: str) -> Numbers | None:
    """A population's numbers; None where there are none yet."""
    data = load_data(results, name)
    if data is None:
        return None
    try:
        return typed(Numbers, {**data, "recipe": recipe_from(data.get("recipe", {}))})
    except InvalidInput as error:
        raise _unreadable(results / f"{name}.json", error) from error


def save_data(results: Path, name: str, data: Mapping[str, Any]) -> None:
    """Write a file of numbers, whole or not at all."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        text = _text({"format": FORMAT, **data})
        write_file(results / f"{name}.json", (text + "\n").encode())
    except OSError as error:
        raise InvalidInput(f"cannot write to '{results}': {error}") from error


def load_data(results: Path, name: str) -> dict[str, Any] | None:
    """A file of numbers; None where there is none yet."""
    path = results / f"{name}.json"
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if data.get("format") != FORMAT:
        raise InvalidInput(f"'{path}' is of another version of mechgap. Remove it and run again")
    return data


def _unreadable(path: Path, error: Exception) -> InvalidInput:
    return InvalidInput(f"'{path}' cannot be read ({error}). Remove it and run again")


def _text(value: Any, indent: str = "") -> str:
    """JSON in which mappings and lists of them take several lines; numbers have six digits."""
    if isinstance(value, Mapping):
        inner = indent + " "
        lines = [f"{inner}{json.dumps(k)}: {_text(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        inner = indent + " "
        rows = (inner + json.dumps(rounded(v), allow_nan=False) for v in value)
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    return json.dumps(rounded(value), allow_nan=False)
