"""What was found about one network, and the verdict that follows from it.

An explanation is a claim only if it was proved: the network must keep its accuracy when it is made
to attend as the explanation says, on graphs that the explanation was not found on. And it must have
something to lose: where uniform attention does as well, nothing can be proved.

A network that has once taken another way than the true trace is judged from its own state: a rule
must tell from the trace's state, or else from the network's own, whom it attends to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import ClassVar

from mechgap.decompiler.evidence import ErrorsPredicted, Forced, FromOwnState, PhaseFound
from mechgap.decompiler.graphs import HELD_OUT, TEST
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
                return f"runs {self.runs}{self._manner(HELD_OUT, TEST)}"
            case "soft":
                return "attends by words, softly"
            case "small":
                return f"runs {self.runs} on small graphs{self._manner(HELD_OUT)}"
            case "refused":
                return "nothing to explain"
        return "nothing explains it"

    @property
    def claim(self) -> str:
        """What can be claimed.

        `program`; `soft`; `small`: a program on graphs of the size that it was found on, and not on
        larger ones; `none`: nothing explains it; `refused`: there is nothing to explain.
        """
        if min(phase.sharpness for phase in self.phases) < SHARP or not self._matters:
            return "refused"
        if self._runs_on(HELD_OUT, TEST):
            return "program"
        if self._attends_by_words:
            return "soft"
        return "small" if self._runs_on(HELD_OUT) else "none"

    @property
    def _matters(self) -> bool:
        return all(f.own - max(f.uniform, f.floor) >= MATTERS for f in self.forced.values())

    def _runs_on(self, *sets: str) -> bool:
        """Whether the rules tell whom it attends to, and it keeps its accuracy under them."""
        kept = all(self.forced[which].own - self.forced[which].rule <= MARGIN for which in sets)
        return kept and self._telling(*sets) is not None

    def told(self, *sets: str, own: bool = False) -> float:
        """The share of rows whose largest attention the rules tell, from the trace's state or from
        the network's own: in the phase, and on the set of graphs, of which they tell least. NaN
        where a network says no hints."""
        phases = self._from(own)
        shares = [phase.agreement[which] for phase in phases for which in sets]
        return min(shares, default=float("nan"))

    def _telling(self, *sets: str) -> bool | None:
        """Whether it is the network's own state from which the rules tell whom it attends to, and
        not the trace's; None if they tell it from neither."""
        return next((own for own in (False, True) if self.told(*sets, own=own) >= AGREES), None)

    def _from(self, own: bool) -> Sequence[PhaseFound | FromOwnState]:
        """The shares of every phase, from the trace's state or from the network's own."""
        if not own:
            return self.phases
        return [p.from_own_state for p in self.phases if p.from_own_state is not None]

    @property
    def _attends_by_words(self) -> bool:
        """Whether the soft form explains its attention from either state, and it keeps its accuracy
        under it."""
        kept = all(f.own - f.soft <= MARGIN for f in self.forced.values())
        explained = [
            min(share for phase in phases for share in phase.soft_explains.values())
            for phases in (self._from(own=False), self._from(own=True))
            if phases
        ]
        return kept and max(explained) >= EXPLAINS

    def _manner(self, *sets: str) -> str:
        """How it runs its program on some sets of graphs."""
        out_of_step = bool(self._telling(*sets))
        softly = any(phase.on_selected < SOFT for phase in self._from(out_of_step))
        # Whether it answers more when it is made to attend as it mostly does.
        slips = any(self.forced[w].rule - self.forced[w].own > MARGIN for w in sets)
        return ", softly" * softly + ", with slips" * slips + ", out of step" * out_of_step

    @property
    def verdict(self) -> str:
        """In words, from these numbers and no others."""
        rules = "; then ".join(phase.rule for phase in self.phases)
        test = self.forced[TEST]
        soft = min(phase.soft_explains.get(TEST, 0.0) for phase in self.phases)
        words = max(len(phase.soft) for phase in self.phases)
        match self.claim:
            case "refused":
                return self._refusal
            case "program":
                return (
                    f"{self.in_short}: {rules}. It {self._selects(HELD_OUT, TEST)}, and made to "
                    f"attend so it has {test.rule:.1%} of test outputs, by itself {test.own:.1%}."
                    f"{self._likeness}{self._solves}{self._idle}"
                )
            case "soft":
                return (
                    f"attends by {words} words, softly, which explain {soft:.0%} of its attention; "
                    f"made to attend by them it has {test.soft:.1%} of test outputs, by itself "
                    f"{test.own:.1%}. No rule does as well: the nearest, {rules}, has "
                    f"{test.rule:.1%}"
                )
            case "small":
                held = self.forced[HELD_OUT]
                return (
                    f"{self.in_short}: {rules}. On graphs of {held.nodes} nodes it "
                    f"{self._selects(HELD_OUT)}, and made to attend so it has {held.rule:.1%} of "
                    f"outputs, by itself {held.own:.1%}. Not on graphs of {test.nodes} nodes: "
                    f"there the rule tells {self._told}, and made to attend so it has "
                    f"{test.rule:.1%} of outputs, by itself {test.own:.1%}."
                    f"{self._likeness}{self._solves}{self._idle}"
                )
        return (
            f"no program of up to {words} words explains it. The best soft form explains "
            f"{soft:.0%} of its attention and has {test.soft:.1%} of test outputs when it "
            f"is forced, the network itself {test.own:.1%}; the nearest rule, which tells "
            f"{self._told}, is {rules}"
        )

    def _selects(self, *sets: str) -> str:
        """How often it attends most to whom the rules select, where they tell it."""
        out_of_step = bool(self._telling(*sets))
        share = self.told(*sets, own=out_of_step)
        attends = f"attends most to whom this selects in {share:.0%} of rows or more"
        if not out_of_step:
            return attends
        return (
            f"{attends}, from its own state (from the true trace's, with which it is out of step, "
            f"in {self.told(*sets):.0%})"
        )

    @property
    def _told(self) -> str:
        """How much of the largest attention on test graphs the rules tell, from either state."""
        share = self.told(TEST, own=True)
        from_own = "" if isnan(share) else f" ({share:.0%} from its own state)"
        return f"{self.told(TEST):.0%} of test rows{from_own}"

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
