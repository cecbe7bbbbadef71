"""Is our network dm-clrs's network? Predictions, loss and every gradient, side by side.

    python benchmarks/parity.py [--out FILE]

Takes hours; a stopped run goes on where it was. It runs the full product of tasks and
architectures (the tests run a pairwise cover of it). For each, dm-clrs
initialises the parameters, both sides compute, and the largest differences are kept, gradients as
max|Δ| / max(max|g|, 1e-3 · largest gradient).

Why in float64: relu, leaky relu and max have kinks, and a deep unrolled network is chaotic. Where
two float32 sums that are added in another order fall on two sides of a kink, a gradient jumps by
more than any rounding; in deep cases dm-clrs's float32 gradients differ from its own float64 ones
by more than from ours, and after 50 steps of a network of 4 units predictions do too. In float64
that noise is gone and a real difference would stay. Predictions in float32 are compared as well.
"""

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import equinox as eqx
import jax
import numpy as np

from measuring import RESULTS, machine
from mechgap.interop.dm_clrs import (
    HaikuParameters,
    baseline_model,
    from_haiku,
    to_feedback,
    to_haiku,
)
from mechgap.network import network as unrolling
from mechgap.network.config import NetworkConfig, ProcessorType
from mechgap.network.decoders import postprocess
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import sample
from mechgap.tasks.specs import TASKS
from mechgap.training.loss import loss


@dataclass(frozen=True)
class Parity:
    """The largest differences between dm-clrs and mechgap."""

    gradients: float
    """Relative to each gradient's largest entry, at least 1e-3 of the largest of all; float64."""
    loss: float
    """Relative to dm-clrs's loss; float64."""
    outputs: float
    """Relative to the largest prediction of that name, at least 1; float64."""
    hints: float
    """Relative to the largest prediction of that name, at least 1; float64."""
    float32: float | None
    """The same over outputs and hints, in float32."""


def measure_parity(
    task: str, config: NetworkConfig, *, seed: int = 0, single: bool = True
) -> Parity:
    """Both networks with dm-clrs's initial parameters on one batch of about a dozen steps.

    Without `single` float32 is left out, which saves dm-clrs's compilation.
    """
    nodes = 6 if TASKS[task].hints_per_node > 1 else 11
    batch = sample(task, jax.random.key(seed), batch_size=4, nodes=nodes).trim()
    feedback = to_feedback(batch)
    model = baseline_model(task, config, feedback, seed=seed)
    network = from_haiku(task, config, model.params)

    float32 = max(_predictions(model, network, batch, feedback)) if single else None
    with jax.enable_x64(True), patch.object(unrolling, "postprocess", _rounded_as_in_dm_clrs):
        model.params = jax.tree.map(lambda x: np.asarray(x, np.float64), model.params)
        their_loss, their_gradients = model.compute_grad(jax.random.PRNGKey(0), feedback)
        network = from_haiku(task, config, model.params)
        our_loss, gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss))(network, batch)
        our_gradients = to_haiku(gradient)
        double = _predictions(model, network, batch, feedback)
    return Parity(
        gradients=_gradient_error(their_gradients, our_gradients),
        loss=abs(float(our_loss) - float(their_loss)) / abs(float(their_loss)),
        outputs=double[0],
        hints=double[1],
        float32=float32,
    )


def _predictions(model: Any, network: Network, batch: Batch, feedback: Any) -> tuple[float, float]:
    """The largest differences of outputs and of hints, with hints fed back as in a test."""
    predict = partial(
        model.net_fn.apply,
        repred=True,
        algorithm_index=0,
        return_hints=True,
        return_all_outputs=False,
    )
    outputs, hints = jax.jit(predict)(model.params, jax.random.PRNGKey(0), [feedback.features])
    trace = run(network, batch)
    stacked = {name: np.stack([step[name] for step in hints]) for name in (hints or [{}])[0]}
    assert set(stacked) == set(trace.hints)
    return _largest(outputs, trace.outputs), _largest(stacked, trace.hints)


