"""Round trips: from a compiled network whose program is hidden back to a program.

    python benchmarks/decompile.py [--part a] [--programs 200] [--controls 50] [--fresh]

    a  Every program of the library in every target that takes it. Recovered means: the rules that
       were found select the same sender as the program, in every row and phase that counts, on
       1,000 held-out graphs of 16 nodes and as many of 64 (64 where traces are long). To the letter
       means: they also read the same.
    b  Random programs of the language, those whose networks are certified on enough of the graphs.
       Where one does not come back: is it that no word says what it reads, or has the search missed
       it?
    c  What was found in a and b, compiled again for the same target: do both networks say the same
       on held-out graphs that lie inside both certificates?
    d  Controls, in which a claim (a program or a soft form) is false. Untrained networks, and
       compiled ones whose attention is shuffled among those in sight, run no program: any claim is
       false. Compiled networks with noise on their parameters may still run one, and not the one
       that was compiled. A claim there says whom the network attends to, so it is false if that
       does not hold on new graphs: if its rules do not select whom the network attends to most, or
       its soft form does not explain the attention, to the share that a claim needs (`AGREES`,
       `EXPLAINS`; less `MARGIN`, since new graphs are another sample), neither from the trace's
       state nor from the network's own. What is claimed of small graphs must hold on small ones.

A stopped run goes on where it was, and tries again what ended in an error and, of the library, what
took longer than the bar; `--fresh` begins the chosen part anew. Search and proof know the program's
names of inputs and hints, and nothing else of it. Every network runs some dozens of times: what
counts is also how soon XLA has compiled it, so it is told to optimise little unless XLA_FLAGS says
something else. Seconds are those of the processor, on one core.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from statistics import median
from typing import Any, ClassVar

import jax

from measuring import earlier, save
from mechgap.compiler.target import TARGETS
from mechgap.typed import plain, rounded, typed
from round_trips import (
    Recompiled,
    RoundTrip,
    library_pairs,
    random_of,
    random_pairs,
    recompiled,
    round_trip,
)
from spoiled import NOISE, SHUFFLED, UNTRAINED, Control, control

FILE = "decompile"
BARS = {"recovered": 1.0, "words suffice": 0.95, "false claims": 0.02}
SECONDS, SEARCH_SECONDS = 60.0, 20.0
KEPT = 8
"""Compiled programs of so many networks are kept."""


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
    moving = [row.recovered for row in said if not row.idle]
    told = "random: recovered where words suffice"
    lines += [
        _share(told, [r.recovered for r in said], BARS["words suffice"]),
        _share(f"{told} and the network is the program", [r.recovered for r in exact]),
        _share(f"{told} and anybody selects another", busy),
        _share(f"{told} and any state changes", moving),
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


def part_a(found: Found, arguments: argparse.Namespace) -> Found:
    del arguments
    done = {row.key for row in found.library if row.failed is None and row.seconds <= SECONDS}
    for program, target in library_pairs():
        if (program.name, target.name) not in done:
            row = round_trip(program, target)
            found = found.with_row("library", row)
            tell(row)
            forget(len(found.library))
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
        forget(done)
    return found


def part_c(found: Found, arguments: argparse.Namespace) -> Found:
    del arguments
    done = {row.key for row in found.recompiled}
    for row in (*found.library, *found.random):
        if row.again is not None and row.key not in done:
            again = recompiled(row)
            found = found.with_row("recompiled", again)
            print(again, flush=True)
            forget(len(found.recompiled))
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


def forget(done: int) -> None:
    """Every program is another network: what is compiled for it is of no further use, and all of
    it together takes more pieces of memory than a process may have."""
    if done % KEPT == 0:
        jax.clear_caches()


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
    _keep_to_one_core()
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")
    found = Found.so_far()
    for part, (rows, go_on) in PARTS.items():
        if arguments.part in (part, "all"):
            found = replace(found, **{rows: ()}) if arguments.fresh else found
            found = go_on(found, arguments)
    print(*shares(found), sep="\n")


def _keep_to_one_core() -> None:
    """From the start, so that no library makes threads that wait for each other."""
    if hasattr(os, "sched_setaffinity") and len(cores := os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, {max(cores)})
        os.execv(sys.executable, [sys.executable, *sys.argv])


if __name__ == "__main__":
    main()
