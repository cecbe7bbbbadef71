"""Everything measured of a population of learned networks, beside the compiled one.

Networks are measured one by one, here or on a cluster; of each only numbers and short series are
kept, and a fingerprint of its attention.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from mechgap.compiler.compile import Compiled
from mechgap.errors import InvalidInput
from mechgap.measures.baselines import fixed_baselines
from mechgap.measures.breaking import breaking_of
from mechgap.measures.causal import accuracy_under, can_force, causal, run_forced
from mechgap.measures.channels import channels
from mechgap.measures.correlation import correlations
from mechgap.measures.data import LONG_NODES, Data, long_traces, make_data
from mechgap.measures.elsewhere import Elsewhere
from mechgap.measures.examples import example_graphs, example_run
from mechgap.measures.external import External, Margins, external
from mechgap.measures.failing import failing
from mechgap.measures.foiled import Foiled, foiled_hints
from mechgap.measures.internal import internal_gap
from mechgap.measures.own_state import from_own_state
from mechgap.measures.probes import probes
from mechgap.measures.reference import compile_reference
from mechgap.measures.results import MeasuredOn, NetworkMeasures, Results
from mechgap.measures.snapshot import Observer
from mechgap.measures.solutions import closest, solutions
from mechgap.measures.workers import Workers, this_process
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import sample
from mechgap.tasks.scores import output_scores, right_graphs
from mechgap.training.population import initial, validation_graphs
from mechgap.training.provenance import Provenance
from mechgap.training.recipe import Recipe
from mechgap.training.train import OnProgress

UNTRAINED = 4
"""How many untrained networks the baseline is the mean of."""
TRAIN_GRAPHS = 32


@dataclass(frozen=True)
class Subject:
    """A network that is to be measured."""

    name: int | str
    """A seed of the run; or `untrained …` or `compiled`, which the run is compared with."""
    network: Network


@dataclass(frozen=True)
class Measuring:
    """What all networks of a recipe are measured on and beside; calling it measures one of them."""

    recipe: Recipe
    data: Mapping[str, Data]
    traced: Mapping[str, Batch]
    margins: Margins | None
    compiled: Compiled | None
    foiled: Foiled
    observer: Observer

    @staticmethod
    def of(
        recipe: Recipe,
        elsewhere: Elsewhere | None = None,
        deep: int | None = None,
        margins: Margins | None = None,
    ) -> "Measuring":
        """On the recipe's own test set or `elsewhere`, and on so many deep graphs."""
        observer = Observer(recipe, elsewhere and elsewhere.batch, deep)
        # A pre-attention bias allows one size only.
        long_nodes = recipe.validation_nodes if recipe.use_pre_att_bias else LONG_NODES
        largest = max(d.batch.nodes for d in (observer.test, *observer.deep))
        return Measuring(
            recipe=recipe,
            data={
                "test": observer.test,
                "long": make_data("long", long_traces(recipe.posed, long_nodes), recipe.mechanisms),
            },
            traced={**_seen_in_training(recipe), "test": observer.test.batch},
            margins=margins,
            compiled=compile_reference(recipe, largest, elsewhere and elsewhere.batch).compiled,
            foiled=foiled_hints(observer.test),
            observer=observer,
        )

    @property
    def beside(self) -> list[Subject]:
        """The networks that those of the run are compared with."""
        untrained = [
            Subject(f"untrained {seed}", initial(self.recipe, jnp.int32(seed)).network)
            for seed in range(UNTRAINED)
        ]
        compiled = self.compiled
        return untrained + ([] if compiled is None else [Subject("compiled", compiled.network)])

    def __call__(self, subject: Subject) -> NetworkMeasures:
        """Everything about one network.

        A network of the run is also kept to be looked at and to be compared with the others, and
        its attention is put into the compiled one. Attention is not forced on untrained ones.
        """
        name, network = subject.name, subject.network
        of_run, is_exact = isinstance(name, int), name == "compiled"
        if of_run:
            _check_shape(int(name), network, self.recipe)
        test = self.data["test"]
        trace = run(network, test.batch)
        runs = {
            each: trace if each == "test" else run(network, d.batch)
            for each, d in self.data.items()
        }
        with_ours = float("nan")
        if of_run and self.compiled is not None:
            exact = self.compiled.network
            if can_force(exact, test, trace.attention):
                with_ours = accuracy_under(exact, test, trace.attention)
        gaps = {
            each: {t.mechanism: internal_gap(runs[each].attention, t, d) for t in d.truths}
            for each, d in self.data.items()
        }
        nearest = max(test.truths, key=lambda t: gaps["test"][t.mechanism].agreement, default=None)
        return NetworkMeasures(
            accuracy=float(output_scores(test.batch, trace.outputs)["score"]),
            graph_accuracy=float(jnp.mean(right_graphs(test.batch, trace.outputs))),
            accuracy_by_sample=_by_sample(test.batch, trace),
            gaps=gaps,
            traces=_traces(network, self.traced, self.margins, trace),
            breaking=breaking_of(network, test, trace),
            from_own_state=from_own_state(network, test, trace) if is_exact or of_run else {},
            failing=failing(test, nearest, trace) if of_run and nearest is not None else None,
            deep=self.observer.see(network, trace.attention).deep,
            causal=causal(network, test, self.foiled) if of_run or is_exact else None,
            channels=channels(network, test),
            compiled_with_its_attention=with_ours,
            probes=probes(self.data["long"].batch, runs["long"]),
            fingerprint=self.observer.fingerprint(trace.attention) if of_run else None,
            examples=example_run(self.data["long"], runs["long"]) if of_run else {},
        )


