"""A whole program of what was found: a rule for each phase, and what each step makes of a state.

Words that are no hint become components of their own: what was seen in a phase is set in it, and
what was a step ago is set in the last.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from mechgap.decompiler.rules import Rule
from mechgap.decompiler.scenes import Scenes
from mechgap.decompiler.updates import Updates
from mechgap.decompiler.words import LEVEL, MET, SAW, WAS, Words
from mechgap.programs.components import Component, Kind
from mechgap.programs.conclusions import parts
from mechgap.programs.expressions import (
    Constant,
    Equal,
    Expression,
    Name,
    Not,
    Scale,
    Side,
    edge,
    init,
    names,
)
from mechgap.programs.phases import Phase, keep
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch


def assembled(
    name: str,
    batch: Batch,
    scenes: Scenes,
    rules: Sequence[Rule],
    updates: Updates,
    *,
    keeps: bool = False,
) -> Program:
    """The program of some rules and updates.

    Args:
        name: What it is to be called.
        batch: The graphs that it was found on.
        scenes: What the language sees of these, when all phases are over.
        rules: Whom nodes attend to, phase by phase.
        updates: What every hint follows from. Hints without anything are not claimed.
        keeps: Whether nodes stay as they are where they select nobody.
    """
    task, words, last = batch.task, scenes.words, len(rules) - 1
    found = {c: value for c, value in updates.items() if value is not None}
    concluded = {c.name: v for c, v in found.items() if not isinstance(v, Expression)}
    by_sender = {c.name: _seen_last(v, last) for c, v in found.items() if isinstance(v, Expression)}
    read = [e for rule in rules for e in _expressions(rule)] + list(by_sender.values())
    read += [part for conclusion in concluded.values() for part in parts(conclusion)]
    signals = _signals(words, read, last)
    phases = [
        Phase(
            rule.select,
            rule.whole_mask,
            keep if keeps else rule.otherwise,
            {n: value for n, (phase, value) in signals.items() if phase == k}
            | (by_sender if k == last else {}),
        )
        for k, rule in enumerate(rules)
    ]
    hints = {hint: c for hint, c in words.hints.items() if c in found}
    signalled = [c for c in words.derived if c.name in signals]
    kept = [c for c in signalled if c.name.startswith(WAS)]  # others are set before they are read
    return Program(
        name=name,
        task=task.like or task.name,
        inputs=words.inputs,
        hidden=(*found, *signalled),
        init=dict(_starts([*found, *kept], scenes)),
        phases=tuple(phases),
        conclude=concluded,
        sees_all=bool(scenes.support.all()),
        hints=hints,
        output=dict(_outputs(batch, hints)),
        unclaimed={
            hint: "nothing that was found explains it"
            for hint in (f.name for f in task.hints)
            if hint not in hints
        },
    )


def _outputs(batch: Batch, hints: Mapping[str, Component]) -> Iterator[tuple[str, Component]]:
    """The outputs that are a hint's last value."""
    last = np.maximum(0, np.asarray(batch.lengths) - 1), np.arange(batch.size)
    for feature in batch.task.outputs:
        truth = np.asarray(batch.outputs[feature.name])
        for hint, component in hints.items():
            value = np.asarray(batch.hints[hint])[last]
            if value.shape == truth.shape and np.allclose(value, truth, atol=1e-5):
                yield feature.name, component
                break


def _expressions(rule: Rule) -> Iterator[Expression]:
    yield from (rule.select.expression, *rule.mask)
    if isinstance(rule.otherwise, Expression):
        yield rule.otherwise


def _seen_last(expression: Expression, last: int) -> Expression:
    """The same while the last phase is on: what will have been seen in it is `other`."""
    met, saw = f"{MET}{last}", f"{SAW}{last}_"
    match expression:
        case Equal(Name(Side.SELF, pointer), Name(Side.SELF, "idx")) if pointer == met:
            return edge.loop
        case Name(Side.SELF, name) if name == met:
            return Name(Side.OTHER, "idx")
        case Name(Side.SELF, name) if name.startswith(saw):
            return Name(Side.OTHER, name.removeprefix(saw))
    changed = {
        f.name: _seen_last(value, last)
        for f in fields(expression)  # pyright: ignore[reportArgumentType]
        if isinstance(value := getattr(expression, f.name), Expression)
    }
    return replace(expression, **changed) if changed else expression  # pyright: ignore[reportArgumentType]


def _signals(
    words: Words, read: Iterable[Expression], last: int
) -> dict[str, tuple[int, Expression]]:
    """Whatever is read that is no hint: in which phase it is set, and to what."""
    found: dict[str, tuple[int, Expression]] = {}
    derived = {component.name for component in words.derived}
    waiting = {name for expression in read for name in names(expression)} & derived
    while waiting:
        name = waiting.pop()
        found[name] = _signal(name, words, last)
        waiting |= (names(found[name][1]) & derived) - {*found}
    return found


def _signal(name: str, words: Words, last: int) -> tuple[int, Expression]:
    if name.startswith(MET):
        return int(name.removeprefix(MET)), Name(Side.OTHER, "idx")
    source = words.sources[name]
    if name.startswith(SAW):
        return int(name.split("_")[1]), Name(Side.OTHER, source)
    if name.startswith(WAS):
        return last, Name(Side.SELF, source)
    assert name == LEVEL
    return last, Name(Side.SELF, LEVEL) + Scale(1.0, Not(Name(Side.SELF, source)))


def _starts(found: Iterable[Component], scenes: Scenes) -> Iterator[tuple[str, Expression]]:
    """What components start with, where that is not what they start with anyway."""
    first = scenes.step == 0
    candidates: list[Expression] = [init.start] if "start" in scenes.words.inputs else []
    candidates += [init.idx, Constant(1.0)]
    usual = {Kind.BOOL: Constant(0.0), Kind.FLOAT: Constant(0.0), Kind.POINTER: init.idx}
    for component in found:
        if component.kind not in usual:
            continue
        value = scenes.state[component.name][first]
        for expression in (usual[component.kind], *candidates):
            if np.allclose(scenes.values(expression)[first][..., 0], value):
                if expression != usual[component.kind]:
                    yield component.name, expression
                break
