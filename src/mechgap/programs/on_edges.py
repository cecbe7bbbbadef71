"""A program's run on one large graph, in float64: the reference where there is no room for matrices
of every step.

Programs whose nodes look at neighbours run on lists of edges, in NumPy. Those whose nodes look at
all nodes run on matrices, of which only one step's are there at a time, in JAX.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mechgap.programs.chains import Chains
from mechgap.programs.evaluation import Given, Sight, State, Values, evaluate, given, of_node
from mechgap.programs.expressions import Expression, Name, Side
from mechgap.programs.interpreter import changed, components, in_batches
from mechgap.programs.lengths import has_no_fixpoint, most_steps
from mechgap.programs.meaning import start, take_step
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.programs.races import Races, hint_pointers, races, tied
from mechgap.tasks.edge_lists import EdgeLists, Edges, check_both_ways, check_lists
from mechgap.tasks.specs import Location, get_task


@dataclass(frozen=True)
class Listed:
    """What a program is given on one graph; arrays have a batch axis of one."""

    edges: Edges
    named: Mapping[str, Any]
    positions: Float[np.ndarray, "1 nodes"]

    @staticmethod
    def of(program: Program, edges: Edges, inputs: Mapping[str, np.ndarray]) -> "Listed":
        """Inputs on nodes and on the list's pairs, as a program reads them.

        Raises:
            InvalidInput: a pair's numbers depend on its direction, and the task's graphs have none.
        """
        check_both_ways(get_task(program.task), edges, inputs)
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
        smallest = self.least(score[None])[0]
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
        return nearest(values, self.positions[0])

    def least(self, score: Float[np.ndarray, "1 pairs"]) -> Float[np.ndarray, "1 pairs"]:
        """For every pair, the smallest score of its receiver's pairs."""
        edges = self.edges
        return np.minimum.reduceat(score, edges.offsets[:-1], axis=-1)[:, edges.receivers]

    def closest(self, eligible: np.ndarray, score: np.ndarray, xp: Any) -> Any:
        """Per graph, the smallest difference between a receiver's best and second-best score."""
        del xp
        edges = self.edges
        score = np.where(eligible[0], score[0], np.inf)
        least = self.least(score[None])[0]
        first = np.where(score == least, np.arange(len(score)), len(score))
        first = np.minimum.reduceat(first, edges.offsets[:-1])
        best = least[edges.offsets[:-1]]
        score[first] = np.inf
        second = np.minimum.reduceat(score, edges.offsets[:-1])
        return (second - np.where(np.isinf(second), 0.0, best)).min(keepdims=True)

    def several(self, eligible: np.ndarray, xp: Any) -> Any:
        """Per graph, whether any receiver has more than one eligible sender."""
        del xp
        count = np.add.reduceat(eligible[0].astype(int), self.edges.offsets[:-1])
        return (count > 1).any(keepdims=True)

    def passes_beyond(
        self, mask: Expression | None, state: State, pointer: np.ndarray, xp: Any
    ) -> Any:
        """Per graph, whether anyone passes the mask who is out of sight, at either end of a
        pointer."""
        del xp
        everyone = np.arange(pointer.shape[-1])
        receivers, senders = np.r_[everyone, pointer[0]], np.r_[pointer[0], everyone]
        listed, _ = self.edges.place(receivers, senders)
        receivers, senders = receivers[~listed], senders[~listed]
        if mask is None:
            return np.array([len(receivers) > 0])
        node = of_node(self, state)

        def value(name: Name) -> np.ndarray:
            if name.side is Side.EDGE:  # there is no edge, and nobody is alone
                return np.zeros((1, len(receivers)))
            return node(name)[:, senders if name.side is Side.OTHER else receivers]

        passed = np.broadcast_to(evaluate(mask, value) > 0.5, (1, len(receivers)))
        return passed.any(-1)


def nearest(
    values: Float[np.ndarray, "*any"], positions: Float[np.ndarray, "nodes"]
) -> Int[np.ndarray, "*any"]:
    """The nodes whose positions are nearest to some values, of equals the first."""
    order = np.argsort(positions, kind="stable")
    sorted_ = positions[order]
    right = np.clip(np.searchsorted(sorted_, values), 0, len(order) - 1)
    left = np.maximum(right - 1, 0)
    nearer = np.abs(values - sorted_[left]) <= np.abs(values - sorted_[right])
    return order[np.where(nearer, left, right)]


@dataclass(frozen=True)
class RunOnEdges:
    """A program's run over one graph. See `Execution`; the batch is of one graph."""

    states: Mapping[str, Float[np.ndarray, "steps 1 nodes"]]
    """Every component after every step, pointers as positions and classes as their number; 0 is the
    initial state."""
    senders: Int[np.ndarray, "time 1 nodes"]
    """Whom each node attends to; time is steps times phases."""
    updated: Bool[np.ndarray, "time 1 nodes"]
    tied: Bool[np.ndarray, "time 1 pairs"] | None
    """Of the list's pairs those that another correct run could have chosen, beside the one that was
    chosen. None of a program whose nodes look at all nodes."""
    shared: Bool[np.ndarray, "time 1"]
    gaps: Float[np.ndarray, "time 1"]
    widened: Bool[np.ndarray, "time 1"]
    hops: Int[np.ndarray, "1"]
    carried: Float[np.ndarray, "1"]

    @property
    def length(self) -> int:
        """How many hints the run has: until its state changes for the last time."""
        moved = [(v[1:] != v[:-1]).any((1, 2)) for v in self.states.values()]
        changed = np.flatnonzero(np.any(moved, axis=0))
        return 1 + (int(changed[-1]) + 1 if len(changed) else 0)


