"""The answer in a few plain sentences: how accurate, and is it the algorithm inside?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mechgap.measures.results import Results


def answer(results: Results) -> str:
    """What was found, with what it is to be held against."""
    numbers = results.numbers
    seeds = numbers["seeds"]
    count = len(seeds)
    who = f"{count} learned network{'s' if count > 1 else ''}"
    accurate = f"{who}: {_percent(s['accuracy'] for s in seeds)} of outputs right"
    if not results.mechanisms:
        hints = ""
        if seeds[0]["external"] is not None:
            hints = f", {_percent(s['external'] for s in seeds)} of the trace predicted"
        return (
            f"{accurate} on the test graphs{hints}. There is no compiled {numbers['task']} to "
            "compare attention with."
        )
    mechanism = nearest(results)
    gaps = [s["gaps"]["test"][mechanism] for s in seeds]
    chance = numbers["yardsticks"]["uniform"]["gaps"]["test"][mechanism]["agreement"]
    return " ".join(
        (
            f"{accurate} on the test graphs.",
            f"On the nodes that {mechanism} updates, their largest attention is on a sender that "
            f"{mechanism} could have chosen in {_percent(g['agreement'] for g in gaps)} of cases "
            f"(by chance {_percent([chance])}), and {_percent(g['misplaced'] for g in gaps)} of "
            "the attention there is on others.",
            _softness(seeds),
            _all_rows(mechanism, gaps),
        )
    )


def nearest(results: Results) -> str:
    """The mechanism that most networks agree with most; the first of equals."""
    names = [s["nearest"] for s in results.numbers["seeds"]]
    return max(results.mechanisms, key=names.count)


def _softness(seeds: Sequence[Mapping[str, Any]]) -> str:
    hardened = [s["causal"]["tempered"]["hardened"] for s in seeds]
    return (
        f"Hardened to the largest entry of each row, their own attention gives "
        f"{_percent(hardened)} ({100 * min(hardened):.1f} to {100 * max(hardened):.1f} %)."
    )


def _all_rows(mechanism: str, gaps: Sequence[Mapping[str, Any]]) -> str:
    other = [1 - sum(g["parts"]["updated"].values()) / g["tv"] for g in gaps if g["tv"]]
    return (
        f"Over all nodes and steps {_percent(g['tv'] for g in gaps)} of attention is not where "
        f"{mechanism} has it; {_percent(other)} of that is on nodes that it does not update."
    )


def _percent(values: Any) -> str:
    known = [v for v in values if v is not None]
    return f"{100 * float(np.mean(known)):.1f} %" if known else "an unknown share"
