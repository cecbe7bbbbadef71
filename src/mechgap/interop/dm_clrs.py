"""dm-clrs in and out. The only file that imports `clrs`, and only when one of these is called.

Parameters go both ways without dm-clrs installed: `to_haiku` and `from_haiku` know the names
that Haiku gives. Weights have one layout on both sides, so they are copied, never changed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mechgap.errors import InvalidInput
from mechgap.network.config import HintMode, NetworkConfig, ProcessorType
from mechgap.network.decoders import GraphDecoder, NodeDecoder, PointerDecoder
from mechgap.network.linear import Linear
from mechgap.network.network import Network
from mechgap.tasks.batch import Batch
from mechgap.tasks.official import NODES, SAMPLES, SEEDS, Split
from mechgap.tasks.specs import Feature, Task, Type, get_task

HaikuParameters = Mapping[str, Mapping[str, Any]]

_PROCESSOR = "net/gatv2_aggr_clrs_processor"
_NORM = f"{_PROCESSOR}/layer_norm"
_CODERS = "net/~_construct_encoders_decoders/algo_0"


def _numbered(name: str, i: int) -> str:
    """Haiku's name of the i-th module that asks for one name."""
    return name if i == 0 else f"{name}_{i}"


def _linears(network: Network) -> Iterator[tuple[str, Linear]]:
    """Every affine map of the network under its Haiku name."""
    gat = network.processor
    order = (gat.value, gat.skip, gat.sender, gat.receiver, gat.edge, gat.meta)
    for i, linear in enumerate(order):
        yield _numbered(f"{_PROCESSOR}/linear", i), linear
    for name, linear in network.encoders.linears.items():
        yield f"{_CODERS}_{name}_enc_linear", linear
    for name, decoder in network.decoders.items():
        match decoder:
            case NodeDecoder():
                parts = (decoder.linear,)
            case PointerDecoder():
                parts = (decoder.pointing, decoder.pointed, decoder.edge, decoder.score)
            case GraphDecoder():
                parts = (decoder.nodes, decoder.graph)
            case _:
                raise InvalidInput(
                    "dm-clrs has no simplified pointer decoder, so this network cannot be given "
                    "to it. Use simplify_decoders = false"
                )
        for i, linear in enumerate(parts):
            yield _numbered(f"{_CODERS}_{name}_dec_linear", i), linear


def _head_name(i: int) -> str:
    return f"{_PROCESSOR}/linear_{6 + i}"


def to_haiku(network: Network) -> dict[str, dict[str, np.ndarray]]:
    """The network's parameters as dm-clrs's `BaselineModel` holds them."""
    return jax.tree.map(np.asarray, _parameters(network))


def _parameters(network: Network) -> dict[str, dict[str, jax.Array]]:
    gat = network.processor
    for name, value in (
        ("edge information", gat.info),
        ("pre-attention bias", gat.pre_attention_bias),
    ):
        if value is not None:
            raise InvalidInput(
                f"dm-clrs's GATv2 has no {name}, so this network cannot be given to it"
            )
    parameters = {
        name: {"w": linear.weight, "b": linear.bias} for name, linear in _linears(network)
    }
    for i in range(network.config.nb_heads):
        parameters[_head_name(i)] = {
            "w": gat.attention[i, :, None],
            "b": gat.attention_bias[i, None],
        }
    if gat.norm is not None:
        parameters[_NORM] = {"scale": gat.norm.scale, "offset": gat.norm.offset}
    return parameters


def from_haiku(task: Task | str, config: NetworkConfig, parameters: HaikuParameters) -> Network:
    """The network with dm-clrs's parameters. Names and shapes must be exactly the network's."""
    task = get_task(task)
    shape = eqx.filter_eval_shape(Network.initial, task, jax.random.key(0), config)
    _check_fit(eqx.filter_eval_shape(_parameters, shape), parameters)

    def linear(name: str) -> Linear:
        return Linear(jnp.asarray(parameters[name]["w"]), jnp.asarray(parameters[name]["b"]))

    names = {id(old): name for name, old in _linears(shape)}
    network = jax.tree.map(
        lambda leaf: linear(names[id(leaf)]) if isinstance(leaf, Linear) else leaf,
        shape,
        is_leaf=lambda leaf: isinstance(leaf, Linear),
    )
    heads = [parameters[_head_name(i)] for i in range(config.nb_heads)]
    network = eqx.tree_at(
        lambda net: (net.processor.attention, net.processor.attention_bias),
        network,
        (
            jnp.stack([jnp.asarray(head["w"])[:, 0] for head in heads]),
            jnp.stack([jnp.asarray(head["b"])[0] for head in heads]),
        ),
    )
    if config.use_ln:
        norm = parameters[_NORM]
        network = eqx.tree_at(
            lambda net: (net.processor.norm.scale, net.processor.norm.offset),
            network,
            (jnp.asarray(norm["scale"]), jnp.asarray(norm["offset"])),
        )
    return network


