"""Round trips: from a compiled network whose program is hidden back to a program.

    python benchmarks/decompile.py [--part a] [--programs 200] [--controls 50] [--fresh]

    a  Every program of the library in every target that takes it. Recovered means: the rules that
       were found select the same sender as the program, in every row and phase that counts, on
       1,000 held-out graphs of 16 nodes and as many of 64 (64 where traces are long). To the letter
       means: they also read the same.
    b  Random programs of the language. Where one does not come back: is it that no word says what
       it reads, or has the search missed it?
    c  What was found in a and b, compiled again for the same target: do both networks say the same
       on held-out graphs that lie inside both certificates?
    d  Controls, in which a claim (a program or a soft form) is false. Untrained networks, and
       compiled ones whose attention is shuffled among those in sight, run no program: any claim is
       false. Compiled networks with noise on their parameters may still run one, and not the one
       that was compiled. A claim there says whom the network attends to, so it is false if that
       does not hold on new graphs: if its rules do not select whom the network attends to most, or
       its soft form does not explain the attention, to the share that a claim needs (`AGREES`,
       `EXPLAINS`; less `MARGIN`, since new graphs are another sample).

A stopped run goes on where it was, and tries again what ended in an error; `--fresh` begins the
chosen part anew. Search and proof know the program's names of inputs and hints, and nothing else of
it. Every network runs once: what counts is how soon XLA has compiled it, so it is told not to
optimise unless XLA_FLAGS says something else. Seconds are those of the processor, as on one core
that nobody else uses.
"""

import argparse
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, islice
from statistics import median
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

import mechgap.decompiler.decompile as decompiler
from measuring import earlier, save
from mechgap.compiler.compile import Compiled, compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS, Target
from mechgap.decompiler.decompile import Decompiled, decompile
from mechgap.decompiler.explanation import AGREES, EXPLAINS, MARGIN
from mechgap.decompiler.graphs import LARGE, SMALL, Graphs, graphs_for
from mechgap.decompiler.soft import SoftForm, Word
from mechgap.decompiler.watched import Watched, watched
from mechgap.errors import InvalidInput
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.data import program_data, program_of
from mechgap.programs.expressions import parse
from mechgap.programs.library import LIBRARY
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.specs import Feature, Type
from mechgap.typed import plain, rounded, typed
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

FILE = "decompile"
CLAIMS = ("program", "soft")
UNTRAINED, SHUFFLED, NOISE = "untrained", "shuffled", "noise"
NOISES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Of the root mean square of each array of parameters."""
CONTROLLED = ("bfs", "bellman_ford", "reachability", "smallest_label", "strongest_neighbour")
"""Programs whose networks are spoiled; untrained ones have the same tasks."""
PREFERRED = ("general", "stock", "stock-ln", "full", "paper")
"""A random program is compiled for the first that takes it: those of any size before the paper's,
which cannot be tested on larger graphs."""
BARS = {"recovered": 1.0, "words suffice": 0.95, "false claims": 0.02}
SECONDS, SEARCH_SECONDS = 60.0, 20.0
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


@dataclass(frozen=True)
class Control:
    """What was claimed of a network of which there is little or nothing to claim."""

    kind: str
    program: str
    target: str
    seed: int
    noise: float | None = None
    failed: str | None = None
    claim: str = ""
    false: bool = False
    holds: Mapping[int, float] = field(default_factory=dict)
    """By number of nodes: how far a claim holds on new graphs."""
    found: tuple[str, ...] = ()
    seconds: float = 0.0
    search_seconds: float = 0.0

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from others."""
        return (self.kind, self.seed)


@dataclass(frozen=True)
class Found:
    """All rows so far."""

    library: tuple[RoundTrip, ...] = ()
    random: tuple[RoundTrip, ...] = ()
    recompiled: tuple[Recompiled, ...] = ()
    controls: tuple[Control, ...] = ()

    @staticmethod
    def so_far() -> "Found":
        """What an earlier run has written."""
        return typed(Found, earlier(FILE))

    def with_row(self, part: str, row: Any) -> "Found":
        """One more row, or another in place of one that failed; and all of them written."""
        rows = {known.key: known for known in (*getattr(self, part), row)}
        more = replace(self, **{part: tuple(rows.values())})
        more.written()
        return more

    def written(self) -> None:
        """Into the file of this benchmark."""
        table = [plain(line) for line in shares(self)]
        numbers = {"xla_flags": os.environ.get("XLA_FLAGS", ""), "shares": table, **plain(self)}
        save(FILE, rounded(numbers))


