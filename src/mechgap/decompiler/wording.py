"""A rule in words: which nodes it lets pass, and which nodes it is about."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechgap.decompiler.kinds import condition
from mechgap.decompiler.problem import Candidate, Problem
from mechgap.decompiler.rules import Default, Rule
from mechgap.decompiler.words import length
from mechgap.decompiler.worth import worthwhile
from mechgap.programs.expressions import Expression, Name, Names, Side, Where, edge, equal
from mechgap.programs.phases import Extreme, Selection

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


def in_words(one: Candidate, problem: Problem, price: float) -> Found:
    """A candidate as a rule: exactly if words have no price, else in words that are worth it."""
    said = list(_worth_its_words(one, problem, price)) if price else []
    rules = said or list(_exactly(one, problem))
    found = [Found(rule, problem.agreement(rule)) for rule in rules]
    return min(found, key=lambda f: f.order(price))


def by_default(problem: Problem) -> Found:
    """The best rule by which all nodes do the same: attend to themselves, or follow a pointer."""
    select = Selection(Extreme.MINIMUM, Name(Side.OTHER, "idx"))
    rules = [
        Rule(select, (edge.loop,))
        if isinstance(default, Names)
        else Rule(select, (equal(default, Name(Side.OTHER, "idx")),), default)
        for default in problem.defaults
        if not isinstance(default, Where)
    ]
    found = [Found(rule, problem.agreement(rule)) for rule in rules]
    return min(found, key=lambda f: f.order(0.0))


def _exactly(one: Candidate, problem: Problem) -> Iterator[Rule]:
    """Every kind as it was counted; kinds that nobody needs may pass or not."""
    surplus = one.wanted - one.spurned
    eligible = surplus >= 0 if one.lets_pass else surplus > 0
    receivers = condition(problem.kinds, one.gain > _NOTHING, one.gain < -_NOTHING)
    for fails in (~eligible & (one.spurned > 0), ~eligible):
        yield _rule(one, condition(problem.kinds, eligible, fails), receivers)


def _worth_its_words(one: Candidate, problem: Problem, price: float) -> Iterator[Rule]:
    """Senders first; then by turns receivers and default, each given the other."""
    senders = worthwhile(problem.kinds, one.wanted - one.spurned, price)
    if senders is None:
        return
    anybody = _rule(one, senders.said, None)
    default: Default = one.otherwise
    for _ in range(2):
        selected = anybody.eligible(problem.scenes).any(-1)
        right = (anybody.senders(problem.scenes) == problem.attended) * 1.0
        gain = problem.by_kind(np.where(selected, right - problem.right(default), 0.0))
        receivers = worthwhile(problem.kinds, gain, price)
        if receivers is None:
            return
        rule = replace(_rule(one, senders.said, receivers.said), otherwise=default)
        yield rule
        default = _default(rule, problem, price)


def _default(rule: Rule, problem: Problem, price: float) -> Default:
    """Where nobody is selected: one default for all, or for some kinds a pointer in its place."""
    nobody = ~rule.eligible(problem.scenes).any(-1)
    simple = [d for d in problem.defaults if not isinstance(d, Where)]
    right = [problem.by_kind(np.where(nobody, problem.right(d), 0.0)) for d in simple]
    cost = [price * length(d) if isinstance(d, Expression) else 0.0 for d in simple]
    usual = max(range(len(simple)), key=lambda i: right[i].sum() - cost[i])
    best, gained = simple[usual], 0.0
    for i, other in enumerate(simple):
        if i == usual:
            continue
        found = worthwhile(problem.kinds, right[i] - right[usual], price)
        worth = 0.0 if found is None else found.worth - cost[i]
        if found is not None and found.said is not None and worth > gained:
            best, gained = Where(found.said, _pointer(other), _pointer(simple[usual])), worth
    return best


def _pointer(default: Default) -> Expression:
    """A default as the value of a pointer: oneself is one's own index."""
    return default if isinstance(default, Expression) else Name(Side.SELF, "idx")


def _rule(one: Candidate, senders: Expression | None, receivers: Expression | None) -> Rule:
    of_sender = [] if senders is None else [senders.replaced(Side.SELF, Side.OTHER)]
    of_receiver = [] if receivers is None else [receivers]
    return Rule(one.select, (*of_sender, *one.pair, *of_receiver), one.otherwise)
