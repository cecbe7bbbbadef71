"""What was found about one network, and the verdict that follows from it.

An explanation is a claim only if it was proved: the network must keep its accuracy when it is made
to attend as the explanation says, on graphs that the explanation was not found on. And it must have
something to lose: where uniform attention does as well, nothing can be proved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from mechgap.measures.causal import Foil

SHARP = 0.1
"""Attention that is less sharp is almost uniform: there is nothing to explain."""
MATTERS = 0.05
"""What uniform attention must cost, for forcing to prove anything."""
MARGIN = 0.02
"""What forcing an explanation may cost."""
AGREES = 0.8
"""For what share of receivers a rule must select whom the network attends to most."""
EXPLAINS = 0.8
"""What share of the divergence from uniform attention a soft form must explain."""
SAME = 0.995
"""A rule is a known mechanism's if it selects alike in such a share of the rows it is about."""
OWN = "a program of its own"
SOFT = 0.9
"""Attention is soft if the selected sender gets less."""


@dataclass(frozen=True)
class Weighted:
    """A word of a soft form."""

    word: str
    receivers: str
    weight: float


@dataclass(frozen=True)
class PhaseFound:
    """What one message-passing step of every hint attends by. Shares are by set of graphs."""

    rule: str
    words: int
    """How many the rule has."""
    alike: int
    """How many rules were found that agree as often; they cannot be told apart."""
    agreement: Mapping[str, float]
    """Share of receivers for whom the rule selects whom the network attends to most."""
    on_selected: float
    """Attention on whom the rule selects, on held-out graphs."""
    softly: Mapping[str, float]
    """By kind of receivers: the logit of the selected sender above the others."""
    rule_explains: Mapping[str, float]
    """Share of the divergence from uniform that the rule explains with these logits."""
    soft: tuple[Weighted, ...]
    """The soft form."""
    path: tuple[float, ...]
    """Share that soft forms of 1, 2, … words explain of held-out graphs."""
    soft_explains: Mapping[str, float]
    by_receivers: Mapping[str, float]
    """The same of the soft form, on held-out graphs, by kind of receivers."""
    sharpness: float
    same_as: Mapping[str, float]
    """By known mechanism: share of the rows it is about in which the rule selects alike."""
    like: Mapping[str, float]
    """The same, or whom another correct run could have selected."""
    everywhere: Mapping[str, float]
    """Share of all rows in which the rule selects as a known mechanism does."""


@dataclass(frozen=True)
class Forced:
    """Accuracies under other attention than its own, on one set of graphs."""

    graphs: int
    nodes: int
    own: float
    floor: float
    """Share of nodes that are right whatever is attended to."""
    hardened: float
    uniform: float
    rule: float
    rule_softly: float
    soft: float
    mechanisms: Mapping[str, float]


@dataclass(frozen=True)
class ErrorsPredicted:
    """Which nodes the network gets wrong, and which ones it gets wrong under the soft form."""

    wrong: float
    """Share of nodes that the network gets wrong: what a guess would be right about."""
    precision: float
    recall: float


