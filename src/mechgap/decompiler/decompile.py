"""`decompile(network, graphs)`: what does it run?"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mechgap.decompiler.assembling import assembled
from mechgap.decompiler.evidence import FromOwnState, PhaseFound, Weighted
from mechgap.decompiler.explanation import MARGIN, Explanation
from mechgap.decompiler.graphs import FIT, HELD_OUT, TEST, Graphs
from mechgap.decompiler.proof import answers, errors_predicted, forced, forced_to
from mechgap.decompiler.rules import Rule
from mechgap.decompiler.scenes import Scenes
from mechgap.decompiler.search import search
from mechgap.decompiler.soft import SoftForm, attentions, rule_softly, soft_forms, softened
from mechgap.decompiler.updates import updates_of
from mechgap.decompiler.watched import Attention, Watched, watched
from mechgap.errors import InvalidInput
from mechgap.measures.causal import can_force, foils
from mechgap.measures.data import Data, make_data
from mechgap.measures.foiled import foiled_hints
from mechgap.measures.own_state import with_own_hints
from mechgap.network.network import Network
from mechgap.network.trace import Trace, run
from mechgap.programs.library import mechanisms
from mechgap.programs.program import Program
from mechgap.programs.validate import problems
from mechgap.tasks.batch import Batch

_SCENES = 300
"""On at most so many the soft form is tried from a network's own state."""
Attending = Float[np.ndarray, "time batch heads receivers senders"]
Patched = Callable[[Batch, Attending], Attending]
"""Another attention in place of a network's own, for controls."""


@dataclass(frozen=True)
class Decompiled:
    """What was found: numbers and words, and the program as an object that runs and compiles."""

    explanation: Explanation
    program: Program | None
    """None where no step of the trace follows from the rules."""


def decompile(
    network: Network,
    graphs: Graphs,
    known: Sequence[Program] | None = None,
    *,
    name: str = "decompiled",
    in_place: Patched | None = None,
) -> Decompiled:
    """Find the program that a network runs, prove it, and say how much of it holds.

    Args:
        network: Learned, compiled or imported.
        graphs: To find, to check and to test on; `graphs_for(task)`.
        known: Mechanisms to compare with; the library's for this task if not given.
        name: What the program is to be called.
        in_place: For controls: an attention to explain in place of the network's own.

    Raises:
        InvalidInput: the task's trace says nothing about nodes.
    """
    began = time.perf_counter()
    known = mechanisms(graphs.fit.task) if known is None else known
    sets = {FIT: graphs.fit, HELD_OUT: graphs.held_out, TEST: graphs.test}
    traces = {which: run(network, batch) for which, batch in sets.items()}
    told = {which: with_own_hints(sets[which], traces[which].hints) for which in (HELD_OUT, TEST)}
    from_own = told if network.config.decodes_hints else {}
    data = {which: make_data(which, sets[which], known) for which in (HELD_OUT, TEST)}

    def explain(head: int | None = None, without: Sequence[str] = ()) -> list[_Phase]:
        def watch(batches: Mapping[str, Batch]) -> list[dict[str, Watched]]:
            found = {
                which: _watched(network, batch, traces[which], head, in_place, without)
                for which, batch in batches.items()
            }
            phases = range(network.config.nb_msg_passing_steps)
            return [{which: found[which][k] for which in found} for k in phases]

        return [_Phase.of(*each) for each in zip(watch(sets), watch(from_own), strict=True)]

    found = explain()
    program, unclaimed = _program(name, graphs.fit, found)
    hints = found[0].seen[FIT].scenes.words.hints
    if program is None and 0 < len(unclaimed) < len(hints):
        # Rules may have read what nothing explains: without it they can be a whole program.
        others = explain(without=unclaimed)
        whole, _ = _program(name, graphs.fit, others)
        if whole is not None and _nearly_as_good(others, found):
            found, program = others, whole
    several = range(network.config.nb_heads if network.config.nb_heads > 1 else 0)
    heads = {str(head): _told(explain(head), data[HELD_OUT]) for head in several}
    proved = {}
    errors = {}
    for which, each in data.items():
        seen = [phase.seen[which] for phase in found]
        soft = forced_to([phase.attends_softly[which] for phase in found], network, each, seen)
        chosen = [_one_hot(at.senders) for at in _by_rules(found, seen[0].scenes)]
        gently = [
            rule_softly(w, one, phase.logits)
            for phase, w, one in zip(found, seen, chosen, strict=True)
        ]
        proved[which] = forced(network, each, traces[which], seen, chosen, gently, soft)
        errors[which] = errors_predicted(each, traces[which], soft)
    parts = ()
    if program is not None:
        mine = make_data(HELD_OUT, graphs.held_out, [program])
        (truth,) = mine.truths
        if can_force(network, mine, truth.attention):
            parts = foils(network, mine, truth, foiled_hints(mine)[program.name])
    explanation = Explanation(
        phases=_told(found, data[HELD_OUT]),
        heads=heads,
        program=None if program is None else str(program),
        unclaimed=unclaimed,
        forced=proved,
        parts=parts,
        errors=errors,
        answers={}
        if program is None
        else {which: answers(program, d.batch) for which, d in data.items()},
        seconds=time.perf_counter() - began,
    )
    return Decompiled(explanation, program)


