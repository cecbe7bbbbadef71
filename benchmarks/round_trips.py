"""From a program to a network, whose program is hidden, and back; and the same once more."""

import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import jax.numpy as jnp
import numpy as np

import mechgap.decompiler.decompile as decompiler
from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, Target
from mechgap.decompiler.decompile import Decompiled, decompile
from mechgap.decompiler.graphs import FEWEST, LARGE, SMALL, Graphs, graphs_for
from mechgap.decompiler.watched import Watched, watched
from mechgap.errors import InvalidInput
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.programs.data import program_data, program_of
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Type
from random_programs import random_program
from recovered import (
    Compared,
    compared,
    held_out,
    lacking,
    rule_of,
    same_letters,
    senders_of,
)

PREFERRED = ("general", "stock", "stock-ln", "full", "paper")
"""A random program is compiled for the first that takes it: those of any size before the paper's,
which cannot be tested on larger graphs."""
_CLOSE = 1e-3
"""Numbers of two networks that are meant to be equal."""


@dataclass(frozen=True)
class RoundTrip:
    """What came back of one program in one target."""

    program: str
    target: str
    seed: int | None = None
    """Of a random program."""
    failed: str | None = None
    """The error, if decompiling ended in one."""
    hidden: tuple[str, ...] = ()
    """The selection of every phase, as it was hidden and as it was found."""
    found: tuple[str, ...] = ()
    claim: str = ""
    alike: int = 0
    """How many other rules do as well on the graphs that these were found on."""
    network_is_program: float = 0.0
    """Share of rows in which the network attends most to whom the program selects, on the graphs
    that rules were found on: where two values tie it may be another."""
    active: float = 0.0
    """Share of these rows in which the program selects another node than the receiver itself."""
    idle: bool = False
    """Whether no state ever changes: then nothing but the rule itself is there to be found."""
    compared: Mapping[int, Compared] = field(default_factory=dict)
    """By number of nodes."""
    to_the_letter: bool = False
    lacks: tuple[str, ...] = ()
    """What no word says."""
    again: str | None = None
    """The whole program that was found, as data."""
    unclaimed: tuple[str, ...] = ()
    seconds: float = 0.0
    search_seconds: float = 0.0

    @property
    def recovered(self) -> bool:
        """Whether it selects the same senders everywhere."""
        return bool(self.compared) and not any(c.wrong for c in self.compared.values())

    @property
    def why_not(self) -> str:
        """What is missing where it was not recovered."""
        if self.recovered:
            return ""
        if self.failed is not None:
            return f"error: {self.failed}"
        if self.lacks:
            return f"no word: {'; '.join(self.lacks)}"
        return "the search" if self.network_is_program == 1.0 else "the network is not the program"

    ALSO_TOLD: ClassVar = ("recovered", "why_not")

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return (self.program, self.target)


