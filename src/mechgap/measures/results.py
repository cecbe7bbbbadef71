"""Everything that was measured of a population, and its files: numbers as JSON, series as
safetensors.

Figures and pages are made from these files; nothing is measured again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from mechgap.disk import write_file
from mechgap.display import html_table
from mechgap.errors import InvalidInput
from mechgap.measures.breaking import Breaking
from mechgap.measures.causal import Causal
from mechgap.measures.channels import Channels
from mechgap.measures.correlation import Correlations
from mechgap.measures.external import External
from mechgap.measures.failing import Failing
from mechgap.measures.interchange.measure import Interchange
from mechgap.measures.internal import Gap
from mechgap.measures.own_state import FromOwnState
from mechgap.measures.probes import Probe
from mechgap.measures.snapshot import Seen
from mechgap.measures.solutions import Solutions
from mechgap.network.files import packed
from mechgap.tasks.official import NODES, Split
from mechgap.training.presets import recipe_from
from mechgap.training.provenance import Provenance
from mechgap.training.recipe import Recipe
from mechgap.typed import Arrays, arrays, plain, typed

NUMBERS, SERIES = "measures.json", "measures.safetensors"
ELSEWHERE = "elsewhere"
"""The folder inside a run's with what was found on other graphs than the test set."""
FORMAT = 4
"""Of the files; those of another format are to be made again."""


@dataclass(frozen=True)
class NetworkMeasures:
    """What was measured of one network, or of attention that no network has."""

    accuracy: float
    """On the test graphs."""
    graph_accuracy: float
    """Share of the test graphs with every output right."""
    accuracy_by_sample: Float[np.ndarray, "samples"]
    gaps: Mapping[str, Mapping[str, Gap]]
    """By data set (`test`, `long`) and exact mechanism."""
    traces: Mapping[str, External]
    """External measure on train, validation and test; empty without hints."""
    breaking: Breaking | None = None
    """Where runs over the test graphs first go wrong; None without hints."""
    from_own_state: Mapping[str, FromOwnState] = field(default_factory=dict)
    """By mechanism, attention beside what that would select from where the network is; of learned
    and compiled networks that predict hints, on the test graphs. Empty in older files."""
    failing: Failing | None = None
    """Why its outputs on the test graphs are wrong, beside the mechanism that it is nearest to."""
    deep: Seen | None = None
    """On the deep graphs; None for attention that no network has."""
    causal: Causal | None = None
    """Accuracy on the test graphs with its own attention and with others."""
    channels: Channels | None = None
    """What its attention carries of the weights of the test graphs; None where there are none."""
    interchange: Mapping[str, Interchange] = field(default_factory=dict)
    """By mechanism, how far it computes what that computes; nothing where nobody asked."""
    compiled_with_its_attention: float = float("nan")
    """The compiled network's accuracy when given this network's attention."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    fingerprint: UInt8[np.ndarray, "entries"] | None = None
    """Of its attention on the test graphs, to be compared with others."""
    examples: Arrays = field(default_factory=dict)
    """What it did on a few graphs of the `long` set."""

    ALSO_TOLD: ClassVar = ("external", "nearest")

    @property
    def external(self) -> float:
        """Trace accuracy on the test graphs; NaN without hints."""
        return self.traces["test"].accuracy if "test" in self.traces else float("nan")

    @property
    def hint_accuracy(self) -> Mapping[str, float]:
        """Each hint's share of that; nothing without hints."""
        return self.traces["test"].hints if "test" in self.traces else {}

    @property
    def hint_scores(self) -> Mapping[str, float]:
        """dm-clrs's own score of each hint on the test graphs; nothing without hints."""
        return self.traces["test"].dm_clrs if "test" in self.traces else {}

    @property
    def nearest(self) -> str | None:
        """The mechanism that it agrees with most, of equals the first, which is the compiled one;
        None where none is known."""
        test = self.gaps["test"]
        return max(test, key=lambda name: test[name].agreement, default=None)


