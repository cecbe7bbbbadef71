"""A program's run on lists of edges, in NumPy and float64: the reference at sizes at which there is
no matrix of all pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from mechgap.errors import InvalidInput
from mechgap.programs.evaluation import State, Values, evaluate, of_node
from mechgap.programs.expressions import Expression, Name, Side
from mechgap.programs.interpreter import components
from mechgap.programs.lengths import has_no_fixpoint, most_steps
from mechgap.programs.meaning import start, take_step
from mechgap.programs.program import Program
from mechgap.tasks.edge_lists import Edges


@dataclass(frozen=True)
class Listed:
    """What a program is given on one graph; arrays have a batch axis of one."""

    edges: Edges
    named: Mapping[str, Any]
    positions: Float[np.ndarray, "1 nodes"]

    @staticmethod
    def of(program: Program, edges: Edges, inputs: Mapping[str, np.ndarray]) -> "Listed":
        """Inputs on nodes and on the list's pairs, as a program reads them."""
        named = {
            ours: np.asarray(inputs[theirs], np.float64)[None]
            for ours, theirs in program.inputs.items()
        }
        return Listed(edges, named, np.asarray(inputs["pos"], np.float64)[None])

    @property
    def support(self) -> np.ndarray:
        """All pairs of the list see each other."""
        return np.ones((1, len(self.edges.receivers)), bool)

    def of_pairs(self, state: State) -> Values:
        """Every name's value for every pair of the list."""
        receivers, senders = self.edges.receivers, self.edges.senders

        def value(name: Name) -> np.ndarray:
            if name.side is Side.EDGE:
                return self._of_edges(name, slice(None))
            at = senders if name.side is Side.OTHER else receivers
            return of_node(self, state)(name)[:, at]

        return value

    def _of_edges(self, name: Name, pairs: Any) -> np.ndarray:
        if name.name == "loop":
            return 1.0 * (self.edges.receivers == self.edges.senders)[pairs][None]
        return self.named[name.name][:, pairs]

    def chosen(self, eligible: np.ndarray, score: np.ndarray, xp: Any) -> tuple[Any, Any]:
        """The smallest of each receiver's pairs, of equals the first."""
        del xp
        edges, nodes = self.edges, self.positions.shape[-1]
        begins = edges.offsets[:-1]  # everybody has a pair: with itself
        score = np.where(eligible[0], score[0], np.inf)
        smallest = np.minimum.reduceat(score, begins)[edges.receivers]
        best = np.where(eligible[0] & (score == smallest), edges.senders, nodes)
        sender = np.minimum.reduceat(best, begins)
        return (sender < nodes)[None], np.minimum(sender, nodes - 1)[None]

    def at_sender(self, expression: Expression, state: State, sender: Any, xp: Any) -> Any:
        """An expression for every receiver, with the node attended to as `other`.

        What is told of edges is 0 where the list has no pair.
        """
        del xp
        listed, pair = self.edges.place(np.arange(sender.shape[-1]), sender[0])

        def value(name: Name) -> np.ndarray:
            if name.side is Side.EDGE:
                return np.where(listed, self._of_edges(name, pair), 0.0)
            node = of_node(self, state)(name)
            return node[:, sender[0]] if name.side is Side.OTHER else node

        return np.zeros(sender.shape) + evaluate(expression, value)

    def nodes_at(self, values: Float[np.ndarray, "1 nodes"]) -> Int[np.ndarray, "1 nodes"]:
        """The nodes at given positions: the nearest."""
        order, sorted_ = self._order, self.positions[0][self._order]
        right = np.clip(np.searchsorted(sorted_, values[0]), 0, len(order) - 1)
        left = np.maximum(right - 1, 0)
        nearer = np.abs(values[0] - sorted_[left]) <= np.abs(values[0] - sorted_[right])
        return order[np.where(nearer, left, right)][None]

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.positions[0], kind="stable")


@dataclass(frozen=True)
class RunOnEdges:
    """A program's run over one graph."""

    states: Mapping[str, Float[np.ndarray, "steps nodes"]]
    """Every component after every step, pointers as positions and classes as their number; 0 is the
    initial state."""
    senders: Int[np.ndarray, "time nodes"]
    """Whom each node attends to; time is steps times phases."""

    @property
    def length(self) -> int:
        """How many hints the run has: until its state changes for the last time."""
        moved = [(v[1:] != v[:-1]).any(-1) for v in self.states.values()]
        changed = np.flatnonzero(np.any(moved, axis=0))
        return 1 + (int(changed[-1]) + 1 if len(changed) else 0)


def run_on_edges(
    program: Program, edges: Edges, inputs: Mapping[str, np.ndarray], steps: int | None = None
) -> RunOnEdges:
    """Run a program on one graph: `steps` times, or as long as the program says.

    Args:
        program: One that looks at neighbours only.
        edges: The graph's list.
        inputs: By CLRS's names, ``[nodes]`` or ``[pairs]``.
        steps: If it is not to stop by itself.

    Raises:
        InvalidInput: the program sees all nodes, or has no fixpoint.
    """
    if program.sees_all:
        raise InvalidInput(
            f"{program.name} looks at all nodes, so that a list of edges does not say whom it sees"
        )
    given = Listed.of(program, edges, inputs)
    wanted = program.steps if steps is None else steps
    longest = wanted if isinstance(wanted, int) else most_steps(given.positions.shape[-1])
    state = start(program, given)
    states, senders = [components(program, state)], []
    while len(states) <= longest:
        taken = take_step(program, given, state)
        stays = all((taken.state[name] == state[name]).all() for name in taken.state)
        if not isinstance(wanted, int) and stays:
            break
        state = taken.state
        states.append(components(program, state))
        senders += [phase.sender[0] for phase in taken.phases]
    else:
        if not isinstance(wanted, int):
            raise has_no_fixpoint(program, given.positions.shape[-1])
    nodes = given.positions.shape[-1]
    return RunOnEdges(
        {name: np.stack([each[name][0] for each in states]) for name in states[0]},
        np.stack(senders) if senders else np.zeros((0, nodes), int),
    )
