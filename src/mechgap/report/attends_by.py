"""What networks attend by: the words of their soft forms and the weights these have, over seeds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap

import matplotlib as mpl
from matplotlib.figure import Figure

from mechgap.decompiler.population import DecompiledRun
from mechgap.decompiler.soft import EVERYBODY
from mechgap.report.style import SERIES, STYLE

MOST_WORDS = 14
"""More would not be legible in one panel."""
LABEL = 28
"""Characters of a word's label in a line."""
_GREY = "#8a94a0"
MEANING = (
    "Attention as a softmax of words: a flag of weight +3 gives a sender that has it e³, about 20 "
    "times, the attention of one that has not"
)


@dataclass(frozen=True)
class Weights:
    """A word for one kind of receivers, in all networks."""

    word: str
    receivers: str
    by_seed: Mapping[int, float]
    """Of those that have the word."""
    seeds: int
    """How many there are."""

    @property
    def mean(self) -> float:
        """Over all seeds; where the word is not in the form, its weight is 0."""
        return sum(self.by_seed.values()) / self.seeds

    @property
    def size(self) -> float:
        """The mean of what the word does, in either direction."""
        return sum(map(abs, self.by_seed.values())) / self.seeds


@dataclass(frozen=True)
class Panel:
    """The words of one phase, the weightiest first."""

    phase: int
    words: Mapping[str, tuple[Weights, ...]]
    """By word: a mean for every kind of receivers."""
    left_out: int
    """How many words are not shown."""

    @property
    def labels(self) -> list[list[str]]:
        """The words, each as lines."""
        return [wrap(word, LABEL, break_long_words=False) for word in self.words]

    def placed(self) -> Iterator[tuple[Weights, float, float]]:
        """Everything to be drawn, where, and how high: word k is from k - 0.4 to k + 0.4."""
        for k, kinds in enumerate(self.words.values()):
            high = 0.8 / len(kinds)
            for i, weights in enumerate(kinds):
                yield weights, k - 0.4 + (i + 0.5) * high, high


def panels(run: DecompiledRun) -> tuple[Panel, ...]:
    """One a phase, but for those where nobody attends by anything."""
    phases = max(len(explanation.phases) for explanation in run.seeds.values())
    found = (_panel(run, phase) for phase in range(phases))
    return tuple(panel for panel in found if panel.words)


def _panel(run: DecompiledRun, phase: int) -> Panel:
    by_seed: dict[tuple[str, str], dict[int, float]] = {}
    for seed, explanation in run.seeds.items():
        for soft in explanation.phases[phase].soft if phase < len(explanation.phases) else ():
            by_seed.setdefault((soft.word, soft.receivers), {})[seed] = soft.weight
    words: dict[str, list[Weights]] = {}
    for (word, receivers), weights in by_seed.items():
        words.setdefault(word, []).append(Weights(word, receivers, weights, len(run.seeds)))
    order = sorted(words, key=lambda word: -max(w.size for w in words[word]))
    shown = {word: tuple(words[word]) for word in order[:MOST_WORDS]}
    return Panel(phase, shown, len(order) - len(shown))


def colours(drawn: Sequence[Panel]) -> dict[str, str]:
    """A colour for every kind of receivers; grey for all."""
    every = [w.receivers for panel in drawn for kinds in panel.words.values() for w in kinds]
    kinds = [kind for kind in dict.fromkeys(every) if kind != EVERYBODY]
    found = {EVERYBODY: _GREY} if EVERYBODY in every else {}
    own = SERIES[2:]  # the first two mean learned and compiled
    return found | {kind: own[i % len(own)] for i, kind in enumerate(kinds)}


def receivers_named(kind: str) -> str:
    """A kind of receivers, as legends have it."""
    return "all receivers" if kind == EVERYBODY else f"receivers: {kind}"


def title(panel: Panel, drawn: Sequence[Panel]) -> str:
    """Which phase a panel is of; nothing where there is one only."""
    return f"phase {panel.phase}" if len(drawn) > 1 or panel.phase else ""


def caption(drawn: Sequence[Panel]) -> str:
    """What the figure means, and what is not in it."""
    left_out = [
        f"{panel.left_out} {title(panel, drawn) and f'in {title(panel, drawn)}'}".strip()
        for panel in drawn
        if panel.left_out
    ]
    rest = f" Words of smaller weight that are not shown: {', '.join(left_out)}." * bool(left_out)
    return (
        f"{MEANING}. Bars: the mean of all seeds, 0 where a seed's form has not the word; points: "
        f"seeds; colour: the receivers for whom it counts.{rest}"
    )


def attends_by_figure(drawn: Sequence[Panel]) -> Figure:
    """Words and weights, a panel a phase."""
    lines = [max(map(len, panel.labels)) for panel in drawn]
    heights = [
        0.3 + (0.1 + 0.13 * high) * len(panel.words)
        for panel, high in zip(drawn, lines, strict=True)
    ]
    shades = colours(drawn)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 1.6 + sum(heights)), layout="constrained")
        every = figure.subplots(len(drawn), 1, squeeze=False, sharex=True, height_ratios=heights)
        for panel, axes in zip(drawn, every[:, 0], strict=True):
            for weights, y, high in panel.placed():
                shade = shades[weights.receivers]
                axes.barh(y, weights.mean, 0.9 * high, color=shade, alpha=0.55, lw=0)
                values = list(weights.by_seed.values())
                axes.plot(values, [y] * len(values), "o", color=shade, ms=3, mec="white", mew=0.3)
            axes.set_yticks(range(len(panel.words)), ["\n".join(each) for each in panel.labels])
            axes.set_ylim(len(panel.words) - 0.4, -0.6)
            axes.axvline(0, color=_GREY, lw=0.6)
            axes.grid(lw=0.3, axis="x")
            axes.set_title(title(panel, drawn))
        every[-1, 0].set_xlabel("weight")
        for kind, shade in shades.items():
            every[0, 0].plot([], [], "s", color=shade, label=receivers_named(kind))
        figure.suptitle(fill(caption(drawn), 92), fontsize=7)
        figure.legend(loc="outside lower center", ncols=2, fontsize=6.5)
    return figure
