"""The paper's two sentences about BFS's and Bellman-Ford's networks, tested as sentences.

What is tested, on which seeds and what follows was written down before those seeds were trained:
docs/preregistration.md. Nothing here is tuned; it reads the snapshots in `results/`.

    (a)  "no significant correlation between faithfulness and accuracy"
    (b)  the gap is "far beyond the amount that would be explained by tie-breaking or attention
         sharpness"
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import stats

from mechgap.experiments.replication.comparison import LEVEL, holm
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Study
from mechgap.experiments.replication.numbers import load_numbers
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.experiments.replication.snapshots import kept_snapshots
from mechgap.measures.along import along_training
from mechgap.measures.correlation import correlation
from mechgap.measures.internal import ROWS
from mechgap.measures.snapshot import Snapshot
from mechgap.report.measures import p_value

CONFIRMING = range(64, 128)
"""The seeds that decide."""
STEP = 10_000
SMALL = 0.3
"""A rank correlation that is smaller is none to speak of."""
HALF = 0.5
"""What is far beyond: more than half of the gap."""
POINT = 0.01
"""A change of accuracy that is smaller is none to speak of."""


@dataclass(frozen=True)
class Tested:
    """One number, what it would be if the sentence were at its limit, and what follows."""

    sentence: str
    what: str
    estimate: float
    interval: tuple[float, float]
    """95 %."""
    seeds: int
    p: float | None
    """That there is no correlation; None for shares, which are judged by their interval."""
    verdict: Callable[[float | None], str]
    """In words, from the p-value corrected for the family."""


@dataclass(frozen=True)
class SentencesTable:
    """Both sentences: on the seeds that were known before, those that decide, and all."""

    study: ClassVar[Study | None] = None

    caption: str
    populations: tuple[Population, ...]
    remarks: tuple[str, ...] = ()

    def shortened(self, steps: int) -> "SentencesTable":
        """The same with so many training steps: there is nothing to confirm then."""
        return replace(self, populations=tuple(p.shortened(steps) for p in self.populations))

    def tests(self, results: Path) -> Mapping[str, float]:  # noqa: ARG002
        """None against the paper's numbers: these are a family of their own."""
        return {}

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each test; those that wait say for how many seeds."""
        head = ("seeds", "sentence", "what", "ours", "95 % interval", "p", "verdict", "count")
        rows, data, remarks = [], [], list(self.remarks)
        known = {p.name: kept_snapshots(results, p.name) for p in self.populations}
        there = {name: _deciding(results, name, found) for name, found in known.items()}
        shown: dict[str, Collection[int]] = {"before": range(CONFIRMING.start)}
        if all(count == len(CONFIRMING) for count in there.values()):
            shown |= {"deciding": CONFIRMING, "all": range(CONFIRMING.stop)}
        else:
            counts = ", ".join(f"{count} of {name}" for name, count in there.items())
            remarks.append(
                f"The seeds that decide, {CONFIRMING.start} to {CONFIRMING.stop - 1}, are not all "
                f"trained yet ({counts}), so nothing is decided, and they are not in this table."
            )
        for label, seeds in shown.items():
            for cells, numbers in _family({n: _among(found, seeds) for n, found in known.items()}):
                rows.append((label, *cells))
                data.append({"seeds": label, **numbers})
        return Rendered(name, self.caption, head, rows, remarks, data)


def sentence_tests(snapshots: Sequence[Snapshot], mechanism: str) -> list[Tested]:
    """Every test of both sentences on some seeds of one population, beside one mechanism."""
    return [*_correlated(snapshots, mechanism), *_beyond(snapshots, mechanism)]


def _family(
    of: Mapping[str, Sequence[Snapshot]],
) -> list[tuple[tuple[str, ...], dict[str, object]]]:
    """The tests of some populations as one family, in words and as numbers."""
    found = {
        f"{name}: {each.what}": each
        for name, snapshots in of.items()
        if snapshots
        for each in sentence_tests(snapshots, next(iter(snapshots[0].test.mechanisms)))
    }
    adjusted = holm({name: each.p for name, each in found.items() if each.p is not None})
    rows = []
    for name, each in found.items():
        p = adjusted.get(name)
        verdict, (low, high) = each.verdict(p), each.interval
        told = (
            f"{each.estimate:+.3f}",
            f"{low:+.3f} … {high:+.3f}",
            "-" if p is None else p_value(p),
        )
        numbers = {k: v for k, v in asdict(each).items() if k != "verdict"}
        numbers |= {"what": name, "adjusted_p": p, "verdict": verdict}
        rows.append(((each.sentence, name, *told, verdict, str(each.seeds)), numbers))
    return rows


def _correlated(snapshots: Sequence[Snapshot], mechanism: str) -> list[Tested]:
    """Sentence (a), on the deep graphs, where accuracy is not at its ceiling."""
    at_end = [s for s in snapshots if s.which == "step" and s.step == STEP and s.deep is not None]
    deep = [s.deep for s in at_end if s.deep is not None]
    along = along_training(snapshots, "deep", mechanism)
    found = list[Tested]()
    for measure, label in (("agreement", "agreement on updated nodes"), ("tv", "tv, all rows")):
        values = [getattr(seen.mechanisms[mechanism], measure) for seen in deep]
        ranks = correlation([seen.accuracy for seen in deep], values)
        if not math.isnan(ranks.spearman_rho):
            inside = _within(ranks.spearman_rho, ranks.n)
            found.append(
                Tested(
                    "a",
                    f"ρ of accuracy and {label}, step {STEP:,}",
                    *(ranks.spearman_rho, ranks.spearman_interval, ranks.n, ranks.spearman_p),
                    verdict=lambda p, inside=inside: _of_correlation(p, inside),
                )
            )
        model = along.models.get(measure) if along is not None else None
        if model is not None:
            found.append(
                Tested(
                    "a",
                    f"{label} per point of accuracy, within seeds",
                    *(model.slope, model.interval, model.seeds, model.p),
                    verdict=lambda p: _of_correlation(p, inside=False),
                )
            )
    return found


def _beyond(snapshots: Sequence[Snapshot], mechanism: str) -> list[Tested]:
    """Sentence (b), on the test graphs, as the paper has it: each network at its best score."""
    best = [s for s in snapshots if s.which == "best"]
    parts = [known for s in best if (known := s.test.mechanisms[mechanism].parts)]

    def share(of_rows: Sequence[str]) -> list[float]:
        """Of each network's gap in some rows, how much is on a wrong choice."""
        whole = [sum(v or 0.0 for rows in of_rows for v in each[rows].values()) for each in parts]
        wrong = [sum(each[rows]["wrong"] or 0.0 for rows in of_rows) for each in parts]
        return [w / all_ for w, all_ in zip(wrong, whole, strict=True) if all_ > 0]

    lost = [
        s.test.accuracy - s.hardened
        for s in best
        if s.hardened is not None and s.test.accuracy is not None
    ]
    return [
        *_mean("wrong choices' share of the gap, all rows", share(ROWS), _of_share),
        *_mean("wrong choices' share of the gap, updated rows", share(["updated"]), _of_share),
        *_mean("accuracy lost when attention is hardened", lost, _of_loss),
    ]