@dataclass(frozen=True)
class Share:
    """One line of the table: a share or a number of seconds, and the bar it has to pass."""

    what: str
    value: float
    of: int
    bar: float | None = None
    at_most: bool = False
    """Whether the bar is an upper one."""

    @property
    def passes(self) -> bool | None:
        """None where there is no bar."""
        if self.bar is None or not self.of:
            return None
        return self.value <= self.bar if self.at_most else self.value >= self.bar

    ALSO_TOLD: ClassVar = ("passes",)

    def __str__(self) -> str:
        is_time = "seconds" in self.what
        value, bar = (
            "" if number is None else f"{number:.1f} s" if is_time else f"{number:.1%}"
            for number in (self.value if self.of else None, self.bar)
        )
        sign = "" if self.bar is None else "<=" if self.at_most else ">="
        passed = {None: "", True: "passes", False: "FAILS"}[self.passes]
        return f"{self.what:62} {value:>8} of {self.of:4}  {sign:2} {bar:7} {passed}"


def shares(found: Found) -> list[Share]:
    """The table: what the rows say, beside the bars."""
    lines = []
    for title, rows in (("library", found.library), ("random", found.random)):
        bar = BARS["recovered"] if title == "library" else None
        lines += [
            _share(f"{title}: recovered", [row.recovered for row in rows], bar),
            _share(f"{title}: to the letter", [row.to_the_letter for row in rows]),
            _share(f"{title}: claimed as a program", [row.claim == "program" for row in rows]),
        ]
    said = [row for row in found.random if not row.lacks]
    exact = [row for row in said if row.failed is not None or row.network_is_program == 1.0]
    busy = [row.recovered for row in said if row.active]
    told = "random: recovered where words suffice"
    lines += [
        _share(told, [r.recovered for r in said], BARS["words suffice"]),
        _share(f"{told} and the network is the program", [r.recovered for r in exact]),
        _share(f"{told} and anybody selects another", busy),
        _share("compiled again", [row.refused is None for row in found.recompiled]),
    ]
    alike = [not row.unlike for row in found.recompiled if row.refused is None and row.graphs]
    lines.append(_share("and says the same", alike))
    for kind in (UNTRAINED, SHUFFLED, NOISE):
        finished = [row for row in found.controls if row.kind == kind and row.failed is None]
        false = [row.false for row in finished]  # what ended in an error has claimed nothing
        lines.append(_share(f"{kind}: false claims", false, BARS["false claims"], at_most=True))
    networks = (*found.library, *found.random, *found.controls)
    failed = [row.failed is not None for row in networks]
    lines.append(_share("ended in an error", failed, 0.0, at_most=True))
    timed = [row for row in networks if row.failed is None]
    for what, seconds, bar in (
        ("a network", [row.seconds for row in timed], SECONDS),
        ("its search", [row.search_seconds for row in timed], SEARCH_SECONDS),
    ):
        middle, most = (median(seconds), max(seconds)) if seconds else (0.0, 0.0)
        lines.append(Share(f"seconds of {what}, median", middle, len(seconds)))
        lines.append(Share(f"seconds of {what}, most", most, len(seconds), bar, at_most=True))
    return lines


def _share(
    what: str, holds: Sequence[bool], bar: float | None = None, at_most: bool = False
) -> Share:
    value = sum(holds) / len(holds) if holds else 0.0
    return Share(what, value, len(holds), bar, at_most)


def sizes_of(target: Target) -> tuple[int, int]:
    """Nodes of graphs to find on and to test on: a bias allows one size only."""
    return (SMALL, SMALL if target.pre_attention_bias else LARGE)


def compiled_for(program: Program, target: Target) -> Compiled:
    """A program in a target, for the graphs that it is to be found on."""
    return compile_program(program, target, Domain.regular(program, max(sizes_of(target))))


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
    given = graphs_for(posed(program), *sizes_of(target))
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
    )
    try:
        timed = timed_decompile(compiled.network, given)
    except Exception as error:  # what a decompiler must not do is a finding of its own
        return replace(row, failed=_said(error))
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


