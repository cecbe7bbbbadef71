"""Interchange interventions: one variable of a program is put from one run into another.

A *case* is two runs on graphs of one size, a moment, a node and a variable that differs there. The
program goes on from the base run's state with that one value of the source run, for as many steps
as the base run has. A network goes on
from its own state on the base graph, with the part that carries the variable from its own run on
the source graph (`agreement`). Do both come to the same answer?

Graphs have regular positions. Where a task has a source, the two graphs are one, searched from two
nodes; else they are two. What the whole graph has one of (a choice, a total) is put in as a whole.
A hint is put in between steps, with what is fed back of it; what no hint says at any moment at
which the program still needs it.

A change can lead to a state that no run of the program has, a node that was reached by nobody, say.
The program says what follows from it all the same. Where that is more than a network of its rules
has to get right (`irregular`), the case is not counted, for anybody. Only cases in which an output
or a hint of the next step comes out otherwise are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mechgap.measures.interchange.irregular import irregular
from mechgap.programs.changing import Change, Ran, names_of, ran
from mechgap.programs.components import Component, Kind
from mechgap.programs.evaluation import State, pointed
from mechgap.programs.interpreter import components
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch, joined
from mechgap.tasks.sampling import make_batch, sample
from mechgap.tasks.specs import Task

PAIRS = 64
"""So many pairs of runs are looked at at once,"""
TRIED = 8
"""and at most so many for every case that is wanted."""
ROUNDED = 8
"""Runs take a multiple of so many steps."""
SAME = 1e-3
"""Numbers that are nearer to each other than this are the same."""


class Told(eqx.Module):
    """What a program answers in each case, with the change and without."""

    changed: Float[Array, "cases nodes"]
    base: Float[Array, "cases nodes"]

    @property
    def differs(self) -> Bool[Array, "cases nodes"]:
        """Where the change makes a difference."""
        return jnp.abs(self.changed - self.base) > SAME


class Cases(eqx.Module):
    """Interchanges of one variable, and what the program makes of them."""

    base: Batch
    source: Batch
    time: Int[Array, "cases"]
    phase: Int[Array, "cases"]
    nodes: Bool[Array, "cases nodes"]
    fed: Mapping[str, Bool[Array, ""]]
    """Which hints say the variable, and are claimed to."""
    outputs: Mapping[str, Told]
    hints: Mapping[str, Told]
    """After the step that the change falls into."""

    @property
    def count(self) -> int:
        """How many cases."""
        return self.time.shape[0]

    def __getitem__(self, some: Int[Array, "chosen"]) -> "Cases":
        """Some of the cases."""
        told = (self.time, self.phase, self.nodes, self.outputs, self.hints)
        time, phase, nodes, outputs, hints = jax.tree.map(lambda x: x[some], told)
        graphs = self.base[some], self.source[some]
        return Cases(*graphs, time, phase, nodes, self.fed, outputs, hints)


def draw_cases(
    program: Program, task: Task, variable: str, *, wanted: int, nodes: int, seed: int
) -> Cases | None:
    """Cases in which a change of the variable changes an output or a next hint of the program.

    None where no change of it was found that does.

    Args:
        program: With the task's inputs.
        task: Whose graphs are drawn.
        variable: A component of the program's state.
        wanted: How many cases; there can be fewer.
        nodes: Of each graph.
        seed: Of the graphs and of the moments.
    """
    rng = np.random.default_rng([seed, nodes])
    found: list[Cases] = []
    for turn in range(-(-TRIED * wanted // PAIRS)):
        base, source = _pairs(task, program, jax.random.fold_in(jax.random.key(seed), turn), nodes)
        found.append(_cases(program, program.components[variable], base, source, rng))
        if sum(each.count for each in found) >= wanted:
            break
    return _joined(found, wanted)


def _pairs(task: Task, program: Program, key: Array, nodes: int) -> tuple[Batch, Batch]:
    """Base and source graphs: one graph from two nodes, or two graphs."""
    one, other, at = jax.random.split(key, 3)
    base = sample(task, one, batch_size=PAIRS, nodes=nodes, random_pos=False).trim()
    if "s" not in program.inputs.values():
        another = sample(task, other, batch_size=PAIRS, nodes=nodes, random_pos=False)
        return base, another.trim()
    own = jnp.argmax(base.inputs["s"], axis=-1)
    others = (own + jax.random.randint(at, (PAIRS,), 1, nodes)) % nodes
    return base, make_batch(task, base.inputs["A"], others, base.inputs["pos"]).trim()


def _cases(
    program: Program,
    component: Component,
    base: Batch,
    source: Batch,
    rng: np.random.Generator,
) -> Cases:
    steps = max(base.steps, source.steps)
    inputs, others = _inputs(base), _inputs(source)
    own, other = ran(program, inputs, steps), ran(program, others, steps)
    names = names_of(component)
    moments = [(t, k) for t in range(steps) for k in moments_of(program, component) if t or k]
    if not moments:  # a program of one step hands nothing on
        moments = [(0, 0)]
    # Before the end of both runs: what a network holds after its last step is of no account.
    last = np.minimum(np.asarray(base.lengths), np.asarray(source.lengths)) - 1
    a, b = (_values(run, names, moments) for run in (own, other))
    differs = (np.abs(a - b) > SAME).any(0) & (np.array(moments)[:, 0, None, None] < last[:, None])
    whole = component.kind in (Kind.CHOICE, Kind.TOTAL)
    if whole:
        differs = np.broadcast_to(differs.any(-1, keepdims=True), differs.shape)
    chance = np.where(differs, rng.random(differs.shape), -1.0)
    at = chance.transpose(1, 0, 2).reshape(len(last), -1).argmax(-1)
    moment, node = np.divmod(at, differs.shape[-1])
    pairs = np.arange(len(last))
    there = np.eye(differs.shape[-1], dtype=bool)[node] | whole
    time, phase = np.array(moments)[moment].T
    values = dict(zip(names, b[:, moment, pairs], strict=True))
    change = Change(time, phase, there, values)
    changed = ran(program, inputs, steps, change)
    claimed = {h: c for h, c in program.hints.items() if h not in program.unclaimed}
    outputs = _told(program, program.output, changed, own, np.asarray(base.lengths) - 2)
    hints = _told(program, claimed, changed, own, change.time)
    matters = np.any([t.differs.any(-1) for t in (*outputs.values(), *hints.values())], axis=0)
    counted = differs.any((0, 2)) & matters & ~irregular(program, changed)
    counted &= ~irregular(program, own) & ~irregular(program, other)
    says = {name: c == component and name in claimed for name, c in program.hints.items()}
    every = Cases(
        base=base,
        source=source,
        time=jnp.asarray(change.time),
        phase=jnp.asarray(change.phase),
        nodes=jnp.asarray(there),
        fed={name: jnp.asarray(says_it) for name, says_it in says.items()},
        outputs=outputs,
        hints=hints,
    )
    return every[jnp.asarray(np.flatnonzero(counted))]


def moments_of(program: Program, component: Component) -> tuple[int, ...]:
    """Before which phases a component is put in: where it is still needed.

    What is fed back is put in where it is fed, between steps; and so is what steps conclude.
    """
    name = component.name
    if program.set_in(name) is None or program.fed_back(name):
        return (0,)
    held = np.flatnonzero(program.held_after(name))
    return tuple(sorted((int(k) + 1) % len(program.phases) for k in held))


def _inputs(batch: Batch) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in batch.inputs.items()}


def _values(run: Ran, names: tuple[str, ...], moments: list[tuple[int, int]]) -> np.ndarray:
    """What a variable is at every moment: ``[name, moment, batch, node]``."""
    return np.stack([[run.steps[t].phases[k].before[n] for t, k in moments] for n in names])


def _told(
    program: Program,
    claimed: Mapping[str, Component],
    changed: Ran,
    base: Ran,
    time: np.ndarray,
) -> dict[str, Told]:
    """Answers after these steps."""

    def said(run: Ran, component: Component) -> Array:
        values = np.stack([_answer(program, component, step.state, run) for step in run.steps])
        return jnp.asarray(values[time, np.arange(len(time))], jnp.float32)

    return {name: Told(said(changed, c), said(base, c)) for name, c in claimed.items()}


def _answer(program: Program, component: Component, state: State, run: Ran) -> np.ndarray:
    """One number for every node: a pointer is the node that it points to."""
    value = components(program, state)[component.name]
    return pointed(value, run.known.positions) * 1.0 if component.kind is Kind.POINTER else value


def _joined(found: Sequence[Cases], wanted: int) -> Cases | None:
    """The first cases of several; None where there are none."""
    count = min(wanted, sum(each.count for each in found))
    if not count:
        return None

    def told(cases: Cases) -> tuple[Any, ...]:
        return cases.time, cases.phase, cases.nodes, cases.outputs, cases.hints

    time, phase, nodes, outputs, hints = jax.tree.map(
        lambda *parts: jnp.concatenate(parts), *map(told, found)
    )
    graphs = joined([c.base for c in found]), joined([c.source for c in found])
    whole = Cases(*graphs, time, phase, nodes, found[0].fed, outputs, hints)[jnp.arange(count)]
    short = _short(whole.base), _short(whole.source)
    return eqx.tree_at(lambda c: (c.base, c.source), whole, short)


def _short(batch: Batch) -> Batch:
    """Without padding, but for a little that lets cases of many lengths share their programs."""
    trimmed = batch.trim()
    return trimmed.pad(-(-(trimmed.max_hints - 1) // ROUNDED) * ROUNDED + 1)