def _watched(
    network: Network,
    batch: Batch,
    trace: Trace,
    head: int | None,
    in_place: Patched | None,
    without: Sequence[str],
) -> tuple[Watched, ...]:
    attention = np.asarray(trace.attention)
    attention = attention if in_place is None else in_place(batch, attention)
    one = attention.mean(2) if head is None else attention[:, :, head]
    return watched(batch, one, network.config.attends_to_all, without)


@dataclass(frozen=True)
class _Phase:
    """What was found for one message-passing step."""

    seen: Mapping[str, Watched]
    """With the true trace's state: this is what rule and soft form were found on."""
    from_own: Mapping[str, Watched]
    """With the network's own, where it has made hints of it."""
    rule: Rule
    agreement: float
    """On the graphs that it was found on."""
    alike: int

    @staticmethod
    def of(seen: Mapping[str, Watched], from_own: Mapping[str, Watched]) -> "_Phase":
        fit = seen[FIT]
        found = search(fit.scenes, fit.strongest)
        best = found[0]
        alike = sum(round(f.agreement, 4) == round(best.agreement, 4) for f in found)
        return _Phase(seen, from_own, best.rule, best.agreement, alike)

    @cached_property
    def path(self) -> Sequence[SoftForm]:
        """Soft forms of one word, two words, and so on."""
        return soft_forms(self.seen[FIT])

    @cached_property
    def logits(self) -> Mapping[str, float]:
        """Of whom the rule selects above others, by kind of receivers."""
        return softened(self.seen[FIT], self.chosen(self.seen[FIT]))

    @cached_property
    def along(self) -> Sequence[Attention]:
        """What each of these says of held-out graphs."""
        return list(attentions(self.path or [SoftForm()], self.seen[HELD_OUT]))

    @property
    def soft(self) -> SoftForm:
        return self.path[-1] if self.path else SoftForm()

    @cached_property
    def attends_softly(self) -> Mapping[str, Attention]:
        """What the soft form says of the graphs that it was not fitted to."""
        return {HELD_OUT: self.along[-1], TEST: self.soft.attention(self.seen[TEST])}

    def agreement_on(self, sets: Mapping[str, Watched]) -> dict[str, float]:
        """By set of graphs, for which share of receivers the rule selects whom they attend to
        most."""
        return {
            which: float((self.rule.senders(w.scenes) == w.strongest).mean())
            for which, w in sets.items()
        }

    def on_selected(self, watched: Watched) -> float:
        """Attention on whom the rule selects, mean."""
        return float((watched.attention * self.chosen(watched)).sum(-1).mean())

    def chosen(self, watched: Watched) -> Attention:
        return _one_hot(self.rule.senders(watched.scenes))

    def softly(self, watched: Watched) -> Attention:
        return rule_softly(watched, self.chosen(watched), self.logits)


class _ByRule(NamedTuple):
    """Whom nodes select in one phase, and what is seen of them then."""

    scenes: Scenes
    senders: Int[np.ndarray, "scenes nodes"]


def _by_rules(phases: Sequence[_Phase], scenes: Scenes) -> Iterator[_ByRule]:
    """A whole step by the rules alone: later phases see whom the rules selected in earlier ones,
    not whom the network attended to."""
    for k, phase in enumerate(phases):
        senders = phase.rule.senders(scenes)
        yield _ByRule(scenes, senders)
        scenes = scenes.after_phase(k, senders)