def _mean(
    what: str, values: Sequence[float], verdict: Callable[[tuple[float, float]], str]
) -> list[Tested]:
    if len(values) < 3:
        return []
    mean, count = float(np.mean(values)), len(values)
    half = float(stats.t.ppf(1 - LEVEL / 2, count - 1) * np.std(values, ddof=1) / math.sqrt(count))
    interval = (mean - half, mean + half)
    return [Tested("b", what, mean, interval, count, None, lambda _: verdict(interval))]


def _within(rho: float, count: int) -> bool:
    """Whether both one-sided tests at 5 % say that a rank correlation is smaller than `SMALL`."""
    if count < 4 or abs(rho) >= SMALL:
        return False
    error = math.sqrt((1 + rho**2 / 2) / (count - 3))
    return (math.atanh(SMALL) - math.atanh(abs(rho))) / error > float(stats.norm.ppf(1 - LEVEL))


def _of_correlation(p: float | None, inside: bool) -> str:
    if p is not None and p < LEVEL:
        return "correlated"
    return "none" if inside else "cannot tell"


def _of_share(interval: tuple[float, float]) -> str:
    low, high = interval
    if low > HALF:
        return "beyond"
    return "not beyond" if high < HALF else "cannot tell"


def _of_loss(interval: tuple[float, float]) -> str:
    low, high = interval
    if low > POINT:
        return "sharpness matters"
    return "does not matter" if low > -POINT and high < POINT else "cannot tell"


def _among(snapshots: Sequence[Snapshot], seeds: Collection[int]) -> list[Snapshot]:
    return [s for s in snapshots if s.seed in seeds]


def _deciding(results: Path, name: str, snapshots: Sequence[Snapshot]) -> int:
    """How many of the deciding seeds are trained to their end, diverged ones included."""
    numbers = load_numbers(results, name)
    diverged = () if numbers is None else map(int, numbers.diverged)
    return len({*(s.seed for s in snapshots), *diverged} & {*CONFIRMING})