@dataclass(frozen=True)
class Recompiled:
    """A decompiled program as a network again, beside the one that it came from."""

    program: str
    target: str
    refused: str | None = None
    """Why it does not compile."""
    graphs: int = 0
    """Inside both certificates."""
    unlike: int = 0
    """On how many of these hints or outputs differ."""
    names: tuple[str, ...] = ()
    """The hints and outputs that were compared."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return (self.program, self.target)


def sizes_of(target: Target) -> tuple[int, int]:
    """Nodes of graphs to find on and to test on: a bias allows one size only."""
    return (SMALL, SMALL if target.pre_attention_bias else LARGE)


def compiled_for(program: Program, target: Target) -> Compiled:
    """A program in a target, for the graphs that it is to be found on."""
    return compile_program(program, target, Domain.regular(program, max(sizes_of(target))))


def certified(compiled: Compiled) -> Graphs:
    """Graphs to decompile a network on, inside its certificate: elsewhere it is not the program.

    The larger ones are smaller where too few lie inside.

    Raises:
        InvalidInput: there are too few all the same.
    """

    def inside(batch: Batch) -> Batch:
        outside = np.any(list(compiled.outside(batch).values()), axis=0)
        kept = np.flatnonzero(~outside)
        return batch[jnp.asarray(kept)]

    task, (small, large) = posed(compiled.program), sizes_of(compiled.target)
    kept: list[Batch] = []
    for test_nodes in dict.fromkeys((large, max(small, large // 2), small)):
        drawn = graphs_for(task, small, test_nodes)
        kept = [inside(batch) for batch in (drawn.fit, drawn.held_out, drawn.test)]
        if min(batch.size for batch in kept) >= FEWEST:
            return Graphs(*kept)
    raise InvalidInput(
        f"{compiled.program.name} needs {FEWEST} graphs inside its certificate; of {small} nodes "
        f"{min(batch.size for batch in kept)} are"
    )


class Timed(NamedTuple):
    """What was found, how long it took, and how much of that the search for rules."""

    found: Decompiled
    seconds: float
    search_seconds: float


def timed_decompile(network: Network, graphs: Graphs, **options: Any) -> Timed:
    """Decompile a network of which no mechanism is known."""
    searching, search = 0.0, decompiler.search

    def clocked(*arguments: Any, **more: Any) -> Any:
        nonlocal searching
        began = time.process_time()
        found = search(*arguments, **more)
        searching += time.process_time() - began
        return found

    began = time.process_time()
    with patch.object(decompiler, "search", clocked):
        found = decompile(network, graphs, (), **options)
    return Timed(found, time.process_time() - began, searching)


def round_trip(
    program: Program, target: Target, seed: int | None = None, graphs: int | None = None
) -> RoundTrip:
    """Compile, hide, decompile and compare; on fewer graphs if told."""
    compiled = compiled_for(program, target)
    given = certified(compiled)
    alike, active = network_is_program(compiled, given.fit)
    row = RoundTrip(
        program.name,
        target.name,
        seed,
        hidden=tuple(
            f"select={p.select}, mask={p.mask}, otherwise={p.otherwise}" for p in program.phases
        ),
        lacks=lacking(program),
        network_is_program=alike,
        active=active,
        idle=int(given.fit.lengths.max()) == 1,
    )
    try:
        timed = timed_decompile(compiled.network, given)
    except Exception as error:  # what a decompiler must not do is a finding of its own
        return replace(row, failed=said(error))
    told, again = timed.found.explanation, timed.found.program
    rules = [rule_of(phase.rule) for phase in told.phases]
    options = {} if graphs is None else {"graphs": graphs}
    return replace(
        row,
        found=tuple(phase.rule for phase in told.phases),
        claim=told.claim,
        alike=max(phase.alike for phase in told.phases) - 1,
        compared={
            nodes: compared(program, rules, nodes, target.full_attention, **options)
            for nodes in (SMALL, LARGE)
        },
        to_the_letter=same_letters(program, rules),
        again=None if again is None else json.dumps(program_data(again)),
        unclaimed=told.unclaimed,
        seconds=timed.seconds,
        search_seconds=timed.search_seconds,
    )


def said(error: Exception) -> str:
    """An error in a line, with where it was raised."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} in {os.path.basename(at.filename)}, {at.name}"


def network_is_program(compiled: Compiled, batch: Batch) -> tuple[float, float]:
    """Share of rows in which a network attends most to whom its program selects; and in which that
    is another node than the receiver."""
    phases = seen(compiled.network, batch, run(compiled.network, batch))
    by_step = senders_of(compiled.program, batch)
    senders = [by_step[w.scenes.step, k, w.scenes.graph] for k, w in enumerate(phases)]
    alike = [s == w.strongest for s, w in zip(senders, phases, strict=True)]
    return float(np.mean(alike)), float(np.mean(np.stack(senders) != phases[0].scenes.oneself))


def seen(network: Network, batch: Batch, trace: Trace) -> tuple[Watched, ...]:
    """A network's attention, phase by phase, beside the states that a batch's hints say."""
    attention = np.asarray(trace.attention).mean(2)
    return watched(batch, attention, network.config.attends_to_all)