class _Step(NamedTuple):
    """What is kept of a step."""

    state: State
    chains: Chains
    senders: tuple[Any, ...]
    updated: tuple[Any, ...]
    tied: tuple[Any, ...]
    races: tuple[Races, ...]


def run_on_edges(
    program: Program, edges: Edges, inputs: Mapping[str, np.ndarray], steps: int | None = None
) -> RunOnEdges:
    """Run a program on one graph: `steps` times, or as long as the program says.

    Args:
        program: Any.
        edges: The graph's list.
        inputs: By CLRS's names, ``[nodes]`` or ``[pairs]``.
        steps: If it is not to stop by itself.

    Raises:
        InvalidInput: the program has no fixpoint.
    """
    if not program.sees_all:
        return _run(program, Listed.of(program, edges, inputs), steps, np)
    with jax.enable_x64(True):
        return _run(program, _as_matrices(program, edges, inputs), steps, jnp)


def _run(program: Program, given: Sight, steps: int | None, xp: Any) -> RunOnEdges:
    def once(given: Sight, state: State, chains: Chains) -> _Step:
        taken = take_step(program, given, state, xp)
        pointers = hint_pointers(program, given, state)
        found = list[Races]()
        for phase, at in zip(program.phases, taken.phases, strict=True):
            found.append(races(program, phase, given, at, pointers, xp))
            chains = chains.after(phase, given, at, xp)
        return _Step(
            taken.state,
            chains,
            tuple(at.sender for at in taken.phases),
            tuple(at.anyone & changed(at.before, at.after) for at in taken.phases),
            tuple(
                tied(program, phase, given, at)
                for phase, at in zip(program.phases, taken.phases, strict=True)
            )
            if isinstance(given, Listed)
            else (),
            tuple(found),
        )

    step = once if xp is np else jax.jit(once)
    wanted = program.steps if steps is None else steps
    nodes = given.positions.shape[-1]
    longest = wanted if isinstance(wanted, int) else most_steps(nodes)
    state, chains = jax.tree.map(
        np.asarray, (start(program, given, xp), Chains.of(program, given, xp))
    )
    states, steps_taken = [components(program, state)], list[_Step]()
    while len(states) <= longest:
        taken = jax.tree.map(np.asarray, step(given, state, chains))
        before, state, chains = state, taken.state, taken.chains
        if not isinstance(wanted, int) and all((state[n] == before[n]).all() for n in state):
            break
        states.append(components(program, state))
        steps_taken.append(taken)
    else:
        if not isinstance(wanted, int):
            raise has_no_fixpoint(program, nodes)
    seen = [race for each in steps_taken for race in each.races]

    def stacked(name: str, width: int, kind: type) -> np.ndarray:
        found = [phase for each in steps_taken for phase in getattr(each, name)]
        return np.stack(found) if found else np.zeros((0, 1, width), kind)

    return RunOnEdges(
        {name: np.stack([each[name] for each in states]) for name in states[0]},
        stacked("senders", nodes, int),
        stacked("updated", nodes, bool),
        stacked("tied", len(given.edges.receivers), bool) if isinstance(given, Listed) else None,
        np.array([each.shared for each in seen], bool).reshape(-1, 1),
        np.array([each.gap for each in seen], float).reshape(-1, 1),
        np.array([each.widened for each in seen], bool).reshape(-1, 1),
        np.asarray(chains.longest),
        np.asarray(chains.most),
    )


def listed_graph(
    program: Program, edges: Edges, inputs: Mapping[str, np.ndarray], hints: int
) -> EdgeLists:
    """One graph for a network that runs on lists, with its first hints as the program has them.

    Args:
        program: Of a CLRS task, of which nodes look at neighbours only.
        edges: The graph's list.
        inputs: By CLRS's names, ``[nodes]`` or ``[pairs]``.
        hints: How many the run has; the network steps once less.

    Raises:
        InvalidInput: the task tells something of pairs of nodes.
    """
    task = posed(program)
    check_lists(task)
    given = Listed.of(program, edges, inputs)
    first = components(program, start(program, given))

    def of_nodes(numbers: np.ndarray) -> Int[Array, "1 some"]:
        return jnp.asarray(numbers, jnp.int32)[None]

    return EdgeLists(
        task=task,
        receivers=of_nodes(edges.receivers),
        senders=of_nodes(edges.senders),
        offsets=of_nodes(edges.offsets),
        opposite=of_nodes(edges.opposite),
        inputs={f.name: jnp.asarray(inputs[f.name], jnp.float32)[None] for f in task.inputs},
        hints={
            name: jnp.asarray(in_batches(c, first[c.name], given.nodes_at))
            for name, c in program.hints.items()
        },
        lengths=jnp.full(1, hints, jnp.int32),
        steps=max(1, hints - 1),
    )


def _as_matrices(program: Program, edges: Edges, inputs: Mapping[str, np.ndarray]) -> Given:
    """What the program is given, as matrices of JAX."""
    on_edges = {f.name for f in get_task(program.task).inputs if f.location is Location.EDGE}

    def whole(name: str) -> np.ndarray:
        if name not in on_edges:
            return np.asarray(inputs[name], float)
        matrix: np.ndarray = np.zeros((edges.nodes, edges.nodes))
        matrix[edges.receivers, edges.senders] = inputs[name]
        return matrix

    matrices = {name: jnp.asarray(whole(name))[None] for name in inputs}
    return given(program, matrices, jnp.float64)
