"""The numbers that an explanation rests on."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Weighted:
    """A word of a soft form."""

    word: str
    receivers: str
    weight: float


@dataclass(frozen=True)
class FromOwnState:
    """How far a rule and a soft form tell attention where the state they speak of is the network's
    own, the one that its hints say, and not the true trace's. Shares are by set of graphs."""

    agreement: Mapping[str, float]
    on_selected: float
    soft_explains: Mapping[str, float]


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
    from_own_state: FromOwnState | None = None
    """None where a network says no hints."""


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