def _said(error: Exception) -> str:
    """An error in a line, with where it was raised."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} in {os.path.basename(at.filename)}, {at.name}"


def network_is_program(compiled: Compiled, batch: Batch) -> tuple[float, float]:
    """Share of rows in which a network attends most to whom its program selects; and in which that
    is another node than the receiver."""
    phases = seen(compiled.network, batch)
    by_step = senders_of(compiled.program, batch)
    senders = [by_step[w.scenes.step, k, w.scenes.graph] for k, w in enumerate(phases)]
    alike = [s == w.strongest for s, w in zip(senders, phases, strict=True)]
    return float(np.mean(alike)), float(np.mean(np.stack(senders) != phases[0].scenes.oneself))


def seen(network: Network, batch: Batch) -> tuple[Watched, ...]:
    """A network's attention, phase by phase."""
    attention = np.asarray(run(network, batch).attention).mean(2)
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


def random_pairs(first: int) -> Iterator[tuple[int, Program, Target]]:
    """Random programs from a seed on, each in the first target that takes it."""
    seed = first
    while True:
        program = random_of(seed)
        target = next((TARGETS[t] for t in PREFERRED if _compiles(program, TARGETS[t])), None)
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
    return np.any(far.reshape(*far.shape[:2], -1), axis=-1)


@cache
def _to_spoil(name: str) -> tuple[Compiled, Graphs]:
    """A compiled network of which controls are made, and graphs to decompile them on."""
    target = TARGETS["general"]
    return compiled_for(LIBRARY[name], target), graphs_for(posed(LIBRARY[name]), *sizes_of(target))


def shuffled(batch: Batch, attention: np.ndarray, seed: int = 0) -> np.ndarray:
    """The same attention, given to others in sight: every row is permuted by itself."""
    adjacent = np.asarray(batch.inputs["adj"]) > 0
    support = adjacent | adjacent.swapaxes(-1, -2) | np.eye(batch.nodes, dtype=bool)
    support = np.broadcast_to(support[:, None], attention.shape)
    chance = np.random.default_rng([seed, attention.size]).random(attention.shape)
    # Those in sight come first in both orders; the k-th by chance gets what the k-th one had.
    given = np.argsort(~support, axis=-1, kind="stable")
    to = np.argsort(np.where(support, chance, 2.0), axis=-1, kind="stable")
    changed = np.array(attention)
    np.put_along_axis(changed, to, np.take_along_axis(attention, given, -1), -1)
    return changed


def noisy(network: Network, size: float, seed: int) -> Network:
    """A network with noise on every parameter."""
    rng = np.random.default_rng(seed)

    def spoiled(leaf: np.ndarray) -> np.ndarray:
        return leaf + size * np.sqrt(np.mean(leaf**2)) * rng.standard_normal(leaf.shape)

    return jax.tree.map(lambda leaf: jnp.asarray(spoiled(np.asarray(leaf)), leaf.dtype), network)


