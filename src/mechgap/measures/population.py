"""Everything measured of a population of learned networks, beside the compiled one.

Seeds are run one after the other; of each only numbers and short series are kept, and of its
attention what pairwise distances need.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.errors import InvalidInput
from mechgap.measures.causal import accuracy, can_force, forced, run_forced
from mechgap.measures.correlation import Correlation, correlation
from mechgap.measures.data import LONG_NODES, Data, long_traces, make_data
from mechgap.measures.examples import Arrays, example_graphs, example_run
from mechgap.measures.external import External, Margins, external
from mechgap.measures.internal import Gap, internal_gap
from mechgap.measures.probes import Probe, probes
from mechgap.measures.solutions import Collected, Solutions, solutions
from mechgap.measures.yardsticks import fixed_yardsticks
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.programs.library import mechanisms
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import sample
from mechgap.tasks.scores import output_scores
from mechgap.training.population import held_out, initial, test_graphs
from mechgap.training.recipe import Recipe

UNTRAINED = 4
"""How many untrained networks the yardstick is the mean of."""
TRAIN_GRAPHS = 32
_YARDSTICK_TARGETS = ("stock-ln", "stock", "general", "full")


@dataclass(frozen=True)
class NetworkMeasures:
    """What was measured of one network. Gaps are by data set, one per exact mechanism."""

    accuracy: float
    """On the test graphs."""
    accuracy_by_sample: Float[np.ndarray, "samples"]
    gaps: Mapping[str, tuple[Gap, ...]]
    traces: Mapping[str, External]
    """External measure on train, validation and test; empty without hints."""
    forced: Mapping[str, float] = field(default_factory=dict)
    """Accuracy on the test graphs with its own attention and with others."""
    compiled_with_its_attention: float = float("nan")
    """The compiled network's accuracy when given this network's attention."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    examples: Arrays = field(default_factory=dict)
    """What it did on a few graphs of the `long` set."""

    def nearest(self, data: str = "test") -> Gap | None:
        """The gap to the nearest exact mechanism; None where none is known."""
        return min(self.gaps.get(data, ()), key=lambda gap: gap.tv, default=None)

    @property
    def external(self) -> float:
        """Trace accuracy on the test graphs; NaN without hints."""
        return self.traces["test"].accuracy if "test" in self.traces else float("nan")


@dataclass(frozen=True)
class PopulationMeasures:
    """What was measured of a population."""

    recipe: Recipe
    test_nodes: int
    seeds: Mapping[int, NetworkMeasures]
    yardsticks: Mapping[str, NetworkMeasures]
    """uniform, self, untrained, and the compiled network. Accuracy and traces of the first two are
    the compiled network's, forced to that attention."""
    internal_correlation: Correlation | None
    """Accuracy and the gap to the nearest mechanism (tv); None where no mechanism is known."""
    external_correlation: Correlation | None
    """Accuracy and trace accuracy; None without hints."""
    solutions: Solutions
    examples: Arrays
    """A few graphs of the `long` set."""

    @property
    def closest(self) -> tuple[int, Gap] | None:
        """The seed nearest to a compiled mechanism, and its gap."""
        gaps = {seed: m.nearest() for seed, m in self.seeds.items()}
        known = [(seed, gap) for seed, gap in gaps.items() if gap is not None]
        return min(known, key=lambda item: item[1].tv, default=None)


Tell = Callable[[str, int, int], None]
"""Called with what is being measured, how many are done, and of how many."""


def measure_population(
    recipe: Recipe,
    networks: Iterator[tuple[int, Network]] | Sequence[tuple[int, Network]],
    count: int,
    *,
    margins: Margins | None = None,
    tell: Tell = lambda *_: None,
) -> PopulationMeasures:
    """Measure networks that were trained with one recipe."""
    tell("compiling", 0, count)
    data = default_data(recipe)
    traced = _traced(recipe)
    compiled = compile_reference(recipe, data["test"].batch.nodes)
    collected = Collected(data["test"], recipe.nb_msg_passing_steps)
    seeds: dict[int, NetworkMeasures] = {}
    for seed, network in networks:
        _check_shape(seed, network, recipe)
        seeds[seed] = _measure(network, data, traced, margins, compiled, collected)
        tell("seeds", len(seeds), count)
    if not seeds:
        raise InvalidInput("there is no finished seed to measure")
    accuracies = [m.accuracy for m in seeds.values()]
    nearest = [m.nearest() for m in seeds.values()]
    known = [gap.tv for gap in nearest if gap is not None]
    tell("yardsticks", count, count)
    yardsticks = _yardsticks(recipe, data, traced, margins, compiled)
    tell("distances between solutions", count, count)
    return PopulationMeasures(
        recipe=recipe,
        test_nodes=data["test"].batch.nodes,
        seeds=seeds,
        yardsticks=yardsticks,
        internal_correlation=correlation(accuracies, known) if known else None,
        external_correlation=correlation(accuracies, [m.external for m in seeds.values()])
        if recipe.network_config.decodes_hints
        else None,
        solutions=solutions(collected.distances(), len(seeds)),
        examples=example_graphs(data["long"]),
    )