def _rounded_as_in_dm_clrs(*arguments: Any) -> Mapping[str, Any]:
    """dm-clrs rounds hints to float32 when it feeds them back, even in float64. So do we, here."""
    fed = postprocess(*arguments)
    return {name: value.astype(np.float32).astype(value.dtype) for name, value in fed.items()}


def _gradient_error(theirs: HaikuParameters, ours: HaikuParameters) -> float:
    assert theirs.keys() == ours.keys()
    pairs = [
        (np.asarray(gradient), np.asarray(ours[module][name]))
        for module, named in theirs.items()
        for name, gradient in named.items()
    ]
    assert all(a.dtype == b.dtype == np.float64 for a, b in pairs)
    floor = 1e-3 * max(np.abs(a).max() for a, _ in pairs)
    return max(float(np.abs(a - b).max() / max(np.abs(a).max(), floor)) for a, b in pairs)


def _largest(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> float:
    return max(
        (
            float(np.abs(np.asarray(theirs[name]) - np.asarray(ours[name])).max())
            / max(1.0, float(np.abs(np.asarray(theirs[name])).max()))
            for name in theirs
        ),
        default=0.0,
    )


def full_product() -> Iterator[tuple[str, NetworkConfig]]:
    """Every case; repred mode and forcing only where hints are fed back."""
    shapes = itertools.product((4, 128), (1, 4), (True, False), (1, 3), ProcessorType)
    tasks = [task.name for task in TASKS.values() if task.in_dm_clrs]
    for hidden, heads, norm, steps, processor in shapes:
        shape = NetworkConfig(
            hidden_size=hidden,
            nb_heads=heads,
            use_ln=norm,
            nb_msg_passing_steps=steps,
            processor_type=processor,
        )
        modes = [
            {"hint_repred_mode": mode, "hint_teacher_forcing": forcing}
            for mode in ("soft", "hard", "hard_on_eval")
            for forcing in (0.0, 1.0)
        ] + [{"hint_mode": "decoded_only"}, {"hint_mode": "none"}]
        for mode, task in itertools.product(modes, tasks):
            yield task, replace(shape, **mode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS / "parity.json")
    arguments = parser.parse_args()
    cases = list(full_product())
    rows = json.loads(arguments.out.read_text())["cases"] if arguments.out.exists() else []
    done = {row["case"] for row in rows}
    for i, (task, config) in enumerate(cases):
        case = _name(task, config)
        if case in done:
            continue
        began = time.perf_counter()
        found = measure_parity(task, config, seed=i)
        rows.append({"case": case, **{k: float(f"{v:.2g}") for k, v in asdict(found).items()}})
        _write(arguments.out, len(cases), rows)
        seconds = time.perf_counter() - began
        print(f"{len(rows)}/{len(cases)} {rows[-1]} ({seconds:.0f} s)", flush=True)
        jax.clear_caches()
    print("largest:", json.loads(arguments.out.read_text())["largest"])


def _name(task: str, config: NetworkConfig) -> str:
    parts = [
        task,
        str(config.processor_type),
        f"hidden {config.hidden_size}",
        f"heads {config.nb_heads}",
    ]
    parts += ["layer norm" if config.use_ln else "no layer norm"]
    parts += [f"{config.nb_msg_passing_steps} message-passing steps", str(config.hint_mode)]
    if config.encodes_hints:
        parts += [str(config.hint_repred_mode), f"teacher forcing {config.hint_teacher_forcing:g}"]
    return ", ".join(parts)


def _write(path: Path, cases: int, rows: list[dict[str, Any]]) -> None:
    """Save after every case, so that a stopped run goes on where it was."""
    names = ("gradients", "loss", "outputs", "hints", "float32")
    largest = {name: max(row[name] for row in rows) for name in names}
    summary = {"machine": machine(), "cases_in_all": cases, "cases_done": len(rows)}
    text = json.dumps({**summary, "largest": largest, "cases": rows}, indent=1)
    partial = path.with_suffix(".partial")
    partial.write_text(text + "\n")
    partial.replace(path)


if __name__ == "__main__":
    main()
