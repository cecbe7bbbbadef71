"""The soft form: attention as a softmax of a few words of the language, fitted.

A compiled network's logits are sums of flags and numbers of the sender and the pair, by kind of
receiver. So such a sum with fitted weights (a conditional logit) is a program whose constants are
free. It is grown word by word: at each step the words that promise most by a score test are fitted,
and the best of them stays. Products of two words are tried once one of the two is in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from mechgap.decompiler.scenes import Scenes
from mechgap.decompiler.watched import Attention, Watched
from mechgap.programs.expressions import Expression, Name, Not, Side, where

WORDS = 12
"""The longest soft form."""
ROWS = 3_000
"""At most so many receivers are fitted to."""
_TRIED = 4
"""How many words are fitted before the best of them stays."""
_SHRINK = 1e-4
"""Of the penalty on squared weights, which keeps weights of exact rules finite."""
EVERYBODY = "all"


@dataclass(frozen=True)
class Word:
    """A number of the pair, and the receivers for whom it counts."""

    value: Expression
    receivers: str = EVERYBODY

    def __str__(self) -> str:
        about = "" if self.receivers == EVERYBODY else f"[{self.receivers}] "
        return f"{about}{self.value}"


@dataclass(frozen=True)
class SoftForm:
    """Attention is the softmax of a weighted sum of words."""

    words: tuple[Word, ...] = ()
    weights: tuple[float, ...] = ()

    def attention(self, watched: Watched) -> Attention:
        """What it says of every row."""
        return next(attentions([self], watched))

    def __str__(self) -> str:
        parts = zip(self.weights, self.words, strict=True)
        return "; ".join(f"{weight:+.2f} {word}" for weight, word in parts) or "uniform"


def soft_forms(watched: Watched, longest: int = WORDS) -> list[SoftForm]:
    """Forms of one word, two words, and so on; each is the one before with one more."""
    rows = _Rows.of(watched)
    values = list(_values_of(watched.scenes))
    words = [Word(value, who) for value in values for who in rows.receivers]
    form, path = SoftForm(), list[SoftForm]()
    known: dict[Word, _Column] = {}
    for _ in range(longest):
        rows.add(known, words)
        promise = dict(rows.promises(form, known))
        best = sorted(promise, key=lambda word: -promise[word])[:_TRIED]
        if not best or promise[best[0]] < 1e-9:
            break
        tried = [rows.fitted((*form.words, word), (*form.weights, 0.0), known) for word in best]
        _, form = min(tried, key=lambda found: found[0])
        path.append(form)
        words = list(_products(form.words[-1], values, watched.scenes, rows.receivers))
    return path


def attentions(forms: Sequence[SoftForm], watched: Watched) -> Iterator[Attention]:
    """What each form says of every row; a word that several share is looked up once."""
    values = {word: _values(word, watched) for word in {w: None for f in forms for w in f.words}}
    for form in forms:
        logits = np.zeros(watched.attention.shape)
        for word, weight in zip(form.words, form.weights, strict=True):
            logits += weight * values[word]
        yield _softmax(logits, watched.scenes.reach)


def softened(watched: Watched, chosen: Attention) -> dict[str, float]:
    """A rule, softly: by kind of receivers, the logit of the selected sender above the others."""
    share = (watched.attention * chosen).sum(-1)
    others = watched.scenes.reach.sum(-1) - 1
    found: dict[str, float] = {}
    for name, kind in watched.receivers.items():
        among = kind & (others > 0)
        if among.any():
            found[name] = _logit(share[among], others[among])
    return found


def _logit(share: Float[np.ndarray, "rows"], others: Float[np.ndarray, "rows"]) -> float:
    """Of one beside some others alike, that gets such shares."""

    def loss(logit: np.ndarray) -> float:
        entropy = np.log1p(np.exp(-logit[0]) * others) + (1 - share) * logit[0]
        return float(np.mean(entropy)) + _SHRINK * float(logit[0]) ** 2

    return float(minimize(loss, np.zeros(1), method="L-BFGS-B").x[0])


def rule_softly(watched: Watched, chosen: Attention, logits: Mapping[str, float]) -> Attention:
    """The attention of a rule with such logits."""
    by_row = np.zeros(watched.attention.shape[:2])
    for name, kind in watched.receivers.items():
        by_row = np.where(kind, logits.get(name, 0.0), by_row)
    return _softmax(by_row[..., None] * chosen, watched.scenes.reach)


def _values_of(scenes: Scenes) -> Iterator[Expression]:
    """What logits may be sums of, each once."""
    words = scenes.words
    pairs = [literal for literal in words.literals if not isinstance(literal, Not)]
    flags = [flag.replaced(Side.SELF, Side.OTHER) for flag in words.of_a_node]
    known = set()
    for value in (*pairs, *flags, *words.keys):
        found = scenes.values(value)[scenes.reach]
        mark = hash(found.tobytes())
        if np.ptp(found) > 0 and mark not in known:
            known.add(mark)
            yield value


def _products(
    word: Word, values: Sequence[Expression], scenes: Scenes, receivers: Sequence[str]
) -> Iterator[Word]:
    """A flag together with each other flag and number, or a number with each flag."""
    own = _own_numbers(scenes)
    numbers = {*scenes.words.keys, *own}
    if word.value not in values:
        return  # it is such a product itself
    for value in (*values, *own):
        if value == word.value or (word.value in numbers and value in numbers):
            continue
        if word.value in numbers or value in numbers:
            flag, number = (value, word.value) if word.value in numbers else (word.value, value)
            both: Expression = where(flag, number, 0.0)
        else:
            first, second = sorted((word.value, value), key=str)
            both = first & second
        yield from (Word(both, who) for who in receivers)


def _own_numbers(scenes: Scenes) -> list[Expression]:
    """Of the receiver: they matter beside a flag of the sender only."""
    return [Name(Side.SELF, name) for name in scenes.words.numbers]


def _values(word: Word, watched: Watched) -> Attention:
    values = watched.scenes.values(word.value)
    if word.receivers == EVERYBODY:
        return values
    among = watched.receivers.get(word.receivers)
    return np.zeros(values.shape) if among is None else values * among[..., None]


def _softmax(logits: Attention, support: np.ndarray) -> Attention:
    logits = np.where(support, logits, -np.inf)
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


_Column = Float[np.ndarray, "entries"]


@dataclass(frozen=True)
class _Rows:
    """Rows to fit to, as one list of entries: those in sight, row by row."""

    watched: Watched
    receivers: tuple[str, ...]
    entries: tuple[np.ndarray, ...]
    starts: np.ndarray
    """Where each row begins in the list."""
    row: np.ndarray
    """Which row an entry is in."""
    target: _Column
    weight: Float[np.ndarray, "rows"]

    @staticmethod
    def of(watched: Watched) -> "_Rows":
        """Rows that have a choice; if there are too many, some by chance."""
        scenes = watched.scenes
        choice = scenes.reach.sum(-1) > 1
        chosen = np.flatnonzero(choice)
        if len(chosen) > ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(chosen, ROWS, replace=False))
        keep = np.zeros(choice.size, bool)
        keep[chosen] = True
        keep = keep.reshape(choice.shape)
        entries = np.nonzero(scenes.reach & keep[..., None])
        number = np.full(choice.shape, -1)
        number[keep] = np.arange(keep.sum())
        row = number[entries[0], entries[1]]
        weight = watched.weights[keep]
        return _Rows(
            watched,
            (EVERYBODY, *watched.receivers),
            entries,
            np.searchsorted(row, np.arange(keep.sum())),
            row,
            watched.attention[entries],
            weight / weight.sum(),
        )

    def add(self, known: dict[Word, _Column], words: Sequence[Word]) -> None:
        """The columns of some words, but for those that say nothing."""
        values: dict[Expression, _Column] = {}
        for word in words:
            if word in known:
                continue
            if word.value not in values:
                values[word.value] = self.watched.scenes.values(word.value)[self.entries]
            column = values[word.value]
            if word.receivers != EVERYBODY:
                scene, receiver, _ = self.entries
                column = column * self.watched.receivers[word.receivers][scene, receiver]
            if np.ptp(column) > 0:
                known[word] = column

    def model(self, form: SoftForm, known: Mapping[Word, _Column]) -> _Column:
        """What a form says of every entry."""
        if not form.words:
            return self._softmax(np.zeros(len(self.row)))
        columns = np.stack([known[word] for word in form.words], 1)
        return self._softmax(columns @ np.asarray(form.weights))

    def promises(
        self, form: SoftForm, known: Mapping[Word, _Column]
    ) -> Iterator[tuple[Word, float]]:
        """How much each word that a form has not would improve it, to second order."""
        model, weight = self.model(form, known), self.weight[self.row]
        missing, weighted = weight * (self.target - model), weight * model
        for word, column in known.items():
            if word not in form.words:
                mean = np.add.reduceat(model * column, self.starts)
                curve = float(weighted @ column**2 - self.weight @ mean**2)
                yield word, float(missing @ column) ** 2 / (curve + 1e-6)

    def fitted(
        self, words: tuple[Word, ...], start: tuple[float, ...], known: dict[Word, _Column]
    ) -> tuple[float, SoftForm]:
        """The cross-entropy that the best weights leave, and the form."""
        columns = np.stack([known[word] for word in words], 1)
        weight = self.weight[self.row]

        def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
            model = self._softmax(columns @ weights)
            error = -np.sum(weight * self.target * np.log(np.maximum(model, 1e-30)))
            gradient = ((model - self.target) * weight) @ columns
            return error + _SHRINK * (weights**2).sum(), gradient + 2 * _SHRINK * weights

        found = minimize(
            loss, np.asarray(start), jac=True, method="L-BFGS-B", options={"maxiter": 200}
        )
        return float(found.fun), SoftForm(words, tuple(map(float, found.x)))

    def _softmax(self, logits: _Column) -> _Column:
        raised = np.exp(logits - np.maximum.reduceat(logits, self.starts)[self.row])
        return raised / np.add.reduceat(raised, self.starts)[self.row]