@dataclass(frozen=True)
class MeasuredOn:
    """The graphs that a population was measured on."""

    name: str
    """`test`, or what they are called elsewhere."""
    count: int
    nodes: int
    deep: int
    """How many deep graphs there were."""
    outside_certificate: int | None
    """On how many test graphs nothing is promised of the compiled network; None without one."""
    constant_outputs: tuple[str, ...]
    """Outputs that are the same on all of these graphs: to be right about them means nothing."""

    @property
    def words(self) -> str:
        """What they are, in a sentence."""
        if self.name == "test":
            official = self.nodes == NODES[Split.TEST]
            return "the test graphs" if official else f"test graphs of {self.nodes} nodes"
        outside = self.outside_certificate
        note = f" ({outside} outside the compiled network's certificate)" if outside else ""
        return f"{self.name}: {self.count} graphs of {self.nodes} nodes{note}"


@dataclass(frozen=True)
class Results:
    """A population's measures."""

    recipe: Recipe
    graphs: MeasuredOn
    parameters: str
    """Which of each seed: best (by validation) or last."""
    diverged: tuple[int, ...]
    """Seeds that were left out."""
    provenance: Provenance
    reference: str | None
    """The mechanism that is compiled; None where none is known."""
    seeds: Mapping[int, NetworkMeasures]
    baselines: Mapping[str, NetworkMeasures]
    """uniform, self, untrained, and the compiled network. Accuracy and traces of the first two are
    the compiled network's, forced to that attention."""
    correlations: Correlations
    solutions: Solutions
    examples: Arrays
    """A few graphs of the `long` set."""

    FORMERLY: ClassVar = {"baselines": "yardsticks"}

    @property
    def networks(self) -> list[NetworkMeasures]:
        """The learned ones."""
        return list(self.seeds.values())

    @property
    def mechanisms(self) -> list[str]:
        """The exact mechanisms that attention was compared with, the compiled one first."""
        return list(self.networks[0].gaps["test"])

    @property
    def has_traces(self) -> bool:
        """Whether these networks predict hints."""
        return bool(self.networks[0].traces)

    def folder(self, run: Path) -> Path:
        """Where these measures of a run are kept."""
        if self.graphs.name == "test":
            return run
        which = "" if self.parameters == "best" else f"-{self.parameters}"
        return run / ELSEWHERE / f"{self.graphs.name}{which}"

    def to_json(self) -> dict[str, Any]:
        """All numbers as plain values; what is not a number is None."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recipe"}
        return {"format": FORMAT, "recipe": self.recipe.data(), **plain(told)}

    def _repr_html_(self) -> str:
        named = [(f"seed {seed}", row) for seed, row in self.seeds.items()]
        measures = ("agreement", "misplaced", "tv")
        rows = [
            (
                name,
                *(_shown(getattr(row, c)) for c in ("accuracy", "graph_accuracy", "external")),
                *(_shown(getattr(gap, m)) for gap in row.gaps["test"].values() for m in measures),
            )
            for name, row in [*named, *self.baselines.items()]
        ]
        head = [f"{m} ({name})" for name in self.mechanisms for m in measures]
        columns = ["", "accuracy", "graph accuracy", "external", *head]
        return html_table(columns, rows, f"{self.recipe.task}, test graphs")


def _shown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.4f}"


def save_results(folder: Path, results: Results) -> None:
    """Write both files, each whole or not at all."""
    try:
        series = packed(arrays(results), {"format": f"mechgap measures {FORMAT}"})
        write_file(folder / SERIES, series)
        text = json.dumps(results.to_json(), indent=1, allow_nan=False)
        write_file(folder / NUMBERS, (text + "\n").encode())
    except OSError as error:
        raise InvalidInput(f"cannot write to '{folder}': {error}") from error


def load_results(folder: Path) -> Results:
    """The measures of a run; an error says how to make them."""
    again = f"Run: mechgap measure {folder}"
    try:
        numbers = json.loads((folder / NUMBERS).read_text())
        series = load_tensors((folder / SERIES).read_bytes())
        if numbers.get("format") != FORMAT:
            raise InvalidInput("they are of another version")
        recipe = recipe_from(numbers["recipe"])
        return typed(Results, {**numbers, "recipe": recipe}, series)
    except FileNotFoundError as error:
        raise InvalidInput(f"'{folder}' has not been measured. {again}") from error
    except (OSError, ValueError, KeyError, SafetensorError, InvalidInput) as error:
        raise InvalidInput(
            f"the measures in '{folder}' cannot be read ({error}). {again}"
        ) from error