def library_pairs() -> Iterator[tuple[Program, Target]]:
    """Programs of the library and targets that take them, short ones first."""
    for program in sorted(LIBRARY.values(), key=lambda program: program.selections):
        for target in TARGETS.values():
            if _compiles(program, target):
                yield program, target


def _compiles(program: Program, target: Target) -> bool:
    try:
        compiled_for(program, target)
    except InvalidInput:
        return False
    return True


def _can_be_hidden(program: Program, target: Target) -> bool:
    """Whether it compiles, and its network is the program on enough graphs."""
    try:
        certified(compiled_for(program, target))
    except InvalidInput:
        return False
    return True


def random_pairs(first: int) -> Iterator[tuple[int, Program, Target]]:
    """Random programs from a seed on, each in the first target in which it can be hidden."""
    seed = first
    while True:
        program = random_of(seed)
        target = next((TARGETS[t] for t in PREFERRED if _can_be_hidden(program, TARGETS[t])), None)
        if target is not None:
            yield seed, program, target
        seed += 1


def random_of(seed: int) -> Program:
    """The random program of a seed."""
    return random_program(np.random.default_rng(seed), f"random_{seed}")


def recompiled(row: RoundTrip) -> Recompiled:
    """What was found as a network again, beside the network that it was found in."""
    program = LIBRARY[row.program] if row.seed is None else random_of(row.seed)
    target = TARGETS[row.target]
    assert row.again is not None
    # How long it runs is told by the trace, and no rule says it.
    again = replace(program_of(json.loads(row.again)), steps=program.steps)
    compared = Recompiled(row.program, row.target, names=(*again.hints, *again.output))
    try:
        second = compiled_for(again, target)
    except InvalidInput as error:
        return replace(compared, refused=str(error))
    first = compiled_for(program, target)
    inside, unlike = 0, 0
    for nodes, graphs in zip(dict.fromkeys(sizes_of(target)), (64, 16), strict=False):
        batch = held_out(program, nodes, graphs, 0xC0DE)
        certified, differ = differing(first, second, batch)
        inside, unlike = inside + int(certified.sum()), unlike + int((certified & differ).sum())
    return replace(compared, graphs=inside, unlike=unlike)


def differing(first: Compiled, second: Compiled, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Which graphs lie inside both certificates, and on which two networks say not the same."""
    task = posed(second.program)
    own = Batch(
        task,
        batch.inputs,
        {f.name: batch.hints[f.name] for f in task.hints},
        {f.name: batch.outputs[f.name] for f in task.outputs},
        batch.lengths,
    )
    pairs = ((first, batch), (second, own))
    inside = [~np.any(list(c.outside(b).values()), axis=0) for c, b in pairs]
    ours, theirs = (run(c.network, b) for c, b in pairs)
    counted = np.arange(1, batch.max_hints)[:, None] < np.asarray(batch.lengths)
    unlike = np.zeros(batch.size, bool)
    for feature in task.hints:
        values = (_decided(feature, t.hints[feature.name])[: len(counted)] for t in (ours, theirs))
        unlike |= (_unlike(*values) & counted).any(0)
    for feature in task.outputs:
        values = (_decided(feature, t.outputs[feature.name])[None] for t in (ours, theirs))
        unlike |= _unlike(*values)[0]
    return inside[0] & inside[1], unlike


def _decided(feature: Feature, raw: Any) -> np.ndarray:
    """A raw prediction as what it says."""
    raw = np.asarray(raw)
    if feature.type is Type.SCALAR:
        return raw
    return (raw > 0) * 1.0 if feature.type is Type.MASK else raw.argmax(-1)


def _unlike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """In which steps of which graphs two predictions differ."""
    far = np.abs(one - other) > _CLOSE
    return np.any(far, axis=tuple(range(2, far.ndim)))
