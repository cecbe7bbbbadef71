"""The search for the rule of one phase: over keys and flags of the pair, shortest first.

A rule is as good as the share of receivers for whom it selects the sender that the network attends
to most. A rule that is right about all of them is told as it is. Where there is none, every word
has a price in agreement, so that no exceptions are listed that are noise.

Which nodes may be selected, and which nodes select at all, need not be searched. Given a key,
whoever is attended to must be eligible, and whoever would have been selected before it must not: so
for every kind of senders one can count which is the case. Then for every kind of receivers
selecting is better than the default or it is not. `wording` says both in words.

Most scenes say the same, so the search looks at some of them, and only what is best there is tried
on all. Where a rule is right about these and not about all, scenes that it is wrong about are added
and the search is done again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Int

from mechgap.decompiler.factors import polished
from mechgap.decompiler.problem import Candidate, Problem
from mechgap.decompiler.rules import Default, default_senders
from mechgap.decompiler.scenes import Scenes
from mechgap.decompiler.wording import Found, by_default, in_words
from mechgap.programs.expressions import Add, Expression, Scale
from mechgap.programs.phases import Extreme, Selection

FACTORS = (1.0, 0.5, 0.1, 0.01)
"""Of the second number of a key, beside those that `polished` finds."""
BEAM = 6
"""With how many of the best masks keys of two numbers are tried."""
DEFAULTS = 2
"""How many defaults are tried with masks of two flags and with keys of two numbers."""
KEPT = 64
"""How many rules are kept in mind."""
TRIED_ON_ALL = 12
"""How many of them are tried on all scenes."""
TOLD = 8
"""How many rules are told, if not more are as good as the best."""
ENOUGH = 1.0 - 1e-9
WORTH, DEAREST = 16, 0.003
"""How many receivers a word must explain, in a rule that does not explain all; and what share of
them is enough where these are few."""
ROWS = 4_000
"""About so many receivers are looked at first."""
ROUNDS = 4
"""How often scenes are added."""


def search(scenes: Scenes, attended: Int[np.ndarray, "scenes nodes"]) -> list[Found]:
    """The best rules, best first and of equals the shortest first.

    Args:
        scenes: What the language sees.
        attended: Whom every receiver attends to most.
    """
    everything = Problem.of(scenes, attended)
    looked_at = _some(len(attended), max(1, ROWS // scenes.nodes))
    best: list[Candidate] = []
    for _ in range(ROUNDS):
        few = Problem.of(scenes.some(looked_at), attended[looked_at])
        leading = _candidates(few)
        best = _best(c for one in leading[:TRIED_ON_ALL] for c in _again(everything, one))
        exact = bool(leading) and leading[0].agreement >= ENOUGH
        if not exact or not best or best[0].agreement >= ENOUGH:
            break
        wrong = in_words(best[0], everything, 0.0).rule.senders(scenes) != attended
        missed = np.setdiff1d(np.flatnonzero(wrong.any(-1)), looked_at)
        if not len(missed):
            break
        looked_at = np.union1d(looked_at, missed[_some(len(missed), max(1, len(looked_at) // 4))])
    usual = by_default(everything)
    exact = max([usual.agreement, *(c.agreement for c in best)]) >= ENOUGH
    price = 0.0 if exact else min(DEAREST, WORTH / attended.size)
    found = [usual, *(in_words(c, everything, price) for c in best[:TOLD])]
    finer = [polished(f.rule, scenes, attended) for f in found] if price else []
    found += [Found(rule, everything.agreement(rule)) for rule in finer if rule is not None]
    exact = any(f.agreement >= ENOUGH for f in found)
    return sorted(found, key=lambda f: f.order(0.0 if exact else price))


def _some(of: int, wanted: int) -> Int[np.ndarray, "chosen"]:
    """Some by chance, the same each time; all if there are no more."""
    if of <= wanted:
        return np.arange(of)
    return np.sort(np.random.default_rng(0).choice(of, wanted, replace=False))


def _candidates(problem: Problem) -> list[Candidate]:
    """The best that there are, by stages: what is short is tried with more."""
    literals = list(_telling(problem))
    singles = list(_distinct(problem, _single_keys(problem.scenes)))
    best: list[Candidate] = []
    stages = (
        lambda: (singles, _conjunctions(literals, 1), problem.defaults),
        lambda: (singles, _conjunctions(literals, 2), _leading_defaults(best)),
        lambda: (
            list(_distinct(problem, _double_keys(problem.scenes))),
            _leading_masks(best),
            _leading_defaults(best),
        ),
    )
    for stage in stages:
        keys, masks, defaults = stage()
        passing = {mask: _passing(problem.scenes, mask) for mask in masks}
        for key in keys:
            best = _best([*best, *_tried(problem, key, passing, defaults)])
            if len(keys) > len(singles) and best and best[0].agreement >= ENOUGH:
                break  # other keys of two numbers are no shorter
        if best and best[0].agreement >= ENOUGH:
            break
    return best


def _again(problem: Problem, one: Candidate) -> Iterator[Candidate]:
    """The same key, flags and default, with other scenes."""
    passing = {one.pair: _passing(problem.scenes, one.pair)}
    return _tried(problem, one.select, passing, (one.otherwise,))


def _best(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Each once, best first."""
    unlike: dict[object, Candidate] = {}
    for c in sorted(candidates, key=lambda c: c.order):
        unlike.setdefault((c.select, c.pair, str(c.otherwise)), c)
    return list(unlike.values())[:KEPT]


