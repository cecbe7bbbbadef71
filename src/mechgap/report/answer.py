"""The answer in one sentence: how accurate, and is it the algorithm inside?"""

from typing import Any

import numpy as np

from mechgap.measures.results import Results


def answer(results: Results) -> str:
    """What was found, with its yardstick."""
    seeds, yardsticks = results.numbers["seeds"], results.numbers["yardsticks"]
    count = len(seeds)
    who = f"{count} learned network{'s' if count > 1 else ''}"
    accurate = f"{who}, {_percent([s['accuracy'] for s in seeds])} accurate on the test graphs"
    if seeds[0]["internal_tv"] is None:
        task = results.numbers["task"]
        predicted = ""
        if seeds[0]["external"] is not None:
            predicted = f"; {_percent([s['external'] for s in seeds])} of the trace is predicted"
        return f"{accurate}{predicted}. There is no compiled {task} to compare attention with."
    mechanism = most_common([s["mechanism"] for s in seeds])
    gaps = [s["gaps"]["test"][mechanism] for s in seeds]
    uniform = yardsticks["uniform"]["gaps"]["test"][mechanism]
    right = _percent([gap["top1_active"] for gap in gaps])
    with_ties = _percent([gap["top1_tied_active"] for gap in gaps])
    ties = f" ({with_ties} if ties may be broken otherwise)" if with_ties != right else ""
    return (
        f"{accurate}; they attend like the compiled {mechanism} on {right} of active rows{ties}, "
        f"where uniform attention scores {_percent([uniform['top1_active']])}; "
        f"{_percent([gap['tv'] for gap in gaps])} of all their attention is elsewhere."
    )


def most_common(names: list[str]) -> str:
    """The name that occurs most; the first of equals."""
    return max(names, key=names.count)


def _percent(values: list[Any]) -> str:
    known = [v for v in values if v is not None]
    return f"{100 * float(np.mean(known)):.1f} %" if known else "an unknown share"