def measure_population(
    recipe: Recipe,
    networks: Iterable[tuple[int, Network]],
    count: int,
    *,
    parameters: str = "best",
    diverged: Sequence[int] = (),
    elsewhere: Elsewhere | None = None,
    deep: int | None = None,
    margins: Margins | None = None,
    workers: Workers = this_process,
    on_progress: OnProgress = lambda *_: None,
) -> Results:
    """Measure networks that were trained with one recipe.

    `parameters` says which of each seed these are, and `diverged` which seeds are left out.
    `elsewhere` are graphs to measure on in place of the recipe's own test set, and `deep` is how
    many deep ones there are beside them.
    """
    on_progress("compiling", 0, count)
    measuring = Measuring.of(recipe, elsewhere, deep, margins)
    of_run, baselines = (Subject(*each) for each in networks), measuring.beside
    found: dict[int | str, NetworkMeasures] = {}
    for subject, measures in workers(measuring, chain(of_run, baselines)):
        found[subject.name] = measures
        on_progress("networks", len(found), count + len(baselines))
    seeds = {name: found[name] for name in sorted(n for n in found if isinstance(n, int))}
    if not seeds:
        raise InvalidInput("there is no finished seed to measure")
    beside = {name: each for name, each in found.items() if isinstance(name, str)}
    on_progress("distances between solutions", len(found), len(found))
    everyone = list(seeds.values())
    test, compiled = measuring.data["test"], measuring.compiled
    names = [truth.mechanism for truth in test.truths]
    gaps = {name: [m.gaps["test"][name] for m in everyone] for name in names}
    reference = compiled.program.name if compiled is not None else None
    prints = [m.fingerprint for m in everyone if m.fingerprint is not None]
    return Results(
        recipe=recipe,
        graphs=MeasuredOn(
            name=elsewhere.name if elsewhere else "test",
            count=test.batch.size,
            nodes=test.batch.nodes,
            deep=sum(each.batch.size for each in measuring.observer.deep),
            outside_certificate=_outside(compiled, test.batch),
            constant_outputs=constant_outputs(test.batch),
        ),
        parameters=parameters,
        diverged=tuple(diverged),
        provenance=Provenance.now(),
        reference=reference,
        seeds=seeds,
        baselines=_baselines(measuring, beside),
        correlations=correlations(
            [m.accuracy for m in everyone],
            [m.external for m in everyone],
            {name: [gap.agreement for gap in each] for name, each in gaps.items()},
            {name: [gap.tv for gap in each] for name, each in gaps.items()},
        ),
        solutions=solutions(
            measuring.observer.places.distances(np.stack(prints)),
            len(seeds),
            nodes=test.batch.nodes,
            closest=closest({s: m.gaps["test"][reference].tv for s, m in seeds.items()})
            if reference
            else None,
        ),
        examples=example_graphs(measuring.data["long"]),
    )


def _outside(compiled: Compiled | None, batch: Batch) -> int | None:
    """How many graphs lie outside the certificate."""
    if compiled is None:
        return None
    outside = np.stack([*compiled.outside(batch).values(), np.zeros(batch.size, bool)])
    return int(outside.any(axis=0).sum())


def constant_outputs(batch: Batch) -> tuple[str, ...]:
    """The outputs that are the same on all graphs of a batch."""
    values = {name: np.asarray(value) for name, value in batch.outputs.items()}
    return tuple(name for name, each in values.items() if (each == each[:1]).all())


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


def _by_sample(batch: Batch, trace: Trace) -> Float[np.ndarray, "samples"]:
    """The output accuracy on each graph."""
    score = jax.vmap(
        lambda i: output_scores(batch[i[None]], {k: v[i[None]] for k, v in trace.outputs.items()})
    )
    return np.asarray(score(jnp.arange(batch.size))["score"])


def _baselines(
    measuring: Measuring, beside: Mapping[str, NetworkMeasures]
) -> dict[str, NetworkMeasures]:
    """Attention that no network has, then what was found of networks beside those of the run."""
    data, compiled = measuring.data, measuring.compiled
    found = {}
    for name in ("uniform", "self"):
        gaps = {
            key: {t.mechanism: internal_gap(fixed_baselines(d)[name], t, d) for t in d.truths}
            for key, d in data.items()
        }
        scored, whole, each, traces = float("nan"), float("nan"), np.zeros(0), {}
        if compiled is not None:
            batch = data["test"].batch
            attention = fixed_baselines(data["test"])[name]
            trace = run_forced(compiled.network, data["test"], attention)
            scored = float(output_scores(batch, trace.outputs)["score"])
            whole = float(jnp.mean(right_graphs(batch, trace.outputs)))
            each = _by_sample(batch, trace)
            traces = {"test": external(batch, trace.hints, measuring.margins)}
        found[name] = NetworkMeasures(scored, whole, each, gaps, traces)
    found["untrained"] = _mean_of([beside[f"untrained {k}"] for k in range(UNTRAINED)])
    if compiled is not None:
        found["compiled"] = beside["compiled"]
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