def default_data(recipe: Recipe) -> dict[str, Data]:
    """The graphs that gaps are measured on. A pre-attention bias allows one size only."""
    nodes = recipe.validation_nodes if recipe.use_pre_att_bias else LONG_NODES
    return {
        "test": make_data("test", test_graphs(recipe)),
        "long": make_data("long", long_traces(recipe.task, nodes)),
    }


def compile_reference(recipe: Recipe, nodes: int) -> Compiled | None:
    """The task's first mechanism, compiled for graphs of that size; None if there is none."""
    for program in mechanisms(recipe.task)[:1]:
        for target in _YARDSTICK_TARGETS:
            try:
                return compile_program(program, TARGETS[target], Domain.regular(program, nodes))
            except InvalidInput:
                continue
    return None


def _traced(recipe: Recipe) -> dict[str, Batch]:
    """The graphs that traces are compared on."""
    validation, test = held_out(recipe)
    train = sample(
        recipe.task,
        jax.random.key(0x7A12),
        batch_size=TRAIN_GRAPHS,
        nodes=recipe.validation_nodes,
        random_pos=recipe.random_pos,
    ).trim()
    return {"train": train, "validation": validation, "test": test}


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
    collected: Collected | None,
) -> NetworkMeasures:
    """Everything about one network."""
    test = data["test"]
    trace = run(network, test.batch)
    if collected is not None:
        collected.add(np.asarray(trace.attention))
    runs = {name: trace if name == "test" else run(network, d.batch) for name, d in data.items()}
    with_ours = float("nan")
    if compiled is not None and can_force(compiled.network, test, trace.attention):
        with_ours = accuracy(compiled.network, test, trace.attention)
    return NetworkMeasures(
        accuracy=float(output_scores(test.batch, trace.outputs)["score"]),
        accuracy_by_sample=_by_sample(test.batch, trace),
        gaps={
            name: tuple(internal_gap(runs[name].attention, truth, d) for truth in d.truths)
            for name, d in data.items()
        },
        traces=_traces(network, traced, margins, trace),
        forced=forced(network, test),
        compiled_with_its_attention=with_ours,
        probes=probes(data["long"].batch, runs["long"]),
        examples=example_run(data["long"], runs["long"]) if collected is not None else {},
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
) -> dict[str, NetworkMeasures]:
    found = {}
    for name in ("uniform", "self"):
        gaps = {
            key: tuple(internal_gap(fixed_yardsticks(d)[name], t, d) for t in d.truths)
            for key, d in data.items()
        }
        scored, each, traces = float("nan"), np.zeros(0), {}
        if compiled is not None:
            batch = data["test"].batch
            attention = fixed_yardsticks(data["test"])[name]
            trace = run_forced(compiled.network, data["test"], attention)
            scored = float(output_scores(batch, trace.outputs)["score"])
            each = _by_sample(batch, trace)
            traces = {"test": external(batch, trace.hints, margins)}
        found[name] = NetworkMeasures(scored, each, gaps, traces)
    untrained = [
        _measure(initial(recipe, jnp.int32(seed)).network, data, traced, margins, None, None)
        for seed in range(UNTRAINED)
    ]
    found["untrained"] = _mean_of(untrained)
    if compiled is not None:
        found["compiled"] = _measure(compiled.network, data, traced, margins, None, None)
    return found


def _mean_of(several: Sequence[Any]) -> Any:
    """The mean of every number and array in things of one structure."""
    first = several[0]
    if is_dataclass(first) and not isinstance(first, type):
        means = {f.name: _mean_of([getattr(one, f.name) for one in several]) for f in fields(first)}
        return type(first)(**means)
    if isinstance(first, Mapping):
        return {name: _mean_of([one[name] for one in several]) for name in first}
    if isinstance(first, tuple):
        return tuple(_mean_of(each) for each in zip(*several, strict=True))
    if isinstance(first, str):
        return first
    mean = np.mean(several, axis=0)
    return mean if isinstance(first, np.ndarray) else float(mean)
