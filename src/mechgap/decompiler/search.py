"""The search for the rule of one phase: over keys and flags of the pair, shortest first.

A rule is as good as the share of receivers for whom it selects the sender that the network attends
to most. A rule that is right about all of them is told as it is. Where there is none, every word
has a price in agreement, so that no exceptions are listed that are noise.

Which nodes may be selected, and which nodes select at all, need not be searched. Given a key,
whoever is attended to must be eligible, and whoever would have been selected before it must not: so
for every kind of senders one can count which is the case. Then for every kind of receivers
selecting is better than the default or it is not. `condition` says both in words.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from mechgap.decompiler.factors import polished
from mechgap.decompiler.kinds import Kinds, condition
from mechgap.decompiler.rules import Default, Rule, default_senders
from mechgap.decompiler.scenes import Scenes
from mechgap.programs.expressions import Add, Expression, Name, Scale, Side, Where, self
from mechgap.programs.phases import Extreme, Selection

FACTORS = (1.0, 0.5, 0.1, 0.01)
"""Of the second number of a key, beside those that `polished` finds."""
BEAM = 6
"""With how many of the best masks keys of two numbers are tried."""
KEPT = 64
"""How many rules are kept in mind."""
TOLD = 8
"""How many rules are told, if not more are as good as the best."""
ENOUGH = 1.0 - 1e-9
PRICE = 0.003
"""What share of receivers a word must explain, in a rule that does not explain all."""
_SLACK = (0.5, 1.0, 2.0, 4.0)
"""Kinds that matter less than so many words are worth need not be told apart from others."""
_NOTHING = 1e-12


@dataclass(frozen=True)
class Found:
    """A rule and how often it selects whom the network attends to most."""

    rule: Rule
    agreement: float

    def order(self, price: float) -> tuple[float, int, bool, str]:
        """Best for its words first, then shortest; of these, one that selects by position."""
        by_position = str(self.rule.select) == "minimum(other.idx)"
        worth = self.agreement - price * self.rule.length
        return (-round(worth, 4), self.rule.length, not by_position, str(self.rule))


@dataclass(frozen=True)
class _Candidate:
    """A rule before it is put into words which nodes it lets pass and which it is about."""

    agreement: float
    select: Selection
    pair: tuple[Expression, ...]
    otherwise: Default
    wanted: Float[np.ndarray, "kinds"]
    """By kind of senders, what share of receivers attends to one of them."""
    spurned: Float[np.ndarray, "kinds"]
    """And passes by one of them, that would have been selected."""
    lets_pass: bool
    """Whether kinds that nobody needs pass."""
    gain: Float[np.ndarray, "kinds"]
    """By kind of receivers, what it gains over the default."""

    @property
    def order(self) -> tuple[float, int, bool]:
        """Best first, then shortest; of these, one that follows no pointer."""
        asked = (self.select.expression, *self.pair)
        words = sum(isinstance(part, Name) for e in asked for part in e.walk())
        return (-round(self.agreement, 5), words, isinstance(self.otherwise, Expression))

    def found(self, problem: "Problem", price: float) -> Found:
        """In words: those that are best for their number."""
        slacks = [share * price for share in _SLACK] if price else [0.0]
        tried = [said for slack in slacks for said in self._said(problem, slack)]
        tried = tried or list(self._said(problem, 0.0))  # where all matters less than a word
        return min(tried, key=lambda found: found.order(price))

    def _said(self, problem: "Problem", slack: float) -> Iterator[Found]:
        """Kinds that matter to no more than so many receivers may go either way."""
        surplus = self.wanted - self.spurned
        eligible = surplus >= 0 if self.lets_pass and not slack else surplus > slack
        if not eligible.any():
            return
        least = max(slack, _NOTHING)
        selects = self.gain > least
        if not selects.any():
            return
        receivers = condition(problem.kinds, selects, self.gain < -least)
        of_receiver = [] if receivers is None else [receivers]
        spurned = [surplus < -slack] if slack else [~eligible & (self.spurned > 0), ~eligible]
        for fails in spurned:
            senders = condition(problem.kinds, eligible, fails)
            of_sender = [] if senders is None else [senders.replaced(Side.SELF, Side.OTHER)]
            rule = Rule(self.select, (*of_sender, *self.pair, *of_receiver), self.otherwise)
            yield Found(rule, problem.agreement(rule))


@dataclass(frozen=True)
class Problem:
    """What is to be explained: whom every receiver attends to most."""

    scenes: Scenes
    attended: Int[np.ndarray, "scenes nodes"]
    kinds: Kinds
    defaults: tuple[Default, ...]

    @staticmethod
    def of(scenes: Scenes, attended: Int[np.ndarray, "scenes nodes"]) -> "Problem":
        """With every default that the vocabulary has."""
        kinds = Kinds.of(scenes)
        pointers = [Name(Side.SELF, pointer) for pointer in scenes.words.pointers]
        both = _of_two(pointers, kinds, scenes, attended)
        return Problem(scenes, attended, kinds, (self, *pointers, *both))

    def agreement(self, rule: Rule) -> float:
        """The share of receivers for whom a rule is right."""
        return float(np.mean(rule.senders(self.scenes) == self.attended))


def search(scenes: Scenes, attended: Int[np.ndarray, "scenes nodes"]) -> list[Found]:
    """The best rules, best first and of equals the shortest first."""
    problem = Problem.of(scenes, attended)
    literals = list(_telling(problem))
    singles = list(_distinct(problem, _single_keys(scenes)))
    best: list[_Candidate] = []
    stages = (
        lambda: (singles, _conjunctions(literals, 1)),
        lambda: (singles, _conjunctions(literals, 2)),
        lambda: (list(_distinct(problem, _double_keys(scenes))), _leading(best)),
    )
    for stage in stages:
        keys, masks = stage()
        passing = {mask: _passing(scenes, mask) for mask in masks}
        for key in keys:
            best = _best([*best, *_tried(problem, key, passing)])
            if len(keys) > len(singles) and best and best[0].agreement >= ENOUGH:
                break  # other keys of two numbers are no shorter
        if best and best[0].agreement >= ENOUGH:
            return _told(problem, best, 0.0)
    found = _told(problem, best, PRICE)
    finer = [polished(f.rule, scenes, attended) for f in found]
    found += [Found(rule, problem.agreement(rule)) for rule in finer if rule is not None]
    exact = any(f.agreement >= ENOUGH for f in found)
    return sorted(found, key=lambda f: f.order(0.0 if exact else PRICE))


def _of_two(
    pointers: Sequence[Name],
    kinds: Kinds,
    scenes: Scenes,
    attended: Int[np.ndarray, "scenes nodes"],
) -> Iterator[Where]:
    """The two pointers that together say most about whom nodes attend to, one for some kinds."""
    right = {
        pointer: np.bincount(
            kinds.of_node.ravel(),
            (default_senders(pointer, scenes) == attended).ravel(),
            len(kinds.table),
        )
        for pointer in pointers
    }
    pairs = list(combinations(pointers, 2))
    if pairs:
        a, b = max(pairs, key=lambda pair: np.maximum(right[pair[0]], right[pair[1]]).sum())
        first, second = right[a] > right[b], right[a] < right[b]
        if first.any() and second.any() and (flag := condition(kinds, first, second)) is not None:
            yield Where(flag, a, b)


def _best(candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Each once, best first."""
    unlike: dict[object, _Candidate] = {}
    for c in sorted(candidates, key=lambda c: c.order):
        unlike.setdefault((c.select, c.pair, str(c.otherwise)), c)
    return list(unlike.values())[:KEPT]


