"""Interpreter and compiled network on the same graphs, in the same words: on matrices, or on lists
of edges where graphs are large.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mechgap.compiler.compile import Compiled
from mechgap.network.sparse import Attended, run_on_edges
from mechgap.network.trace import run
from mechgap.programs.components import Component, Kind
from mechgap.programs.on_edges import nearest
from mechgap.programs.on_edges import run_on_edges as run_program
from mechgap.tasks.batch import Batch
from mechgap.tasks.edge_lists import EdgeLists


@dataclass(frozen=True)
class BothRan:
    """What the interpreter meant and what the network decided."""

    positions: Float[np.ndarray, "batch nodes"]
    states: Mapping[str, Float[np.ndarray, "steps batch nodes"]]
    """The interpreter's; see `Execution`."""
    reasons: Mapping[str, Bool[np.ndarray, "batch"]]
    """Which graphs lie outside the certificate."""
    hints: Mapping[str, np.ndarray]
    """The network's, a value of every node: pointers are nodes, classes numbers."""
    outputs: Mapping[str, np.ndarray]
    off: Float[np.ndarray, "time batch"]
    """The largest difference between the network's attention and the interpreter's selection, in
    steps that count. On lists, of the pairs in the list and of those along pointers."""

    @cached_property
    def inside(self) -> Bool[np.ndarray, "batch"]:
        """Which graphs lie inside the certificate."""
        return ~np.any(list(self.reasons.values()), axis=0)

    @property
    def attention(self) -> float:
        """How far attention is off, at most, on graphs inside the certificate."""
        return float(np.max(self.off * self.inside, initial=0.0))

    def nodes_at(
        self, values: Float[np.ndarray, "steps batch nodes"]
    ) -> Int[np.ndarray, "steps batch nodes"]:
        """The nodes at given positions."""
        found = [nearest(values[:, k], p) for k, p in enumerate(self.positions)]
        return np.stack(found, axis=1)


def run_small(compiled: Compiled, batch: Batch) -> BothRan:
    """On matrices of all pairs of nodes."""
    meaning, reasons = compiled.interpreted(batch)
    trace = run(compiled.network, batch)
    program, nodes = compiled.program, batch.nodes
    off = attention_off(np.asarray(trace.attention).mean(2), meaning.senders)
    return BothRan(
        np.asarray(batch.inputs["pos"], float),
        meaning.states,
        reasons,
        {k: _decided(c, np.asarray(trace.hints[k]), nodes) for k, c in program.hints.items()},
        {k: _decided(c, np.asarray(trace.outputs[k]), nodes) for k, c in program.output.items()},
        np.where(np.asarray(trace.valid), off, 0),
    )


def _decided(component: Component, raw: np.ndarray, nodes: int) -> np.ndarray:
    """A raw prediction as a value of every node."""
    match component.kind:
        case Kind.POINTER:
            return raw.argmax(-1)
        case Kind.CHOICE:
            return np.eye(raw.shape[-1])[raw.argmax(-1)]
        case Kind.BOOL:
            return (raw > 0).astype(float)
    return _as_it_is(component, raw, nodes)


def _as_it_is(component: Component, values: np.ndarray, nodes: int) -> np.ndarray:
    """What needs no decision, as a value of every node."""
    match component.kind:
        case Kind.CLASS:
            return values.argmax(-1)
        case Kind.TOTAL:
            return np.broadcast_to(values[..., None], (*values.shape, nodes))
    return values


def run_large(compiled: Compiled, batch: Batch) -> BothRan:
    """On lists of edges, of a batch of one graph."""
    program, nodes = compiled.program, batch.nodes
    given = EdgeLists.of(batch)
    edges, known = given.graph(0)
    meaning = run_program(program, edges, known, batch.steps)
    inputs = {name: values[None] for name, values in known.items()}
    reasons = compiled.certificate.outside(program, inputs, meaning, np.asarray(batch.lengths))
    trace = run_on_edges(compiled.network, given, _Off(jnp.asarray(meaning.senders[:, 0])))
    off = np.asarray(trace.kept)
    live = len(program.phases) * np.maximum(1, np.asarray(batch.lengths) - 1)
    counted = np.arange(len(off))[:, None] < live
    outputs = {}
    for name, component in program.output.items():
        raw = np.asarray(trace.outputs[name])
        points = component.kind is Kind.POINTER  # which is decided already
        outputs[name] = raw if points else _decided(component, raw, nodes)
    return BothRan(
        inputs["pos"],
        meaning.states,
        reasons,
        {k: _as_it_is(c, np.asarray(trace.hints[k]), nodes) for k, c in program.hints.items()},
        outputs,
        np.where(counted, off, 0),
    )


def attention_off(
    attention: Float[np.ndarray, "time batch receivers senders"],
    senders: Int[np.ndarray, "time batch receivers"],
) -> Float[np.ndarray, "time batch"]:
    """The largest difference from attention to these senders alone. Overwrites the attention."""
    there = senders[..., None]
    missing = np.abs(1 - np.take_along_axis(attention, there, axis=-1))
    np.put_along_axis(attention, there, missing, axis=-1)
    return attention.max((-1, -2))


class _Off(eqx.Module):
    """The same of attention on the list of one graph."""

    senders: Int[Array, "time receivers"]

    def __call__(
        self, attended: Attended, time: Int[Array, ""], graph: Int[Array, ""]
    ) -> Float[Array, ""]:
        del graph
        pairs = attended.pairs
        right = self.senders[time].at[pairs.receivers].get(mode="fill", fill_value=-1)
        attention = jnp.mean(attended.attention, axis=0)
        off = jnp.where(right == pairs.senders, jnp.abs(1 - attention), attention)
        return jnp.max(jnp.where(right >= 0, off, 0))
