"""What the words on the page mean, as `docs/glossary.md` says it: one hover away."""

import re
from collections.abc import Mapping
from html import escape

_ATTENTION = (
    "Attention that is not where the mechanism has it. On updated nodes, ties allowed: misplaced. "
    "Over all nodes and steps: tv, the total variation distance to α*, which is the paper's "
    "measure in one of its forms."
)
DEFINITIONS: Mapping[str, str] = {
    "foil": "A sender that is wrong in one part of the selection.",
    "floor": "Nodes that are answered rightly whatever is attended to.",
    "hardened": "Every node attends only to whom it attends to most.",
    "by chance": "What attending to a random neighbour would score.",
    "outputs follow": "One variable is put from one run into another, in the program and in the "
    "network; does the network then answer as the program does?",
    "directions": "The part of the hidden state that carries it is a number of directions.",
    "sharpness": "1 − entropy / log(number of neighbours): 1 is a decision, 0 is uniform "
    "attention.",
    "graph accuracy": "The share of graphs on which every output is right at every node.",
    "hint accuracy": "The share of hints that are predicted within the margins.",
    "top-1 agreement": "Of the nodes that the mechanism updates, the share whose largest attention "
    "is on a sender that a correct run could have chosen.",
    "own state": "The state before every step that the network's own hints say. A network that "
    "goes another way once is compared from there, and not with a run that it is not in.",
    "misplaced": _ATTENTION,
    "tv": _ATTENTION,
    "certificate": "For which graphs a compiled network is promised to be exact.",
    "output accuracy": "The share of outputs that are right, mean over nodes.",
    "updated nodes": "A node whose state the mechanism changes in this step by whom it selects.",
    "compiled": "A network whose parameters were computed from a program.",
    "baseline": "Something whose number says nothing good, to hold a measure against.",
    "mechanism": "A program as something to compare a network with: whom every node attends to in "
    "every step.",
}
"""By a word of a label, more telling ones first. The glossary says each, and more."""

_ALIASES = {"accuracy": "output accuracy", "agreement": "top-1 agreement"}
_WORDS = re.compile(
    r"\b(" + "|".join(map(re.escape, sorted([*DEFINITIONS, *_ALIASES], key=len, reverse=True)))
    + r")\b",
    re.IGNORECASE,
)  # fmt: skip


def definition(label: str) -> str | None:
    """What a label is about, or None if it has no word of the glossary.

    >>> definition("graph accuracy, sparse (%)")
    'The share of graphs on which every output is right at every node.'
    >>> definition("seed")
    """
    found = [_entry(word) for word in _WORDS.findall(label)]
    return next((said for word, said in DEFINITIONS.items() if word in found), None)


def explained(text: str) -> str:
    """A text as HTML, in which the first use of every word of the glossary shows what it means."""
    shown = set[str]()

    def wrapped(match: re.Match[str]) -> str:
        meaning = DEFINITIONS[_entry(match[0])]
        if meaning in shown:
            return match[0]
        shown.add(meaning)
        return f'<abbr tabindex="0" title="{escape(meaning)}">{match[0]}</abbr>'

    return _WORDS.sub(wrapped, escape(text))


def _entry(word: str) -> str:
    return _ALIASES.get(word.lower(), word.lower())
