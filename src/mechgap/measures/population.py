"""Everything measured of a population of learned networks, beside the compiled one.

Seeds are run one after the other; of each only numbers and short series are kept, and a fingerprint
of its attention.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, UInt8

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.errors import InvalidInput
from mechgap.measures.causal import Causal, accuracy_under, can_force, causal, run_forced
from mechgap.measures.correlation import Correlation, correlation
from mechgap.measures.data import LONG_NODES, Data, long_traces, make_data
from mechgap.measures.examples import Arrays, example_graphs, example_run
from mechgap.measures.external import External, Margins, external
from mechgap.measures.foiled import Foiled, foiled_hints
from mechgap.measures.internal import Gap, internal_gap
from mechgap.measures.probes import Probe, probes
from mechgap.measures.snapshot import Observer, Seen
from mechgap.measures.solutions import Solutions, solutions
from mechgap.measures.yardsticks import fixed_yardsticks
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.programs.components import Kind
from mechgap.programs.interpreter import interpret
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import sample
from mechgap.tasks.scores import output_scores, right_graphs
from mechgap.training.population import initial, validation_graphs
from mechgap.training.recipe import Recipe

UNTRAINED = 4
"""How many untrained networks the yardstick is the mean of."""
TRAIN_GRAPHS = 32
_MARGIN = 1.001
"""How much more than the largest value a network is made for."""
_YARDSTICK_TARGETS = ("stock-ln", "stock", "general", "full")


@dataclass(frozen=True)
class NetworkMeasures:
    """What was measured of one network. Gaps are by data set, one per exact mechanism."""

    accuracy: float
    """On the test graphs."""
    graph_accuracy: float
    """Share of the test graphs with every output right."""
    accuracy_by_sample: Float[np.ndarray, "samples"]
    gaps: Mapping[str, tuple[Gap, ...]]
    traces: Mapping[str, External]
    """External measure on train, validation and test; empty without hints."""
    deep: Seen | None = None
    """On the deep graphs; None for attention that no network has."""
    causal: Causal | None = None
    """Accuracy on the test graphs with its own attention and with others."""
    compiled_with_its_attention: float = float("nan")
    """The compiled network's accuracy when given this network's attention."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    fingerprint: UInt8[np.ndarray, "entries"] | None = None
    """Of its attention on the test graphs, to be compared with others."""
    examples: Arrays = field(default_factory=dict)
    """What it did on a few graphs of the `long` set."""

    def nearest(self, data: str = "test") -> Gap | None:
        """The gap to the mechanism that it agrees with most, of equals to the first, which is the
        compiled one; None where none is known."""
        return max(self.gaps.get(data, ()), key=lambda gap: gap.agreement, default=None)

    def gap_to(self, mechanism: str, data: str = "test") -> Gap | None:
        """The gap to one mechanism; None where that is not known."""
        return next((gap for gap in self.gaps.get(data, ()) if gap.mechanism == mechanism), None)

    @property
    def external(self) -> float:
        """Trace accuracy on the test graphs; NaN without hints."""
        return self.traces["test"].accuracy if "test" in self.traces else float("nan")


@dataclass(frozen=True)
class Correlations:
    """How accuracy goes with each measure of faithfulness, over the seeds of a population."""

    external: Correlation | None
    """Trace accuracy; None without hints."""
    agreement: Mapping[str, Correlation]
    """Agreement on updated rows, by mechanism."""
    tv: Mapping[str, Correlation]
    """The paper's gap, by mechanism."""


@dataclass(frozen=True)
class PopulationMeasures:
    """What was measured of a population."""

    recipe: Recipe
    test_count: int
    test_nodes: int
    outside_certificate: int | None
    """On how many test graphs nothing is promised of the compiled network; None without one."""
    seeds: Mapping[int, NetworkMeasures]
    yardsticks: Mapping[str, NetworkMeasures]
    """uniform, self, untrained, and the compiled network. Accuracy and traces of the first two are
    the compiled network's, forced to that attention."""
    reference: str | None
    """The mechanism that is compiled; None where none is known."""
    correlations: Correlations
    solutions: Solutions
    examples: Arrays
    """A few graphs of the `long` set."""

    def closest_to(self, mechanism: str) -> tuple[int, Gap] | None:
        """The seed with the smallest gap (tv) to a mechanism, and that gap."""
        gaps = {seed: m.gap_to(mechanism) for seed, m in self.seeds.items()}
        known = [(seed, gap) for seed, gap in gaps.items() if gap is not None]
        return min(known, key=lambda item: item[1].tv, default=None)


