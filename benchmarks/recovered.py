"""Is what was found the program that was hidden? Asked of programs alone, without any network."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from mechgap.compiler.verify import posed_batch
from mechgap.decompiler.rules import Rule
from mechgap.decompiler.scenes import scenes_of
from mechgap.decompiler.words import Words, words_of
from mechgap.errors import InvalidInput
from mechgap.programs.components import Kind
from mechgap.programs.expressions import (
    Add,
    Expression,
    Name,
    Scale,
    Side,
    Subtract,
    conjuncts,
    names,
    parse,
)
from mechgap.programs.interpreter import interpret
from mechgap.programs.phases import Keep, Otherwise, Phase, parse_otherwise, parse_selection
from mechgap.programs.posing import posed
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.sampling import sample

WANTED, FEWEST = 1_000, 64
"""Graphs of each size that a program is compared on, and how many if these take too long."""
PAIRS = 100_000_000
"""So many pairs of nodes, over all phases and steps, take too long."""
_PIECE = 32
_RULE = re.compile(r"select=(?P<select>.*?)(, mask=(?P<mask>.*?))?(, otherwise=(?P<default>.*))?$")


@dataclass(frozen=True)
class Compared:
    """How often rules select another sender than a program, in rows that count."""

    graphs: int
    rows: int
    """Receivers in all steps and phases."""
    wrong: int

    def __add__(self, more: "Compared") -> "Compared":
        sums = self.graphs + more.graphs, self.rows + more.rows, self.wrong + more.wrong
        return Compared(*sums)


def rule_of(text: str) -> Rule:
    """The rule that a text means: what `str` of a rule says."""
    said = _RULE.fullmatch(text)
    if said is None:
        raise InvalidInput(f"a rule is select=…, mask=…, otherwise=…; got '{text}'")
    mask = () if said["mask"] is None else tuple(conjuncts(parse(said["mask"])))
    otherwise = parse_otherwise(said["default"] or "self")
    assert not isinstance(otherwise, Keep), "a rule says whom nodes attend to"
    return Rule(parse_selection(said["select"]), mask, otherwise)


def letters(select: object, mask: Expression | None, otherwise: Otherwise) -> tuple[object, ...]:
    """What a selection says, in words that can be compared.

    Parts of a mask may stand in any order. A node's own input is `self.start` as well as
    `init.start`, and who keeps attends to itself.
    """
    parts = {str(part.replaced(Side.INIT, Side.SELF)) for part in conjuncts(mask)}
    default = "self" if isinstance(otherwise, Keep) else str(otherwise)
    return (str(select), frozenset(parts), default)


def same_letters(program: Program, rules: Sequence[Rule]) -> bool:
    """Whether rules say what the phases of a program say, word by word."""
    phases = [letters(p.select, p.mask, p.otherwise) for p in program.phases]
    return phases == [letters(r.select, r.whole_mask, r.otherwise) for r in rules]


def held_out(program: Program, nodes: int, graphs: int, key: int) -> Batch:
    """Graphs that no rule was found on, of the same kind, with the program's trace."""
    clrs = sample(
        program.task, jax.random.key(key), batch_size=graphs, nodes=nodes, random_pos=False
    )
    return posed_batch(program, clrs.trim()).trim()


def compared_on(program: Program, rules: Sequence[Rule], batch: Batch, sees_all: bool) -> Compared:
    """How rules and a program select on some graphs; both see the program's own state."""
    scenes = scenes_of(words_of(posed(program)), batch, sees_all)
    by_phase = senders_of(program, batch)[scenes.step, :, scenes.graph]
    wrong = 0
    for phase, rule in enumerate(rules):
        senders = by_phase[:, phase]
        wrong += int((rule.senders(scenes) != senders).sum())
        scenes = scenes.after_phase(phase, senders)
    return Compared(batch.size, by_phase.size, wrong)


def senders_of(program: Program, batch: Batch) -> np.ndarray:
    """Whom nodes attend to by a program: ``[step, phase, graph, receiver]``."""
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    run = interpret(program, inputs, batch.steps)
    return run.senders.reshape(batch.steps, program.selections, batch.size, batch.nodes)


def compared(
    program: Program, rules: Sequence[Rule], nodes: int, sees_all: bool, graphs: int = WANTED
) -> Compared:
    """The same on so many held-out graphs, or on fewer where these have too long traces."""
    found, pairs = Compared(0, 0, 0), 0
    while found.graphs < graphs and (found.graphs < FEWEST or pairs < PAIRS):
        batch = held_out(program, nodes, _PIECE, 0x4E1D0000 + found.graphs)
        batch = batch[: min(_PIECE, graphs - found.graphs)]
        found += compared_on(program, rules, batch, sees_all)
        pairs += batch.size * batch.steps * len(rules) * nodes**2
    return found


def lacking(program: Program) -> tuple[str, ...]:
    """What a program's selections read that no word says, and that no two words say together.

    Nothing lacks where the vocabulary suffices; then what was not found, the search has missed.
    """
    words = words_of(posed(program))
    found = [
        f"phase {number}: {what}"
        for number, phase in enumerate(program.phases)
        for what in _lacking(program, number, phase, words)
    ]
    return tuple(dict.fromkeys(found))


def _lacking(program: Program, number: int, phase: Phase, words: Words) -> Iterator[str]:
    terms = list(_terms(phase.select.expression))
    if len(terms) > 2:
        yield f"a key of {len(terms)} numbers, {phase.select.expression}"
    for term in terms:
        if not isinstance(term, Name):
            yield f"a key of something else, {term}"
        elif term.side is not Side.EDGE and term.name not in program.components:
            if term.name not in words.numbers:
                yield f"{term} in a key"
        elif term.side is not Side.EDGE:
            yield from _unsaid(program, number, term.name, words)
    asked = [phase.mask] if phase.mask is not None else []
    asked += [phase.otherwise] if isinstance(phase.otherwise, Expression) else []
    for expression in asked:
        for name in sorted(names(expression) & {*program.components}):
            yield from _unsaid(program, number, name, words)


def _terms(key: Expression) -> Iterator[Expression]:
    """What a key is a sum of, without factors."""
    match key:
        case Add(left, right) | Subtract(left, right):
            yield from (*_terms(left), *_terms(right))
        case Scale(_, value):
            yield from _terms(value)
        case _:
            yield key


def _unsaid(program: Program, number: int, name: str, words: Words) -> Iterator[str]:
    """Why no word says what a component is in some phase; nothing where one does.

    What an earlier phase of the same step has set is no longer what the trace says. Of a flag,
    flags of whom the node has met can say it; of a pointer, whom it has met; of a number nothing.
    """
    set_in = program.set_in(name)
    if set_in is None or set_in >= number:
        if name not in {*words.flags, *words.numbers, *words.pointers}:
            yield f"'{name}' is no hint"
        return
    phase = program.phases[set_in]
    update = phase.update[name]
    kind = program.components[name].kind
    if kind is Kind.BOOL:
        read = names(update) & {*program.components} | ({name} if phase.keeps else set())
        for each in sorted(read):
            yield from _unsaid(program, set_in, each, words)
    elif kind is not Kind.POINTER or phase.keeps or update != Name(Side.OTHER, program.position):
        yield f"'{name}' has been set in phase {set_in} to {update}"