def _told(problem: Problem, best: Sequence[_Candidate], price: float) -> list[Found]:
    """As rules: those that are as good as the best, and some more."""
    said = (c.found(problem, price) for c in best[:TOLD])
    return sorted(said, key=lambda f: f.order(price))


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


def _leading(best: Sequence[_Candidate]) -> list[tuple[Expression, ...]]:
    return list(dict.fromkeys([(), *(c.pair for c in best)]))[:BEAM]


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
) -> Iterator[_Candidate]:
    """What a key makes of every mask and default."""
    scenes, kinds, attended = problem.scenes, problem.kinds, problem.attended
    count = len(kinds.table)
    order = _order(problem, key)
    kind = kinds.of_node[np.arange(len(order))[:, None, None], order]
    before = np.cumsum(order == attended[..., None], axis=-1) == 0
    attended_kind = np.take_along_axis(kinds.of_node, attended, axis=-1)
    defaults = {d: default_senders(d, scenes) for d in problem.defaults}
    for mask, passes in passing.items():
        passes = np.take_along_axis(passes, order, -1)
        chosen = _at(passes, before.sum(-1))  # whether the one attended to passes
        for default, usual in defaults.items():
            base = usual == attended
            for selects in (chosen & ~base, chosen):
                wanted = np.bincount(attended_kind[selects], minlength=count)
                spurned = np.bincount(kind[passes & before & selects[..., None]], minlength=count)
                for lets_pass in (False, True):
                    eligible = wanted >= spurned if lets_pass else wanted > spurned
                    who = passes & eligible[kind]
                    first = np.take_along_axis(order, who.argmax(-1)[..., None], -1)[..., 0]
                    change = np.where(who.any(-1), (first == attended) * 1.0 - base, 0)
                    gain = np.bincount(kinds.of_node.ravel(), change.ravel(), count) / base.size
                    agreement = float(base.mean() + np.maximum(gain, 0).sum())
                    if (gain > 0).any():
                        share = wanted / base.size, spurned / base.size
                        yield _Candidate(agreement, key, mask, default, *share, lets_pass, gain)


def _at(flags: Bool[np.ndarray, "... senders"], place: Int[np.ndarray, "..."]) -> np.ndarray:
    last = flags.shape[-1] - 1
    return np.take_along_axis(flags, np.minimum(place, last)[..., None], -1)[..., 0]