def correlations(
    accuracy: Sequence[float],
    external: Sequence[float | None],
    agreement: Mapping[str, Sequence[float | None]],
    tv: Mapping[str, Sequence[float | None]],
) -> Correlations:
    """Accuracy against everything else, a number a seed each."""
    has_traces = any(value is not None and np.isfinite(value) for value in external)
    return Correlations(
        external=correlation(accuracy, external) if has_traces else None,
        agreement={name: correlation(accuracy, values) for name, values in agreement.items()},
        tv={name: correlation(accuracy, values) for name, values in tv.items()},
    )


Tell = Callable[[str, int, int], None]
"""Called with what is being measured, how many are done, and of how many."""


def measure_population(
    recipe: Recipe,
    networks: Iterator[tuple[int, Network]] | Sequence[tuple[int, Network]],
    count: int,
    *,
    test: Batch | None = None,
    margins: Margins | None = None,
    tell: Tell = lambda *_: None,
) -> PopulationMeasures:
    """Measure networks that were trained with one recipe.

    `test` are graphs to measure on in place of the recipe's own test set.
    """
    tell("compiling", 0, count)
    observer = Observer(recipe, test)
    # A pre-attention bias allows one size only.
    long_nodes = recipe.validation_nodes if recipe.use_pre_att_bias else LONG_NODES
    data = {
        "test": observer.test,
        "long": make_data("long", long_traces(recipe.posed, long_nodes), recipe.mechanisms),
    }
    traced = {**_seen_in_training(recipe), "test": observer.test.batch}
    compiled = compile_reference(
        recipe, max(d.batch.nodes for d in (observer.test, *observer.deep)), covering=test
    )
    foiled = foiled_hints(data["test"])
    seeds: dict[int, NetworkMeasures] = {}
    for seed, network in networks:
        _check_shape(seed, network, recipe)
        seeds[seed] = _measure(
            *(network, data, traced, margins, compiled, observer), of_run=True, foiled=foiled
        )
        tell("seeds", len(seeds), count)
    if not seeds:
        raise InvalidInput("there is no finished seed to measure")
    tell("yardsticks", count, count)
    yardsticks = _yardsticks(recipe, data, traced, margins, compiled, observer, foiled)
    tell("distances between solutions", count, count)
    prints = [m.fingerprint for m in seeds.values() if m.fingerprint is not None]
    names = [truth.mechanism for truth in data["test"].truths]
    gaps = {name: [m.gap_to(name) for m in seeds.values()] for name in names}
    return PopulationMeasures(
        recipe=recipe,
        test_count=data["test"].batch.size,
        test_nodes=data["test"].batch.nodes,
        outside_certificate=_outside(compiled, data["test"].batch),
        seeds=seeds,
        yardsticks=yardsticks,
        reference=compiled.program.name if compiled is not None else None,
        correlations=correlations(
            [m.accuracy for m in seeds.values()],
            [m.external for m in seeds.values()],
            {name: [gap and gap.agreement for gap in each] for name, each in gaps.items()},
            {name: [gap and gap.tv for gap in each] for name, each in gaps.items()},
        ),
        solutions=solutions(observer.places.distances(np.stack(prints)), len(seeds)),
        examples=example_graphs(data["long"]),
    )


def compile_reference(recipe: Recipe, nodes: int, covering: Batch | None = None) -> Compiled | None:
    """The task's first mechanism, compiled for graphs of that size; None if there is none.

    On other graphs than CLRS's, values may be larger. `covering` asks for a network that holds
    those of some graphs; where there is none, it is made for CLRS's values.
    """
    for program in recipe.mechanisms[:1]:
        usual = Domain.regular(program, nodes)
        wider = [] if covering is None else [_widened(usual, program, covering)]
        for domain in (*wider, usual):
            for target in _YARDSTICK_TARGETS:
                try:
                    return compile_program(program, TARGETS[target], domain)
                except InvalidInput:
                    continue
    return None