def _nearly_as_good(some: Sequence[_Phase], others: Sequence[_Phase]) -> bool:
    return all(a.agreement >= b.agreement - MARGIN for a, b in zip(some, others, strict=True))


def _one_hot(senders: np.ndarray) -> Attention:
    return np.eye(senders.shape[-1])[senders]


class _Likeness(NamedTuple):
    """By known mechanism: in which share of the rows that it is about a rule selects as it does, or
    nearly; and in which share of all."""

    same_as: dict[str, float]
    like: dict[str, float]
    everywhere: dict[str, float]


def _told(phases: Sequence[_Phase], data: Data) -> tuple[PhaseFound, ...]:
    by_rules = _by_rules(phases, phases[0].seen[HELD_OUT].scenes)
    return tuple(
        _phase_told(phase, _compared(at, k, len(phases), data))
        for k, (phase, at) in enumerate(zip(phases, by_rules, strict=True))
    )


def _phase_told(phase: _Phase, likeness: _Likeness) -> PhaseFound:
    held = phase.seen[HELD_OUT]
    others = {which: phase.seen[which] for which in (HELD_OUT, TEST)}
    soft = {which: w.explained(phase.attends_softly[which]) for which, w in others.items()}
    model = phase.attends_softly[HELD_OUT]
    return PhaseFound(
        rule=str(phase.rule),
        words=phase.rule.length,
        alike=phase.alike,
        agreement=phase.agreement_on(others),
        on_selected=phase.on_selected(held),
        softly=phase.logits,
        rule_explains={which: w.explained(phase.softly(w)) for which, w in others.items()},
        soft=tuple(
            Weighted(str(word.value), word.receivers, weight)
            for word, weight in zip(phase.soft.words, phase.soft.weights, strict=True)
        ),
        path=tuple(map(held.explained, phase.along)) if phase.path else (),
        soft_explains=soft,
        by_receivers={name: held.explained(model, rows) for name, rows in held.receivers.items()},
        sharpness=min(w.sharpness for w in others.values()),
        **likeness._asdict(),
        from_own_state=_from_own_state(phase),
    )


def _from_own_state(phase: _Phase) -> FromOwnState | None:
    own = phase.from_own
    if not own:
        return None
    some = {which: w.some(_SCENES) for which, w in own.items()}
    return FromOwnState(
        agreement=phase.agreement_on(own),
        on_selected=phase.on_selected(own[HELD_OUT]),
        soft_explains={w: some[w].explained(phase.soft.attention(some[w])) for w in some},
    )


def _compared(by_rule: _ByRule, number: int, phases: int, data: Data) -> _Likeness:
    found = _Likeness({}, {}, {})
    scenes, senders = by_rule
    for truth in data.truths:
        if truth.phases != phases:
            continue
        at = scenes.step * phases + number, scenes.graph
        about = np.asarray(truth.updated)[at]
        if not about.any():
            continue
        agrees = np.asarray(truth.senders)[at] == senders
        accepted = np.take_along_axis(np.asarray(truth.acceptable)[at], senders[..., None], -1)
        found.same_as[truth.mechanism] = float(agrees[about].mean())
        found.like[truth.mechanism] = float(accepted[..., 0][about].mean())
        found.everywhere[truth.mechanism] = float(agrees.mean())
    return found


def _program(
    name: str, batch: Batch, phases: Sequence[_Phase]
) -> tuple[Program | None, tuple[str, ...]]:
    """The whole program, and the hints that it does not explain."""
    rules = [phase.rule for phase in phases]
    *_, last = _by_rules(phases, phases[0].seen[FIT].scenes)
    scenes = last.scenes.after_phase(len(phases) - 1, last.senders)
    updates, keeps = updates_of(scenes, rules)
    unclaimed = tuple(hint for hint, c in scenes.words.hints.items() if updates[c] is None)
    if all(update is None for update in updates.values()):
        return None, unclaimed
    try:
        program = assembled(name, batch, scenes, rules, updates, keeps=keeps)
    except InvalidInput:
        return None, tuple(scenes.words.hints)
    return (None if list(problems(program)) else program), unclaimed
