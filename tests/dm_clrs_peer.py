"""dm-clrs as the tests use it: traces of given graphs, and its own scores of our parameters."""

from typing import Any, NamedTuple, cast

import clrs
import jax
import numpy as np
from clrs._src import algorithms, decoders
from scipy import stats

from mechgap.interop.dm_clrs import baseline_model, to_haiku
from mechgap.network.network import Network
from mechgap.tasks.specs import TASKS, Task

DM_CLRS_TASKS = [task.name for task in TASKS.values() if task.in_dm_clrs]


class PeerTrace(NamedTuple):
    hints: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    length: int


def peer_trace(task: Task, A: np.ndarray, source: int) -> PeerTrace:
    """dm-clrs's own trace. Read from its probes, since its batching cannot hold one node."""
    run: Any = getattr(algorithms, task.name)
    _, probes = run(A, source) if task.has_source else run(A)
    hints = {f.name: probes["hint"][f.location.value][f.name]["data"] for f in task.hints}
    outputs = {
        f.name: probes["output"][f.location.value][f.name]["data"].reshape(len(A))
        for f in task.outputs
    }
    return PeerTrace(hints, outputs, len(hints[task.hints[0].name]))


def peer_scores(
    network: Network, *, graphs: int, nodes: int, seed: int
) -> tuple[float, dict[str, float]]:
    """dm-clrs's scores of output and hints, of its own network with our parameters."""
    task = network.task.name
    sampler, spec = clrs.build_sampler(task, num_samples=graphs, length=nodes, seed=seed)
    feedback = sampler.next()
    model = baseline_model(task, network.config, feedback, parameters=to_haiku(network))
    outputs, hints = model.predict(jax.random.PRNGKey(0), feedback.features, return_hints=True)
    hard = [
        decoders.postprocess(spec, step, sinkhorn_temperature=0.1, sinkhorn_steps=25, hard=True)
        for step in hints
    ]
    scores = clrs.evaluate_hints(feedback.features.hints, feedback.features.lengths, hard)
    output = clrs.evaluate(feedback.outputs, outputs)["score"]
    return float(output), {f.name: float(scores[f.name]) for f in network.task.hints}


def same_distribution(a: Any, b: Any) -> float:
    """The p-value of the two-sample Kolmogorov-Smirnov test."""
    return cast(Any, stats.ks_2samp(np.ravel(a), np.ravel(b), method="asymp")).pvalue