def _widened(domain: Domain, program: Program, batch: Batch) -> Domain:
    """A domain with the weights and the values that a program has on some graphs."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    states = interpret(program, inputs, batch.steps).states
    largest = [np.abs(states[c.name]).max() for c in program.hidden if c.kind is Kind.FLOAT]
    return replace(
        domain,
        largest_value=max([domain.largest_value, *(_MARGIN * float(each) for each in largest)]),
        largest_weight=max(domain.largest_weight, _MARGIN * float(inputs["A"].max())),
    )


def _outside(compiled: Compiled | None, batch: Batch) -> int | None:
    """How many graphs lie outside the certificate."""
    if compiled is None:
        return None
    outside = np.stack([*compiled.outside(batch).values(), np.zeros(batch.size, bool)])
    return int(outside.any(axis=0).sum())


def _seen_in_training(recipe: Recipe) -> dict[str, Batch]:
    """Graphs as in training, on which traces are compared beside the test graphs."""
    train = sample(
        recipe.posed,
        jax.random.key(0x7A12),
        batch_size=TRAIN_GRAPHS,
        nodes=recipe.validation_nodes,
        random_pos=recipe.random_pos,
        graphs=recipe.train_graphs,
    ).trim()
    return {"train": train, "validation": validation_graphs(recipe)}


def _check_shape(seed: int, network: Network, recipe: Recipe) -> None:
    if network.config != recipe.network_config or network.task.name != recipe.task:
        raise InvalidInput(
            f"seed {seed} has another architecture than the run's recipe says, so it cannot be "
            "compared with the other seeds"
        )


def _traces(
    network: Network, traced: Mapping[str, Batch], margins: Margins | None, test: Trace
) -> dict[str, External]:
    if not network.config.decodes_hints:
        return {}
    runs = {name: test if name == "test" else run(network, b) for name, b in traced.items()}
    return {name: external(traced[name], runs[name].hints, margins) for name in traced}


def _measure(
    network: Network,
    data: Mapping[str, Data],
    traced: Mapping[str, Batch],
    margins: Margins | None,
    compiled: Compiled | None,
    observer: Observer,
    *,
    of_run: bool = False,
    foiled: Foiled | None = None,
) -> NetworkMeasures:
    """Everything about one network. A network of the run is also kept to be looked at and to be
    compared with the others. Where it is known what foils change, its attention is patched."""
    test = data["test"]
    trace = run(network, test.batch)
    runs = {name: trace if name == "test" else run(network, d.batch) for name, d in data.items()}
    with_ours = float("nan")
    if compiled is not None and can_force(compiled.network, test, trace.attention):
        with_ours = accuracy_under(compiled.network, test, trace.attention)
    return NetworkMeasures(
        accuracy=float(output_scores(test.batch, trace.outputs)["score"]),
        graph_accuracy=float(jnp.mean(right_graphs(test.batch, trace.outputs))),
        accuracy_by_sample=_by_sample(test.batch, trace),
        gaps={
            name: tuple(internal_gap(runs[name].attention, truth, d) for truth in d.truths)
            for name, d in data.items()
        },
        traces=_traces(network, traced, margins, trace),
        deep=observer.see(network, trace.attention).deep,
        causal=causal(network, test, foiled) if foiled is not None else None,
        compiled_with_its_attention=with_ours,
        probes=probes(data["long"].batch, runs["long"]),
        fingerprint=observer.fingerprint(trace.attention) if of_run else None,
        examples=example_run(data["long"], runs["long"]) if of_run else {},
    )


def _by_sample(batch: Batch, trace: Trace) -> Float[np.ndarray, "samples"]:
    """The output accuracy on each graph."""
    score = jax.vmap(
        lambda i: output_scores(batch[i[None]], {k: v[i[None]] for k, v in trace.outputs.items()})
    )
    return np.asarray(score(jnp.arange(batch.size))["score"])


def _yardsticks(
    recipe: Recipe,
    data: Mapping[str, Data],
    traced: Mapping[str, Batch],
    margins: Margins | None,
    compiled: Compiled | None,
    observer: Observer,
    foiled: Foiled,
) -> dict[str, NetworkMeasures]:
    found = {}
    for name in ("uniform", "self"):
        gaps = {
            key: tuple(internal_gap(fixed_yardsticks(d)[name], t, d) for t in d.truths)
            for key, d in data.items()
        }
        scored, whole, each, traces = float("nan"), float("nan"), np.zeros(0), {}
        if compiled is not None:
            batch = data["test"].batch
            attention = fixed_yardsticks(data["test"])[name]
            trace = run_forced(compiled.network, data["test"], attention)
            scored = float(output_scores(batch, trace.outputs)["score"])
            whole = float(jnp.mean(right_graphs(batch, trace.outputs)))
            each = _by_sample(batch, trace)
            traces = {"test": external(batch, trace.hints, margins)}
        found[name] = NetworkMeasures(scored, whole, each, gaps, traces)
    untrained = [
        _measure(
            initial(recipe, jnp.int32(seed)).network,
            *(data, traced, margins, None, observer),
        )
        for seed in range(UNTRAINED)
    ]
    found["untrained"] = _mean_of(untrained)
    if compiled is not None:
        found["compiled"] = _measure(
            compiled.network, data, traced, margins, None, observer, foiled=foiled
        )
    return found


def _mean_of(several: Sequence[Any]) -> Any:
    """The mean of every number and array in things of one structure; counts are the same in all."""
    first = several[0]
    if is_dataclass(first) and not isinstance(first, type):
        means = {f.name: _mean_of([getattr(one, f.name) for one in several]) for f in fields(first)}
        return type(first)(**means)
    if isinstance(first, Mapping):
        return {name: _mean_of([one[name] for one in several]) for name in first}
    if isinstance(first, tuple):
        return tuple(_mean_of(each) for each in zip(*several, strict=True))
    if isinstance(first, str | int | None):
        return first
    mean = np.mean(several, axis=0)
    return mean if isinstance(first, np.ndarray) else float(mean)
