"""`run(network, batch)`: everything a network does on a batch, by name.

Time is hint steps times message-passing steps. A run is dm-clrs's evaluation: the network is
fed its own predicted hints. Steps go on over the padding of shorter samples; `Trace.valid`
tells which count.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mechgap.display import html_table, picture, png
from mechgap.errors import InvalidInput, unknown
from mechgap.network.network import Network, unroll
from mechgap.network.patch import Patch
from mechgap.tasks.batch import Batch
from mechgap.tasks.memory import check_memory
from mechgap.tasks.specs import Task


class Trace(eqx.Module):
    """The intermediate values of one run."""

    task: Task = eqx.field(static=True)
    attention: Float[Array, "time batch heads receivers senders"]
    logits: Float[Array, "time batch heads receivers senders"]
    """ω · leaky_relu(ζ), before mask and softmax."""
    support: Bool[Array, "steps batch receivers senders"]
    """Who may attend to whom; pointers that are fed back can widen it."""
    hidden: Float[Array, "time batch nodes hidden"]
    hints: Mapping[str, Array]
    """Raw predictions ``[steps, batch, …]``; prediction k is of hint k + 1."""
    outputs: Mapping[str, Array]
    """Raw predictions ``[batch, …]``."""
    lengths: Int[Array, "batch"]

    @property
    def steps(self) -> int:
        """How many hint steps were run."""
        return self.support.shape[0]

    @property
    def valid(self) -> Bool[Array, "time batch"]:
        """Which steps of which sample count: all that its own output depends on."""
        per_hint = self.attention.shape[0] // self.steps
        live = jnp.arange(self.steps)[:, None] < jnp.maximum(1, self.lengths - 1)
        return jnp.repeat(live, per_hint, axis=0)

    def plot(self, sample: int = 0) -> Any:
        """Attention at every step that counts, receivers down and senders across, mean of heads."""
        steps = int(jnp.sum(self.valid[:, sample]))
        figure = picture(1.6 * steps + 0.6, 2.1)
        panels = figure.subplots(1, steps, squeeze=False)[0]
        images = []
        for step, axes in enumerate(panels):
            values = jnp.mean(self.attention[step, sample], axis=0)
            images.append(axes.imshow(values, vmin=0, vmax=1, cmap="viridis"))
            axes.set(title=f"step {step + 1}", xlabel="sender", xticks=[], yticks=[])
        panels[0].set_ylabel("receiver")
        figure.colorbar(images[-1], ax=list(panels), label="α")
        return figure

    def _repr_html_(self) -> str:
        named = {
            **{name: getattr(self, name) for name in ("attention", "logits", "support", "hidden")},
            **{f"hints[{name!r}]": value for name, value in self.hints.items()},
            **{f"outputs[{name!r}]": value for name, value in self.outputs.items()},
        }
        rows = [(name, " × ".join(map(str, value.shape))) for name, value in named.items()]
        return html_table(["value", "shape"], rows, f"a run of {self.task.name}")

    def _repr_png_(self) -> bytes:
        return png(self.plot())


_REPLACEABLE = ("attention", "logits", "support", "hidden", "hints", "outputs")
_PER_SUBSTEP = ("attention", "logits", "hidden")


@runtime_checkable
class Guarantee(Protocol):
    """Something that promises exactness on some inputs and refuses others."""

    def check_inputs(self, batch: Batch) -> None:
        """Raise `InvalidInput` if a graph lies outside what is promised."""
        ...


def run(
    network: Network,
    batch: Batch,
    *,
    replace: Mapping[str, Any] | None = None,
    patch: Patch | None = None,
    within: Guarantee | None = None,
) -> Trace:
    """Run a network and keep every intermediate value.

    Args:
        network: Learned, compiled or imported.
        batch: Graphs of its task.
        replace: Values to force, by name, in the shapes that `Trace` has:
            ``{"attention": alpha}``; hints and outputs by their own names,
            ``{"hints": {"pi_h": logits}}``. What depends on a forced value follows it.
        patch: Another attention while the network runs: in some rows, or all at a temperature.
        within: Refuses graphs outside a guarantee: ``run(compiled.network, batch,
            within=compiled)``.

    Returns:
        Attention, logits, support, hidden states, and raw predictions of hints and outputs.

    Raises:
        InvalidInput: what is kept would not fit into memory (large graphs run as lists of edges:
            `mechgap.network.sparse.run_on_edges`), a graph lies outside, or a value has another
            shape than the run's own.

    >>> import jax
    >>> from mechgap.tasks.sampling import sample
    >>> batch = sample("bfs", jax.random.key(0), batch_size=2, nodes=4)
    >>> network = Network.initial("bfs", jax.random.key(1))
    >>> run(network, batch).attention.shape
    (3, 2, 1, 4, 4)
    """
    _check_memory(network, batch)
    if within is not None:
        within.check_inputs(batch)
    forced = dict(replace or {})
    for name in forced:
        if name not in _REPLACEABLE:
            raise unknown("value to replace", name, _REPLACEABLE)
    _check_shapes(network, batch, forced)
    if patch is not None:
        _check_patch(network, batch, patch)
    return _run(network, batch, forced, patch)


@eqx.filter_jit
def outputs(network: Network, batch: Batch) -> Mapping[str, Array]:
    """Run a network and keep its raw outputs only: what `Trace.outputs` is.

    Memory does not grow with the number of steps, so large graphs with long traces fit.
    """
    return unroll(network, batch, training=False, only_outputs=True).outputs


@eqx.filter_jit
def _run(network: Network, batch: Batch, replace: Mapping[str, Any], patch: Patch | None) -> Trace:
    substeps = network.config.nb_msg_passing_steps

    def split(values: Array) -> Array:
        return jnp.asarray(values).reshape(batch.steps, substeps, *values.shape[1:])

    def merge(values: Array) -> Array:
        return values.reshape(-1, *values.shape[2:])

    forced = {n: split(v) if n in _PER_SUBSTEP else v for n, v in replace.items()}
    ran = unroll(
        network,
        batch,
        training=False,
        replace=forced,
        patch=jax.tree.map(split, patch),
        keep_steps=True,
    )
    steps = ran.steps
    assert steps is not None
    return Trace(
        task=network.task,
        attention=merge(steps.attention),
        logits=merge(steps.logits),
        support=steps.support,
        hidden=merge(steps.hidden),
        hints=ran.hints,
        outputs=ran.outputs,
        lengths=batch.lengths,
    )


def _check_memory(network: Network, batch: Batch) -> None:
    """Refuse to keep more than there is room for: attention and its logits for all pairs."""
    config = network.config
    time = batch.steps * config.nb_msg_passing_steps * batch.size
    kept = time * batch.nodes * (2 * config.nb_heads * batch.nodes + config.hidden_size)
    remedy = "Take fewer graphs, or run them as lists of edges (mechgap.network.sparse)"
    check_memory(
        4 * kept, f"to keep a run over {batch.size} graphs of {batch.nodes:,} nodes", remedy
    )


def _check_shapes(network: Network, batch: Batch, replace: Mapping[str, Any]) -> None:
    """Refuse forced values of another shape than the run's own, with both shapes."""
    if not replace:
        return
    expected = eqx.filter_eval_shape(_run, network, batch, {}, None)

    def check(name: str, want: Any, given: Any) -> None:
        if tuple(want.shape) != tuple(jnp.shape(given)):
            raise InvalidInput(
                f"a replaced {name} must have the shape of the run's own, {list(want.shape)}; "
                f"got {list(jnp.shape(given))}"
            )

    for name, given in replace.items():
        want = getattr(expected, name)
        if not isinstance(want, Mapping):
            check(name, want, given)
            continue
        if not isinstance(given, Mapping):
            raise InvalidInput(f"replaced {name} are given by name: one of {', '.join(want)}")
        for key, value in given.items():
            if key not in want:
                raise unknown(f"value to replace in {name}", key, want)
            check(f"{name}[{key!r}]", want[key], value)


def _check_patch(network: Network, batch: Batch, patch: Patch) -> None:
    """Refuse a patch that is not of this network's steps on these graphs."""
    time, size, nodes = batch.steps * network.config.nb_msg_passing_steps, batch.size, batch.nodes
    wanted = {
        "rows": [(time, size, nodes)],
        "temperature": [(time,)],
        "given": [(time, size, heads, nodes, nodes) for heads in (1, network.config.nb_heads)],
    }
    for name, shapes in wanted.items():
        found = getattr(patch, name).shape
        if found not in shapes:
            said = " or ".join(str(list(shape)) for shape in dict.fromkeys(shapes))
            raise InvalidInput(f"a patch's {name} must have the shape {said}; got {list(found)}")