def config_of(
    task: Task | str,
    parameters: HaikuParameters,
    nb_msg_passing_steps: int = 1,
    processor_type: ProcessorType | str = ProcessorType.GATV2,
) -> NetworkConfig:
    """The shape of the dm-clrs network that has these parameters.

    All but the number of message-passing steps and who attends to whom (`gatv2` or `gatv2_full`),
    which leave no trace in them.
    """
    task = get_task(task)
    first = f"{_PROCESSOR}/linear"
    if first not in parameters or np.ndim(parameters[first].get("w", 0)) != 2:
        raise InvalidInput(
            f"these are not parameters of dm-clrs's GATv2: {first}/w is missing. Tensors are named "
            "<module>/<w|b|scale|offset>, as Haiku names them"
        )
    heads = 0
    while _head_name(heads) in parameters:
        heads += 1
    hints = [f.name for f in task.hints]
    encoded = any(f"{_CODERS}_{name}_enc_linear" in parameters for name in hints)
    decoded = any(f"{_CODERS}_{name}_dec_linear" in parameters for name in hints)
    mode = HintMode.DECODED_ONLY if decoded else HintMode.NONE
    return NetworkConfig(
        hidden_size=int(np.shape(parameters[first]["w"])[1]),
        nb_heads=max(1, heads),
        nb_msg_passing_steps=nb_msg_passing_steps,
        use_ln=_NORM in parameters,
        hint_mode=HintMode.ENCODED_DECODED if encoded else mode,
        processor_type=processor_type,
    )


def _check_fit(expected: HaikuParameters, parameters: HaikuParameters) -> None:
    """Refuse parameters of other names or shapes than expected, listing what does not fit."""

    def shapes(nested: HaikuParameters) -> dict[str, tuple[int, ...]]:
        return {f"{m}/{k}": tuple(np.shape(v)) for m, ks in nested.items() for k, v in ks.items()}

    want, have = shapes(expected), shapes(parameters)
    problems = [f"{name} is missing" for name in want if name not in have]
    problems += [f"{name} is not part of this network" for name in have if name not in want]
    problems += [
        f"{name} has shape {list(have[name])}, not {list(shape)}"
        for name, shape in want.items()
        if name in have and have[name] != shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise InvalidInput(
            f"these parameters do not fit the network: {'; '.join(problems[:3])}{more}"
        )


def to_feedback(batch: Batch) -> Any:
    """A batch as dm-clrs's `Feedback`."""
    import clrs

    def points(features: tuple[Feature, ...], values: Mapping[str, Any]) -> list[Any]:
        return [
            clrs.DataPoint(f.name, f.location.value, f.type.value, np.asarray(values[f.name]))
            for f in features
        ]

    task = batch.task
    hints = [
        clrs.DataPoint(dp.name, dp.location, dp.type_, dp.data.astype(np.float64))
        for dp in points(task.hints, batch.hints)
    ]
    features = clrs.Features(
        inputs=points(task.inputs, batch.inputs),
        hints=hints,
        lengths=np.asarray(batch.lengths, np.float64),
    )
    return clrs.Feedback(features, points(task.outputs, batch.outputs))


def from_feedback(task: Task | str, feedback: Any) -> Batch:
    """A batch with the arrays of dm-clrs's `Feedback`."""
    task = get_task(task)

    def arrays(points: Any, features: tuple[Feature, ...]) -> dict[str, jax.Array]:
        by_name = {dp.name: dp.data for dp in points}
        return {
            f.name: jnp.asarray(
                np.asarray(by_name[f.name]).astype(
                    np.int32 if f.type is Type.POINTER else np.float32
                )
            )
            for f in features
        }

    return Batch(
        task,
        arrays(feedback.features.inputs, task.inputs),
        arrays(feedback.features.hints, task.hints),
        arrays(feedback.outputs, task.outputs),
        jnp.asarray(np.asarray(feedback.features.lengths).astype(np.int32)),
    )


def baseline_model(
    task: Task | str,
    config: NetworkConfig,
    feedback: Any,
    *,
    parameters: HaikuParameters | None = None,
    seed: int = 0,
    **training: Any,
) -> Any:
    """dm-clrs's own `BaselineModel` of the same shape, initialised by it or with `parameters`.

    `training` goes to dm-clrs as it is (`learning_rate`, `grad_clip_max_norm`, …).
    """
    import clrs
    import clrs.models

    task = get_task(task)
    spec = {f.name: (f.stage.value, f.location.value, f.type.value) for f in task.features}
    model = clrs.models.BaselineModel(
        spec=[spec],
        dummy_trajectory=[feedback],
        processor_factory=clrs.get_processor_factory(
            str(config.processor_type),
            use_ln=config.use_ln,
            nb_triplet_fts=8,
            nb_heads=config.nb_heads,
        ),
        hidden_dim=config.hidden_size,
        encode_hints=config.encodes_hints,
        decode_hints=config.decodes_hints,
        encoder_init=str(config.encoder_init),
        dropout_prob=config.dropout_prob,
        hint_teacher_forcing=config.hint_teacher_forcing,
        hint_repred_mode=str(config.hint_repred_mode),
        nb_msg_passing_steps=config.nb_msg_passing_steps,
        **training,
    )
    if parameters is None:
        # What `model.init` does, in one compiled program instead of hundreds of small ones.
        features = [feedback.features]
        initial = jax.jit(
            lambda key: model.net_fn.init(
                *(key, features, True),
                algorithm_index=-1,
                return_hints=False,
                return_all_outputs=False,
            )
        )
        model.params = initial(jax.random.PRNGKey(seed))
    else:
        model.params = {module: dict(named) for module, named in parameters.items()}
    model.opt_state = model.opt.init(model.params)
    model.opt_state_skeleton = model.opt.init(jnp.zeros(1))
    return model


def official_feedback(task: str, split: Split) -> Any:
    """An official CLRS-30 set, sampled anew by dm-clrs, as its `Feedback`."""
    import clrs

    sampler, _ = clrs.build_sampler(
        task, num_samples=SAMPLES, length=NODES[split], seed=SEEDS[split]
    )
    return sampler.next()