@dataclass(frozen=True)
class Explanation:
    """What one network runs, as far as words of the language tell."""

    phases: tuple[PhaseFound, ...]
    heads: Mapping[str, tuple[PhaseFound, ...]]
    """Where there are several: what each attends by. All else is of their mean."""
    program: str | None
    """Text of the whole program; None where no step of the trace follows from the rules."""
    unclaimed: tuple[str, ...]
    """Hints that the program does not explain."""
    forced: Mapping[str, Forced]
    parts: tuple[Foil, ...]
    """Which parts of the program's selections the network uses."""
    errors: Mapping[str, ErrorsPredicted]
    seconds: float
    answers: Mapping[str, float] = field(default_factory=dict)
    """Of the program, run by itself without any network: the share of outputs that are right."""

    ALSO_TOLD: ClassVar = ("claim", "in_short", "verdict")

    @property
    def _nearest(self) -> list[str]:
        """Known mechanisms, the one first that selects alike in most rows."""
        common = set.intersection(*({*phase.like} for phase in self.phases))
        return sorted(common, key=lambda n: -min(p.everywhere[n] for p in self.phases))

    @property
    def runs(self) -> str:
        """The known mechanism that the rules are, or `a program of its own`."""
        nearest = self._nearest
        for name in nearest:
            if all(phase.same_as[name] >= SAME for phase in self.phases):
                return name
        for name in nearest:
            if all(phase.like[name] >= SAME for phase in self.phases):
                return f"{name} with ties broken otherwise"
        return OWN

    @property
    def in_short(self) -> str:
        """What there is to count in a population."""
        match self.claim:
            case "program":
                softly = ", softly" if self._softly else ""
                slips = ", with slips" if self._slips else ""
                return f"runs {self.runs}{softly}{slips}"
            case "soft":
                return "attends by words, softly"
            case "refused":
                return "nothing to explain"
        return "nothing explains it"

    @property
    def _softly(self) -> bool:
        return any(phase.on_selected < SOFT for phase in self.phases)

    @property
    def _slips(self) -> bool:
        """Whether it answers more when it is made to attend as it mostly does."""
        return any(f.rule - f.own > MARGIN for f in self.forced.values())

    @property
    def claim(self) -> str:
        """`program`, `soft`, `none` (nothing explains it), or `refused` (nothing to explain)."""
        if min(phase.sharpness for phase in self.phases) < SHARP or not self._matters:
            return "refused"
        if self._agrees and self._kept("rule"):
            return "program"
        if self._explains and self._kept("soft"):
            return "soft"
        return "none"

    @property
    def _matters(self) -> bool:
        return all(f.own - max(f.uniform, f.floor) >= MATTERS for f in self.forced.values())

    @property
    def _agrees(self) -> bool:
        return all(share >= AGREES for p in self.phases for share in p.agreement.values())

    @property
    def _explains(self) -> bool:
        return all(share >= EXPLAINS for p in self.phases for share in p.soft_explains.values())

    def _kept(self, under: str) -> bool:
        return all(f.own - getattr(f, under) <= MARGIN for f in self.forced.values())

    @property
    def verdict(self) -> str:
        """In words, from these numbers and no others."""
        rules = "; then ".join(phase.rule for phase in self.phases)
        worst = min(min(phase.agreement.values()) for phase in self.phases)
        soft = min(phase.soft_explains.get("test", 0.0) for phase in self.phases)
        words = max(len(phase.soft) for phase in self.phases)
        test = self.forced["test"]
        match self.claim:
            case "refused":
                return self._refusal
            case "program":
                return (
                    f"{self.in_short}: {rules}. It attends most to whom this selects in "
                    f"{worst:.0%} of rows or more, and made to attend so it has {test.rule:.1%} "
                    f"of test outputs, by itself {test.own:.1%}.{self._likeness}"
                    f"{self._solves}{self._idle}"
                )
            case "soft":
                return (
                    f"attends by {words} words, softly, which explain {soft:.0%} of its attention; "
                    f"made to attend by them it has {test.soft:.1%} of test outputs, by itself "
                    f"{test.own:.1%}. No rule does as well: the nearest, {rules}, has "
                    f"{test.rule:.1%}"
                )
        return (
            f"no program of up to {words} words explains it. The best soft form explains "
            f"{soft:.0%} of its attention and has {test.soft:.1%} of test outputs when it "
            f"is forced, the network itself {test.own:.1%}; the nearest rule is {rules}"
        )

    @property
    def _likeness(self) -> str:
        """Of a program of its own: how much it is like one that is known."""
        if self.runs != OWN or not self._nearest:
            return ""
        name = self._nearest[0]
        shares = " / ".join(f"{phase.like[name]:.1%}" for phase in self.phases)
        return f" Of the rows that {name} updates it selects rightly in {shares}."

    @property
    def _solves(self) -> str:
        """What the program answers without the network."""
        if "test" not in self.answers:
            return ""
        return f" Run by itself, without a network, the program has {self.answers['test']:.1%}."

    @property
    def _refusal(self) -> str:
        sharpness = min(phase.sharpness for phase in self.phases)
        if sharpness < SHARP:
            return f"nothing to explain: attention is almost uniform (sharpness {sharpness:.3f})"
        least = min(self.forced.values(), key=lambda f: f.own - max(f.uniform, f.floor))
        return (
            f"nothing can be proved: of outputs {least.own:.1%} are right by its own attention, "
            f"{least.uniform:.1%} by uniform, {least.floor:.1%} by any"
        )

    @property
    def _idle(self) -> str:
        """Which parts of the program the network does not use."""
        several = len(self.phases) > 1
        idle = [
            f"{p.part} of phase {p.phase}" if several else p.part
            for p in self.parts
            if p.verdict == "idle"
        ]
        return f" Of the program it does not use: {', '.join(idle)}." if idle else ""
