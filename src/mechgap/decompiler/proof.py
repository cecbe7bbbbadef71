"""The causal proof: what a network answers when it is made to attend as an explanation says."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from mechgap.decompiler.evidence import ErrorsPredicted, Forced
from mechgap.decompiler.watched import Attention, Watched, spread
from mechgap.measures.baselines import uniform_attention
from mechgap.measures.causal import (
    Answered,
    accuracy_under,
    answered,
    can_force,
    floor_score,
    hardened_score,
)
from mechgap.measures.data import Data
from mechgap.network.network import Network
from mechgap.network.trace import Trace
from mechgap.programs.interpreter import interpret
from mechgap.programs.program import Program
from mechgap.programs.tracing import read
from mechgap.tasks.batch import Batch
from mechgap.tasks.scores import SCALAR_MARGIN, output_scores, right_nodes

ByPhase = Sequence[Attention]


def forced(
    network: Network,
    data: Data,
    own: Trace,
    phases: Sequence[Watched],
    rule: ByPhase,
    rule_softly: ByPhase,
    soft: Answered,
) -> Forced:
    """Accuracies of a network under its own attention, and under explanations of it.

    `soft` is what it answers under its soft form: `forced_to(...)`.
    """

    def under(by_phase: ByPhase) -> float:
        return float(forced_to(by_phase, network, data, phases).score)

    return Forced(
        graphs=data.batch.size,
        nodes=data.batch.nodes,
        own=float(output_scores(data.batch, own.outputs)["score"]),
        floor=floor_score(network, data),
        hardened=hardened_score(network, data),
        uniform=accuracy_under(network, data, uniform_attention(data)),
        rule=under(rule),
        rule_softly=under(rule_softly),
        soft=float(soft.score),
        mechanisms={
            truth.mechanism: accuracy_under(network, data, truth.attention)
            for truth in data.truths
            if can_force(network, data, truth.attention)
        },
    )


def forced_to(
    by_phase: ByPhase, network: Network, data: Data, phases: Sequence[Watched]
) -> Answered:
    """What a network answers when it attends, phase by phase, as an explanation says."""
    attention = spread(data.batch, phases[0].scenes, by_phase)
    return answered(network, data, jnp.asarray(attention))


def answers(program: Program, batch: Batch) -> float:
    """The share of outputs that a program has right when it is run by itself; NaN if it has none.

    As many steps as the true trace are taken.
    """
    ran = interpret(program, jax.tree.map(np.asarray, batch.inputs), batch.steps)
    at_end = np.maximum(0, np.asarray(batch.lengths) - 1), np.arange(batch.size)
    last = {name: jnp.asarray(states[at_end]) for name, states in ran.states.items()}
    right = [
        np.isclose(
            np.asarray(read(component, last, batch.inputs["pos"]), float),
            np.asarray(batch.outputs[name], float),
            atol=SCALAR_MARGIN,
        )
        for name, component in program.output.items()
    ]
    return float(np.mean([np.mean(one) for one in right])) if right else float("nan")


def errors_predicted(data: Data, own: Trace, soft: Answered) -> ErrorsPredicted:
    """Whether a network is wrong at the same nodes when it is made to attend by its soft form."""
    wrong = ~np.asarray(right_nodes(data.batch, own.outputs))
    told = ~np.asarray(soft.nodes)
    both = float((wrong & told).sum())
    return ErrorsPredicted(
        wrong=float(wrong.mean()),
        precision=both / float(told.sum()) if told.any() else float("nan"),
        recall=both / float(wrong.sum()) if wrong.any() else float("nan"),
    )
