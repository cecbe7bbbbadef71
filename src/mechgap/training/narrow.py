"""The loss of a minimal network and its gradient as one native function.

The paper's minimal networks have four hidden units. In them no operation is large enough to be
fast alone, so all of them together are one function here, forwards and backwards, with samples side
by side in vector registers (`narrow.cc`). It computes what `loss.loss_and_gradient` computes.
"""

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mechgap.network import native
from mechgap.network.config import HintRepredMode, NetworkConfig
from mechgap.network.decoders import PointerDecoder, PreparedDecoders
from mechgap.network.network import Network, Prepared
from mechgap.network.pairwise import SLOPE
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Location, Task, Type, get_task

NATIVE = (Path(__file__).with_suffix(".cc"), ("narrow",))
"""The source of the native code, and its functions."""
HIDDEN_SIZE = 4
"""What the native code is made for."""
_KINDS = {Type.SCALAR: 0, Type.MASK: 1, Type.POINTER: 2}


def applies(task: Task | str, config: NetworkConfig) -> bool:
    """Whether the native function can train such a network here."""
    task = get_task(task)
    plain = (
        config.hidden_size == HIDDEN_SIZE
        and config.nb_heads == 1
        and config.nb_msg_passing_steps == 1
        and config.dropout_prob == 0
        and config.hint_repred_mode is not HintRepredMode.HARD
        and config.hint_teacher_forcing == 0
    )
    hints_fit = all(f.location is Location.NODE and f.type in _KINDS for f in task.hints)
    outputs_fit = [f.type for f in task.outputs] == [Type.POINTER]
    edge_inputs = [f for f in task.inputs if f.location is Location.EDGE]
    pointers = [f for f in task.hints if f.type is Type.POINTER]
    return (
        plain
        and hints_fit
        and outputs_fit
        and (len(edge_inputs), len(pointers)) == (2, 1)
        and native.available(*NATIVE)
    )


def loss_and_gradient(network: Network, batch: Batch) -> tuple[Float[Array, ""], Network]:
    """The loss of a batch and its gradient. Fastest if the batch is sorted by length."""
    prepared, backward = jax.vjp(Prepared.of, network)
    loss, gradient = prepared_loss_and_gradient(prepared, network, batch)
    return loss, backward(gradient)[0]


def prepared_loss_and_gradient(
    prepared: Prepared, network: Network, batch: Batch
) -> tuple[Float[Array, ""], Prepared]:
    """The same, with the gradient of the prepared parameters."""
    config, task = network.config, network.task
    parameters, backward = jax.vjp(_flat, prepared)
    hints = task.hints if config.decodes_hints else ()
    pointers = [f for f in hints if f.type is Type.POINTER]
    edges = [f for f in task.inputs if f.location is Location.EDGE]
    loss, gradient = native.call(
        "narrow",
        [(), parameters.shape],
        parameters,
        _stacked([f for f in task.inputs if f.location is Location.NODE], batch.inputs, batch),
        _stacked(edges, batch.inputs, batch),
        _stacked([f for f in hints if f.type is not Type.POINTER], batch.hints, batch),
        _stacked(pointers, batch.hints, batch),
        batch.outputs[task.outputs[0].name].astype(parameters.dtype),
        batch.lengths.astype(parameters.dtype),
        hidden=np.int64(config.hidden_size),
        adjacency=np.int64([f.type for f in edges].index(Type.MASK)),
        everyone=np.int64(config.attends_to_all),
        kinds=np.array([_KINDS[f.type] for f in hints], np.int64),
        feeds_hints=np.int64(config.encodes_hints),
        edge_info=np.int64(config.use_edge_info),
        bias=np.int64(config.use_pre_att_bias),
        norm=np.int64(config.use_ln),
        simplified=np.int64(config.simplify_decoders),
        slope=np.float64(SLOPE),
        sharpness=np.float64(config.simplified_sharpness),
    )
    return loss, backward(gradient)[0]


def _flat(prepared: Prepared) -> Float[Array, "parameters"]:
    """The parameters as a run uses them, in the order in which narrow.cc expects them."""
    processor = prepared.processor
    parts = [processor.projections.weight, processor.projections.bias]
    parts += [processor.edge, processor.meta.bias, processor.attention]
    if processor.info is not None:
        parts += [processor.info.weight, processor.info.bias]
    if processor.pre_attention_bias is not None:
        parts.append(processor.pre_attention_bias)
    if processor.norm is not None:
        parts += [processor.norm.scale, processor.norm.offset]
    parts += _decoder_parts(prepared.hints) + _decoder_parts(prepared.outputs)
    return jnp.concatenate([part.ravel() for part in parts])


def _decoder_parts(prepared: PreparedDecoders) -> list[Array]:
    if prepared.readers is None:
        return []
    parts = [prepared.readers.weight, prepared.readers.bias]
    for name, decoder in prepared.in_order.items():
        if isinstance(decoder, PointerDecoder):
            edge = prepared.edges[name]
            parts += [edge.weight, edge.bias, decoder.score.weight, decoder.score.bias]
    return parts


def _stacked(features: Sequence[Feature], values, batch: Batch) -> Float[Array, "... features"]:
    """Some features side by side in a last axis, which is empty if there are none."""
    dtype = batch.inputs["pos"].dtype
    if not features:
        return jnp.zeros((batch.max_hints, batch.size, batch.nodes, 0), dtype)
    return jnp.stack([values[f.name].astype(dtype) for f in features], axis=-1)