def _single_keys(scenes: Scenes) -> Iterator[Selection]:
    for expression in scenes.words.keys:
        yield from (Selection(extreme, expression) for extreme in Extreme)


def _double_keys(scenes: Scenes) -> Iterator[Selection]:
    for first, second in combinations(scenes.words.keys, 2):
        for factor in FACTORS:
            for sign in (1.0, -1.0):
                for a, b in ((first, second), (second, first)):
                    both = Add(a, b if sign * factor == 1 else Scale(sign * factor, b))
                    yield from (Selection(extreme, both) for extreme in Extreme)


def _distinct(problem: Problem, keys: Iterable[Selection]) -> Iterator[Selection]:
    """Without those that order the senders of all receivers as an earlier one does."""
    known = set()
    for key in keys:
        mark = hash(_order(problem, key).astype(np.uint8).tobytes())
        if mark not in known:
            known.add(mark)
            yield key


def _order(problem: Problem, key: Selection) -> Int[np.ndarray, "scenes nodes senders"]:
    """Every receiver's senders, who would be selected first; those in sight, then the others."""
    scenes = problem.scenes
    value = np.where(scenes.support, key.sign * scenes.values(key.expression), np.inf)
    return np.argsort(value, axis=-1, kind="stable")


def _telling(problem: Problem) -> Iterator[Expression]:
    """The flags of the pair that some sender in sight has and some has not, each once."""
    scenes, known = problem.scenes, set()
    for literal in scenes.words.literals:
        passes = (scenes.values(literal) > 0.5) & scenes.support
        mark = hash(np.packbits(passes).tobytes())
        if passes.any() and (passes != scenes.support).any() and mark not in known:
            known.add(mark)
            yield literal


def _conjunctions(literals: Sequence[Expression], size: int) -> list[tuple[Expression, ...]]:
    """All masks of at most so many flags of the pair."""
    return [mask for k in range(size + 1) for mask in combinations(literals, k)]


def _leading_masks(best: Sequence[Candidate]) -> list[tuple[Expression, ...]]:
    return list(dict.fromkeys([(), *(c.pair for c in best)]))[:BEAM]


def _leading_defaults(best: Sequence[Candidate]) -> list[Default]:
    return list({str(c.otherwise): c.otherwise for c in best}.values())[:DEFAULTS]


def _passing(
    scenes: Scenes, mask: tuple[Expression, ...]
) -> Bool[np.ndarray, "scenes nodes nodes"]:
    """Who is in sight and has the flags of the pair."""
    passes = scenes.support
    for literal in mask:
        passes = passes & (scenes.values(literal) > 0.5)
    return passes


def _tried(
    problem: Problem,
    key: Selection,
    passing: Mapping[tuple[Expression, ...], Bool[np.ndarray, "scenes nodes nodes"]],
    defaults: Sequence[Default],
) -> Iterator[Candidate]:
    """What a key makes of some masks and defaults."""
    scenes, kinds, attended = problem.scenes, problem.kinds, problem.attended
    count = len(kinds.table)
    order = _order(problem, key)
    kind = kinds.of_node[np.arange(len(order))[:, None, None], order]
    before = np.cumsum(order == attended[..., None], axis=-1) == 0
    attended_kind = np.take_along_axis(kinds.of_node, attended, axis=-1)
    usual = {str(d): default_senders(d, scenes) == attended for d in defaults}
    for mask, passes in passing.items():
        passes = np.take_along_axis(passes, order, -1)
        chosen = _at(passes, before.sum(-1))  # whether the one attended to passes
        for default in defaults:
            base = usual[str(default)]
            for selects in (chosen & ~base, chosen):
                wanted = np.bincount(attended_kind[selects], minlength=count)
                spurned = np.bincount(kind[passes & before & selects[..., None]], minlength=count)
                for lets_pass in (False, True):
                    eligible = wanted >= spurned if lets_pass else wanted > spurned
                    who = passes & eligible[kind]
                    first = np.take_along_axis(order, who.argmax(-1)[..., None], -1)[..., 0]
                    change = np.where(who.any(-1), (first == attended) * 1.0 - base, 0)
                    gain = problem.by_kind(change)
                    agreement = float(base.mean() + np.maximum(gain, 0).sum())
                    if (gain > 0).any():
                        share = wanted / base.size, spurned / base.size
                        yield Candidate(agreement, key, mask, default, *share, lets_pass, gain)


def _at(flags: Bool[np.ndarray, "... senders"], place: Int[np.ndarray, "..."]) -> np.ndarray:
    last = flags.shape[-1] - 1
    return np.take_along_axis(flags, np.minimum(place, last)[..., None], -1)[..., 0]