def control(kind: str, seed: int) -> Control:
    """One network that runs no program, or one that is not quite what it was."""
    name = CONTROLLED[seed % len(CONTROLLED)]
    compiled, graphs = _to_spoil(name)
    network, options = compiled.network, dict[str, Any]()
    row = Control(kind, name, compiled.target.name, seed)
    if kind == UNTRAINED:
        network = Network.initial(graphs.fit.task, jax.random.key(seed), network.config)
    elif kind == SHUFFLED:
        options = {"in_place": partial(shuffled, seed=seed)}
    else:
        size = NOISES[seed // len(CONTROLLED) % len(NOISES)]
        network, row = noisy(network, size, seed), replace(row, noise=size)
    try:
        timed = timed_decompile(network, graphs, **options)
    except Exception as error:  # what a decompiler must not do is a finding of its own
        return replace(row, failed=_said(error))
    found = timed.found
    claim = found.explanation.claim
    holds = _holds(found, network, compiled, claim) if kind == NOISE and claim in CLAIMS else {}
    needed = (AGREES if claim == "program" else EXPLAINS) - MARGIN
    return replace(
        row,
        claim=claim,
        false=claim in CLAIMS and (kind != NOISE or min(holds.values()) < needed),
        holds=holds,
        found=tuple(phase.rule for phase in found.explanation.phases),
        seconds=timed.seconds,
        search_seconds=timed.search_seconds,
    )


def _holds(found: Decompiled, network: Network, compiled: Compiled, claim: str) -> dict[int, float]:
    """How far a claim holds on new graphs, by their number of nodes: of the worst phase."""
    shares: dict[int, float] = {}
    for nodes in sizes_of(compiled.target):
        batch = held_out(compiled.program, nodes, 48, 0xD00D)
        shares[nodes] = min(
            float((rule_of(phase.rule).senders(w.scenes) == w.strongest).mean())
            if claim == "program"
            else w.explained(
                SoftForm(
                    tuple(Word(parse(word.word), word.receivers) for word in phase.soft),
                    tuple(word.weight for word in phase.soft),
                ).attention(w)
            )
            for phase, w in zip(found.explanation.phases, seen(network, batch), strict=True)
        )
    return shares


def part_a(found: Found, arguments: argparse.Namespace) -> Found:
    del arguments
    done = {row.key for row in found.library if row.failed is None}
    for program, target in library_pairs():
        if (program.name, target.name) not in done:
            row = round_trip(program, target)
            found = found.with_row("library", row)
            tell(row)
    return found


def part_b(found: Found, arguments: argparse.Namespace) -> Found:
    seeds = [row.seed for row in found.random if row.seed is not None]
    failed = [(row.seed, row.target) for row in found.random if row.failed is not None]
    again = ((seed, random_of(seed), TARGETS[name]) for seed, name in failed if seed is not None)
    missing = max(0, arguments.programs - len(found.random))
    more = islice(random_pairs(max(seeds, default=-1) + 1), missing)
    for done, (seed, program, target) in enumerate(chain(again, more), 1):
        row = round_trip(program, target, seed)
        found = found.with_row("random", row)
        tell(row)
        if done % 25 == 0:
            jax.clear_caches()  # every program is another network
    return found


def part_c(found: Found, arguments: argparse.Namespace) -> Found:
    del arguments
    done = {row.key for row in found.recompiled}
    for row in (*found.library, *found.random):
        if row.again is not None and row.key not in done:
            again = recompiled(row)
            found = found.with_row("recompiled", again)
            print(again, flush=True)
    return found


def part_d(found: Found, arguments: argparse.Namespace) -> Found:
    done = {row.key for row in found.controls if row.failed is None}
    for kind in (UNTRAINED, SHUFFLED, NOISE):
        for seed in range(arguments.controls):
            if (kind, seed) not in done:
                row = control(kind, seed)
                found = found.with_row("controls", row)
                print(
                    f"{kind} {seed}: {row.program} {row.noise or ''} claims {row.claim}"
                    f"{', FALSE' if row.false else ''} {row.failed or ''} ({row.seconds:.0f} s, "
                    f"search {row.search_seconds:.0f} s)",
                    flush=True,
                )
    return found


def tell(row: RoundTrip) -> None:
    """One round trip in a few lines."""
    how = "recovered" if row.recovered else f"NOT recovered ({row.why_not})"
    letter = ", to the letter" if row.to_the_letter else ""
    print(
        f"{row.program} in {row.target}: {how}{letter}, claims {row.claim} ({row.seconds:.0f} s, "
        f"search {row.search_seconds:.0f} s)"
    )
    if not row.to_the_letter:
        print(*(f"  was   {text}" for text in row.hidden), sep="\n")
        print(*(f"  found {text}" for text in row.found), sep="\n", flush=True)


PARTS: Mapping[str, tuple[str, Callable[[Found, argparse.Namespace], Found]]] = {
    "a": ("library", part_a),
    "b": ("random", part_b),
    "c": ("recompiled", part_c),
    "d": ("controls", part_d),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--programs", type=int, default=200, help="random programs that compile")
    parser.add_argument("--controls", type=int, default=50, help="networks of each kind")
    parser.add_argument("--fresh", action="store_true", help="forget what the part has done")
    arguments = parser.parse_args()
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    found = Found.so_far()
    for part, (rows, go_on) in PARTS.items():
        if arguments.part in (part, "all"):
            found = replace(found, **{rows: ()}) if arguments.fresh else found
            found = go_on(found, arguments)
    print(*shares(found), sep="\n")


if __name__ == "__main__":
    main()
