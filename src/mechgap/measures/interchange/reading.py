"""What the hidden state says of a variable, node by node, and whether that is wrong before anything
else is.

The directions that carry a variable are read by least squares, fitted on graphs of 16 nodes: a flag
is set above one half, a class is the largest of its flags, a pointer is the node with the nearest
position (its own is known, too), a number is right within `NUMBER`. Moments are those at which the
program still needs the variable; what the whole graph has one of is read at every node alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.measures.data import Data, GroundTruth
from mechgap.measures.failing import first_mistakes, wrong_nodes
from mechgap.measures.interchange.alignment import Directions
from mechgap.measures.interchange.cases import moments_of
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.programs.changing import names_of, ran
from mechgap.programs.components import Component, Kind
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import sample

FIT_GRAPHS, FIT_NODES = 64, 16
NUMBER = 0.05
"""Off by less, a number is read rightly."""
READABLE = 0.9
"""What is read rightly less often says nothing of where it goes wrong."""
SAME = 1e-9
"""Positions that are nearer to each other are those of one node."""
FIRSTS = ("before", "together", "after", "never")
"""When the state of a wrong node is wrong, beside the first wrong hint or attention of it."""


@dataclass(frozen=True)
class Reading:
    """One variable, as the hidden state says it on the test graphs."""

    right: float
    """Share of nodes and moments at which it is read rightly."""
    wrong_nodes: int
    """Nodes that are answered wrongly."""
    first: Mapping[str, float]
    """Of these, when the state is first wrong; see `FIRSTS`. Empty where none is, or where the
    variable is not `READABLE`."""

    @property
    def wrong_first(self) -> float | None:
        """The share of wrong nodes at which the state is wrong before anything else is; None where
        none is wrong, or where it cannot tell."""
        return self.first.get("before") if self.right >= READABLE else None


class Readable:
    """A network's runs on the graphs to fit on and on the test graphs, beside one mechanism."""

    def __init__(self, network: Network, truth: GroundTruth, test: Data):
        program = truth.program
        key = jax.random.key(0x4EAD)
        task = test.batch.task
        batch = sample(task, key, batch_size=FIT_GRAPHS, nodes=FIT_NODES, random_pos=False).trim()
        self.program = program
        self._fit = _Held.of(program, batch, run(network, batch))
        trace = run(network, test.batch)
        self._test = _Held.of(program, test.batch, trace)
        attention, hint = first_mistakes(test, truth, trace)
        self._mistake = np.minimum(attention, hint)
        self._wrong = wrong_nodes(test, trace)

    def read(self, variable: str, directions: Directions) -> Reading:
        """A variable off the directions that carry it."""
        component = self.program.components[variable]
        fit, test = (
            held.of_variable(self.program, component, np.asarray(directions, np.float64))
            for held in (self._fit, self._test)
        )
        weights, *_ = np.linalg.lstsq(fit.design, fit.targets, rcond=None)
        said = test.features @ weights
        wrong = _wrong(component, said, test.values, self._test.positions) & test.counted
        steps = np.where(wrong, test.steps[:, None, None], self._test.steps)
        state = steps.min(axis=0, initial=self._test.steps)
        right = 1 - float(wrong.sum() / max(1, np.broadcast_to(test.counted, wrong.shape).sum()))
        first = _first(state, self._mistake, self._wrong, self._test.steps)
        return Reading(right, int(self._wrong.sum()), first if right >= READABLE else {})


def _first(
    state: Int[np.ndarray, "batch nodes"],
    mistake: Int[np.ndarray, "batch nodes"],
    among: Bool[np.ndarray, "batch nodes"],
    never: int,
) -> dict[str, float]:
    if not among.any():
        return {}
    when = (state < mistake, (state == mistake) & (state < never),
            (state > mistake) & (state < never), state == never)  # fmt: skip
    return {name: float(each[among].mean()) for name, each in zip(FIRSTS, when, strict=True)}


@dataclass(frozen=True)
class _OfVariable:
    features: Float[np.ndarray, "moments batch nodes dimensions"]
    """The directions' coordinates, 1, and for pointers the node's own position."""
    values: Float[np.ndarray, "moments batch nodes names"]
    counted: Bool[np.ndarray, "moments batch 1"]
    steps: Int[np.ndarray, "moments"]
    """The step in which the state of each moment came about."""

    @property
    def design(self) -> Float[np.ndarray, "rows dimensions"]:
        """The rows that count."""
        return self.features[self._rows]

    @property
    def targets(self) -> Float[np.ndarray, "rows names"]:
        """Their values."""
        return self.values[self._rows]

    @property
    def _rows(self) -> Bool[np.ndarray, "moments batch nodes"]:
        return np.broadcast_to(self.counted, self.values.shape[:-1])


@dataclass(frozen=True)
class _Held:
    """What a network holds on some graphs, and what the program does."""

    hidden: Float[np.ndarray, "time batch nodes hidden"]
    values: Mapping[str, Float[np.ndarray, "steps phases batch nodes"]]
    """Before each phase of each step, by the names that the state has."""
    positions: Float[np.ndarray, "batch nodes"]
    lengths: Int[np.ndarray, "batch"]

    @staticmethod
    def of(program: Program, batch: Batch, trace: Trace) -> "_Held":
        inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
        taken = ran(program, inputs, trace.steps).steps
        names = [name for c in program.components.values() for name in names_of(c)]
        values = {
            name: np.array([[phase.before[name] for phase in step.phases] for step in taken])
            for name in names
        }
        hidden = np.asarray(trace.hidden, np.float64)
        return _Held(hidden, values, inputs["pos"], np.asarray(batch.lengths))

    @property
    def steps(self) -> int:
        """How many hint steps were run."""
        return next(iter(self.values.values())).shape[0]

    def of_variable(
        self, program: Program, component: Component, directions: Float[np.ndarray, "hidden some"]
    ) -> _OfVariable:
        """At every moment at which the program needs it and the network has run."""
        phases = program.selections
        moments = [
            (t, k) for t in range(self.steps) for k in moments_of(program, component) if t or k
        ]
        times, at = np.array(moments, int).reshape(-1, 2).T
        held = self.hidden[times * phases + at - 1] @ directions
        names = names_of(component)
        values = np.stack([self.values[name][times, at] for name in names], axis=-1)
        ones = np.ones((*held.shape[:-1], 1))
        own = self.positions[..., None] * ones  # a pointer can be held as a difference from it
        beside = [ones, own] if component.kind is Kind.POINTER else [ones]
        return _OfVariable(
            np.concatenate([held, *beside], axis=-1),
            values,
            times[:, None, None] < np.maximum(1, self.lengths - 1)[:, None],
            np.where(at > 0, times, times - 1),
        )


def _wrong(
    component: Component,
    said: Float[np.ndarray, "moments batch nodes names"],
    values: Float[np.ndarray, "moments batch nodes names"],
    positions: Float[np.ndarray, "batch nodes"],
) -> Bool[np.ndarray, "moments batch nodes"]:
    match component.kind:
        case Kind.CLASS:
            return said.argmax(-1) != values.argmax(-1)
        case Kind.POINTER:
            near = np.abs(said - values)
            others = np.abs(positions[None, :, None, :] - values)
            apart = np.where(others > SAME, others, np.inf).min(-1, keepdims=True)
            return (near > apart / 2)[..., 0]
        case Kind.FLOAT | Kind.TOTAL:
            return (np.abs(said - values) > NUMBER)[..., 0]
        case _:
            return ((said > 0.5) != (values > 0.5))[..., 0]
