"""A few graphs kept whole, to be looked at: what each network attends to and says, step by step."""

import jax.numpy as jnp
import numpy as np

from mechgap.measures.data import Data
from mechgap.measures.internal import at_steps, compared_steps
from mechgap.network.decoders import postprocess
from mechgap.network.trace import Trace
from mechgap.tasks.specs import Feature, Type
from mechgap.typed import Arrays

EXAMPLES = 4
"""How many graphs: the first of the set, which has the longest traces first."""


def example_graphs(data: Data) -> Arrays:
    """The graphs themselves: inputs, true hints and outputs, every mechanism's senders."""
    batch = data.batch[slice(0, EXAMPLES)]
    truths = {f"senders/{t.mechanism}": t.senders[:, :EXAMPLES] for t in data.truths}
    found = {
        **{f"inputs/{name}": value for name, value in batch.inputs.items()},
        **{f"hints/{name}": value for name, value in batch.hints.items()},
        **{f"outputs/{name}": value for name, value in batch.outputs.items()},
        **truths,
        "lengths": batch.lengths,
    }
    return {name: _small(np.asarray(value)) for name, value in found.items()}


def example_run(data: Data, trace: Trace) -> Arrays:
    """What a network did on them: attention (mean of heads), and decided hints and outputs.

    Attention is what each phase of the first mechanism is compared with; where no mechanism is
    known, that of the last message-passing step of every hint.
    """
    task = data.batch.task
    last = trace.attention.reshape(trace.steps, -1, *trace.attention.shape[1:])[:, -1]
    attention = last
    if data.truths:
        compared = compared_steps(trace.attention, data.truths[0], data)
        attention = at_steps(trace.attention, compared, trace.steps)
    found = {"attention": jnp.mean(attention[:, :EXAMPLES], axis=2)}
    if trace.hints:
        some = {f.name: trace.hints[f.name][:, :EXAMPLES] for f in task.hints}
        found |= {f"hints/{f.name}": _decided(f, some[f.name]) for f in task.hints}
    for f in task.outputs:
        found[f"outputs/{f.name}"] = _decided(f, trace.outputs[f.name][:EXAMPLES])
    return {name: _small(np.asarray(value)) for name, value in found.items()}


def _decided(feature: Feature, raw):
    """A raw prediction as a decision: a number, 0 or 1, or a node."""
    if feature.type in {Type.POINTER, Type.CATEGORICAL, Type.MASK_ONE}:
        return jnp.argmax(raw, -1)
    return postprocess([feature], {feature.name: raw}, hard=True)[feature.name]


def _small(values: np.ndarray) -> np.ndarray:
    if np.issubdtype(values.dtype, np.integer) or values.dtype == bool:
        return values.astype(np.int16)
    return values.astype(np.float16 if values.ndim > 3 else np.float32)
