"""Accuracy and faithfulness along training: between seeds at one step, and within a seed.

Networks that are each taken at their own best validation score were trained for different times,
and a correlation between them can be that of a stopping time. At a fixed step it cannot. Over
several steps a model with an intercept of each seed's own tells how a measure goes with accuracy
when training time is the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechgap.measures.correlation import Correlation, correlation
from mechgap.measures.mixed import MixedModel, mixed_model
from mechgap.measures.snapshot import Seen, Snapshot
from mechgap.typed import plain

MEASURES = ("hints", "agreement", "misplaced", "tv")
"""What accuracy is held against."""


@dataclass(frozen=True)
class AtStep:
    """All seeds at one step of training, on one set of graphs."""

    step: int
    seeds: int
    mean: Mapping[str, float]
    """Of accuracy, graph accuracy and every measure."""
    correlation: Mapping[str, Correlation]
    """Accuracy against every measure."""


@dataclass(frozen=True)
class Along:
    """A population along its training, on one set of graphs, beside one mechanism."""

    graphs: str
    mechanism: str | None
    steps: tuple[AtStep, ...]
    models: Mapping[str, MixedModel | None]
    """Every measure on accuracy, at equal steps, with seeds as random intercepts."""
    stopping: Correlation
    """The best validation score's step against accuracy there: is accuracy a stopping time?"""

    def data(self) -> dict[str, Any]:
        """As plain values."""
        return plain(self)


def along_training(
    snapshots: Sequence[Snapshot], graphs: str, mechanism: str | None
) -> Along | None:
    """Accuracy and the measures of a population's snapshots; None where there are none."""
    looked = [
        s for s in snapshots if s.which == "step" and s.step and _values(s, graphs, mechanism)
    ]
    if not looked:
        return None
    rows = [(s.seed, s.step, _values(s, graphs, mechanism)) for s in looked]
    known = [m for m in MEASURES if any(v.get(m) is not None for _, _, v in rows)]
    steps = []
    for step in sorted({step for _, step, _ in rows}):
        here = [v for _, at, v in rows if at == step]
        accuracy = [v["accuracy"] for v in here]
        columns = {m: [v.get(m) for v in here] for m in ("accuracy", "graph_accuracy", *known)}
        steps.append(
            AtStep(
                step,
                len(here),
                mean={m: _mean(values) for m, values in columns.items()},
                correlation={m: correlation(accuracy, columns[m]) for m in known},
            )
        )
    best = [s for s in snapshots if s.which == "best"]
    at_best = [_values(s, graphs, mechanism).get("accuracy") for s in best]
    return Along(
        graphs,
        mechanism,
        tuple(steps),
        models={m: _model(rows, m) for m in known},
        stopping=correlation([float(s.step) for s in best], at_best),
    )


def _values(snapshot: Snapshot, graphs: str, mechanism: str | None) -> dict[str, float | None]:
    """A snapshot's numbers on one set of graphs; empty where it was not looked at there."""
    seen: Seen | None = getattr(snapshot, graphs)
    if seen is None:
        return {}
    found: dict[str, float | None] = {
        "accuracy": seen.accuracy,
        "graph_accuracy": seen.graph_accuracy,
        "hints": seen.hints,
    }
    if mechanism is not None and mechanism in seen.mechanisms:
        beside = seen.mechanisms[mechanism]
        found |= {m: getattr(beside, m) for m in ("agreement", "misplaced", "tv")}
    return found


def _model(
    rows: Sequence[tuple[int, int, Mapping[str, float | None]]], measure: str
) -> MixedModel | None:
    both = [
        (seed, step, values["accuracy"], values[measure])
        for seed, step, values in rows
        if values["accuracy"] is not None and values.get(measure) is not None
    ]
    if not both:
        return None
    seeds, steps, accuracy, measured = zip(*both, strict=True)
    return mixed_model(measured, accuracy, steps, seeds)


def _mean(values: Sequence[float | None]) -> float:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else float("nan")
