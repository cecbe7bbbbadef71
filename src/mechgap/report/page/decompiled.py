"""The page's section on what networks run: their rules beside the nearest known mechanism's."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import reduce
from html import escape

from mechgap.decompiler.evidence import PhaseFound
from mechgap.decompiler.explanation import SAME, Explanation
from mechgap.decompiler.population import DecompiledRun
from mechgap.measures.results import Results
from mechgap.programs.expressions import Add, And, Expression, Name, Where
from mechgap.programs.phases import Phase
from mechgap.programs.program import Program
from mechgap.report.attends_by import caption, panels
from mechgap.report.measures import percent
from mechgap.report.page.tables import table

LONG = 150
"""Characters of a rule that is not shown at once."""
MOST_OPEN = 4
"""Seeds that are shown at once; of more, the first is."""
_CLAUSE = re.compile(r"(?:^|, )(select|mask|otherwise)=")
_WORD = re.compile(r"~?equal\([^()]*\)|~?[\w.]+|\s+|[^\w\s]")
"""What is marked or not as a whole; `equal(…, …)` is one flag."""
_UNDER = {"own": "own", "hardened": "hardened", "rule": "rule", "rule_softly": "rule, softly",
          "soft": "soft form", "uniform": "uniform", "floor": "floor"}  # fmt: skip
_DERIVED = {
    "was_": "was_… is a flag one step ago",
    "level": "level is the step in which a node was reached",
    "met_": "met_0 is whom a node attended to in phase 0",
    "saw_": "saw_0_… is what that node was",
}


def decompiled(run: DecompiledRun, known: Sequence[Program]) -> str:
    """What the seeds run, beside the mechanisms that are known."""
    count = len(run.seeds)
    short = "".join(
        f"<li>{n} of {count} seed{'s' * (count > 1)}: <strong>{escape(what)}</strong></li>"
        for what, n in run.programs.items()
    )
    seeds = "".join(
        _seed(seed, explanation, known, k == 0 or count <= MOST_OPEN)
        for k, (seed, explanation) in enumerate(run.seeds.items())
    )
    return (
        "<p>For each network, the rule of the language that selects whom it attends to, found on "
        "some graphs and checked on others; where the network keeps its accuracy when it is made "
        f"to attend so, that is what it runs.</p><ul>{short}</ul>{seeds}{_note(run)}"
        f"{_forced(run)}{_chart(run)}"
    )


def _seed(seed: int, found: Explanation, known: Sequence[Program], shown: bool) -> str:
    mechanism = nearest(found, known)
    rules = "; then ".join(phase.rule for phase in found.phases)
    verdict = found.verdict
    if len(rules) > LONG:
        several = "s" * (len(found.phases) > 1)
        verdict = verdict.replace(rules, f"the rule{several} below")
    phases = "".join(_phase(seed, found, k, mechanism) for k in range(len(found.phases)))
    program = ""
    if found.program is not None:
        program = (
            "<details><summary>the whole program that follows from it</summary>"
            f"<pre tabindex='0'>{escape(found.program)}</pre></details>"
        )
    return (
        f'<details class="seed"{" open" * shown}><summary>seed {seed}: {escape(found.in_short)}'
        f'</summary><p class="verdict">{escape(verdict[0].upper() + verdict[1:])}</p>'
        f"{_heads(found)}{phases}{program}</details>"
    )


def _heads(found: Explanation) -> str:
    """Where there are several: what each attends by, as far as one rule tells."""
    if not found.heads:
        return ""
    rows = [
        (f"head {head}" + (f", phase {k}" if len(phases) > 1 else ""),
         [phase.rule, *(percent([share]) for share in phase.agreement.values())])
        for head, phases in found.heads.items()
        for k, phase in enumerate(phases)
    ]  # fmt: skip
    sets = [f"agrees, {which}" for which in next(iter(found.heads.values()))[0].agreement]
    return (
        f"<p>What follows is of the mean of its {len(found.heads)} heads.</p><details>"
        f"<summary>each head by itself</summary>{table(['', 'rule', *sets], rows)}</details>"
    )


def clusters_named(results: Results, run: DecompiledRun | None) -> str:
    """What the seeds of each cluster of attention run, where that was found."""
    if run is None:
        return ""
    clusters: dict[int, list[str]] = {}
    for seed, label in zip(results.seeds, results.solutions.labels.tolist(), strict=True):
        if seed in run.seeds:
            clusters.setdefault(label, []).append(run.seeds[seed].in_short)
    named = [
        f"cluster {label}: "
        + "; ".join(f"{n} × {what}" for what, n in Counter(programs).most_common())
        for label, programs in sorted(clusters.items())
    ]
    return f'<p class="quiet">What they run, {escape(". ".join(named))}.</p>' if named else ""


def nearest(found: Explanation, known: Sequence[Program]) -> Program | None:
    """The mechanism that the rules are; if they are none, the one they select like most often."""
    names = set.intersection(*({*phase.like} for phase in found.phases))
    comparable = [p for p in known if p.name in names and len(p.phases) == len(found.phases)]

    def near(program: Program) -> tuple[bool, bool, float]:
        name, phases = program.name, found.phases
        return (
            all(phase.same_as[name] >= SAME for phase in phases),
            all(phase.like[name] >= SAME for phase in phases),
            min(phase.everywhere[name] for phase in phases),
        )

    return max(comparable, key=near, default=None)


def _phase(seed: int, found: Explanation, number: int, mechanism: Program | None) -> str:
    phase = found.phases[number]
    which = f"phase {number}" if len(found.phases) > 1 else ""
    ours = clauses(phase.rule)
    theirs = {} if mechanism is None else selection(mechanism.phases[number], ours)
    sides = [(f"seed {seed}", marked(ours, theirs, "ins") if theirs else marked(ours, ours, "ins"))]
    if mechanism is not None:
        sides.append((f"{mechanism.name}, compiled", marked(theirs, ours, "del")))
    shown = "".join(
        f'<div><h4>{escape(", ".join(filter(None, (who, which))))}</h4><div class="rule">{text}'
        "</div></div>"
        for who, text in sides
    )
    body = f'<div class="beside">{shown}</div>'
    if len(phase.rule) > LONG:
        said = f"{which}: a rule" if which else "the rule"
        body = f"<details><summary>{escape(said)} of {phase.words} words</summary>{body}</details>"
    return f'<div class="phase">{body}<p class="quiet">{escape(_shares(phase, which))}</p></div>'


def _shares(phase: PhaseFound, which: str) -> str:
    """How much of the attention rule and soft form explain."""
    agrees, explains = _by_set(phase.agreement), _by_set(phase.soft_explains)
    own = phase.from_own_state
    from_own = f"; from its own state for {_by_set(own.agreement)}" if own is not None else ""
    words = f"{len(phase.soft)} word{'s' * (len(phase.soft) != 1)}"
    alike = f" {phase.alike} rules, this one among them, agree as often." * (phase.alike > 1)
    begin = f"{which.capitalize()}: the" if which else "The"
    return (
        f"{begin} rule selects whom the network attends to most for {agrees} of "
        f"receivers{from_own}. The soft form, of {words}, explains {explains} of the attention."
        f"{alike}"
    )


def _by_set(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{percent([share])} ({which})" for which, share in shares.items())


def clauses(rule: str) -> dict[str, str]:
    """A rule's parts by name.

    >>> clauses("select=minimum(other.idx), mask=equal(self.pi, other.idx) & other.visit")
    {'select': 'minimum(other.idx)', 'mask': 'equal(self.pi, other.idx) & other.visit'}
    """
    _, *parts = _CLAUSE.split(rule)
    return dict(zip(parts[::2], parts[1::2], strict=True)) or {"rule": rule}


def selection(phase: Phase, like: Mapping[str, str]) -> dict[str, str]:
    """A phase's selection as rules are told: what is done where nobody passes is not said if that
    is to attend to oneself. What may stand in any order stands as in `like`."""
    key = _ordered(phase.select.expression, like.get("select", ""))
    found = {"select": f"{phase.select.extreme.value}({key})"}
    if phase.mask is not None:
        found["mask"] = _ordered(phase.mask, like.get("mask", ""))
    if isinstance(phase.otherwise, Name | Where):
        found["otherwise"] = str(phase.otherwise)
    return found


def _ordered(expression: Expression, like: str) -> str:
    """A sum or conjunction, its parts in the order in which a text has them."""
    if not isinstance(expression, And | Add):
        return str(expression)
    kind = type(expression)

    def place(part: Expression) -> tuple[bool, int]:
        found = like.find(str(part))
        return found < 0, found

    return str(reduce(kind, sorted(_operands(expression, kind), key=place)))


def _operands(expression: Expression, kind: type[And] | type[Add]) -> Iterator[Expression]:
    if isinstance(expression, kind):
        yield from _operands(expression.left, kind)
        yield from _operands(expression.right, kind)
    else:
        yield expression


def marked(these: Mapping[str, str], others: Mapping[str, str], tag: str) -> str:
    """Clauses as HTML, a line each; words that the others have not are in such a tag.

    >>> marked({"select": "minimum(other.idx)"}, {"select": "maximum(other.idx)"}, "ins")
    '<code>select=<ins>minimum</ins>(other.idx)</code>'
    """
    lines = []
    for name, text in these.items():
        if name in others:
            lines.append(f"<code>{escape(name)}={_words(text, others[name], tag)}</code>")
        else:
            lines.append(f"<code><{tag}>{escape(f'{name}={text}')}</{tag}></code>")
    return "".join(lines)


def _words(text: str, other: str, tag: str) -> str:
    words, others = _WORD.findall(text), _WORD.findall(other)
    shown = []
    matcher = SequenceMatcher(None, words, others, autojunk=False)
    for change, start, end, _, _ in matcher.get_opcodes():
        piece = "".join(words[start:end])
        bare = piece.strip()
        if change == "equal" or not bare:
            shown.append(escape(piece))
        else:
            before, after = piece.split(bare, 1)
            shown.append(f"{before}<{tag}>{escape(bare)}</{tag}>{after}")
    return "".join(shown)


def _note(run: DecompiledRun) -> str:
    """How to read the rules."""
    phases = [phase for found in run.seeds.values() for phase in found.phases]
    words = " ".join(text for p in phases for text in (p.rule, *(w.word for w in p.soft)))
    derived = [said for word, said in _DERIVED.items() if f".{word}" in words]
    also = f" Of words that follow from the trace: {'; '.join(derived)}." if derived else ""
    return (
        '<p class="quiet">Marked: <ins>what only the network\'s rule has</ins>, <del>what only '
        "the mechanism's has</del>. Where nobody passes the mask and nothing else is said, a node "
        f"attends to itself.{escape(also)} Of every seed: the {escape(run.parameters)} "
        "parameters.</p>"
    )


def _forced(run: DecompiledRun) -> str:
    """Accuracies, by what networks are made to attend to: a table for each set of graphs."""
    found = [explanation.forced for explanation in run.seeds.values()]
    shown = ""
    for which, first in found[0].items():
        rows = [
            (f"seed {seed}", [percent([getattr(forced, key)]) for key in _UNDER]
             + [percent([forced.mechanisms.get(name)]) for name in first.mechanisms])
            for seed, forced in ((s, e.forced[which]) for s, e in run.seeds.items()
                                 if which in e.forced)
        ]  # fmt: skip
        as_known = [f"as {name}" for name in first.mechanisms]
        shown += table([which, *_UNDER.values(), *as_known], rows)
    graphs = "; ".join(f"{which}: {f.graphs} of {f.nodes} nodes" for which, f in found[0].items())
    note = (
        f"Outputs that are right when a network attends in such a way. Graphs, {graphs}. Hardened: "
        "only to whom it attends to most. Rule, softly: with the logits that fit best. Soft form: "
        "a softmax of weighted words. Floor: right whatever is attended to."
    )
    return f'<h3>Made to attend so</h3>{shown}<p class="quiet">{escape(note)}</p>'


def _chart(run: DecompiledRun) -> str:
    drawn = panels(run)
    if not drawn:
        return ""
    return (
        f'<h3>What it attends by</h3><figure><div class="plot" id="attends"></div>'
        f"<figcaption>{escape(caption(drawn))}</figcaption></figure>"
    )
