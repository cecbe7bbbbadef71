"""The answer in a few plain sentences: how accurate, and is it the algorithm inside?"""

from collections.abc import Iterable, Sequence

import numpy as np

from mechgap.measures.internal import Gap
from mechgap.measures.results import NetworkMeasures, Results
from mechgap.report.measures import constant_sentence, known


def answer(results: Results) -> str:
    """What was found, with what it is to be held against."""
    networks = results.networks
    count = len(networks)
    who = f"{count} learned network{'s' if count > 1 else ''}"
    accurate = f"{who}: {_percent(n.accuracy for n in networks)} of outputs right"
    constant = results.graphs.constant_outputs
    note = f" ({constant_sentence(constant)[:-1]})" if constant else ""
    where = f"on {results.graphs.words}{note}"
    if not results.mechanisms:
        hints = ""
        if results.has_traces:
            hints = f", hint accuracy {_percent(n.external for n in networks)}"
        return (
            f"{accurate} {where}{hints}. There is no compiled {results.recipe.task} to "
            "compare attention with."
        )
    mechanism = nearest(results)
    gaps = [n.gaps["test"][mechanism] for n in networks]
    chance = results.baselines["uniform"].gaps["test"][mechanism].agreement
    return " ".join(
        (
            f"{accurate} {where}.",
            f"On the nodes that {mechanism} updates, their largest attention is on a sender that "
            f"{mechanism} could have chosen in {_percent(g.agreement for g in gaps)} of cases "
            f"(by chance {_percent([chance])}), and {_percent(g.misplaced for g in gaps)} of "
            "the attention there is on others.",
            _softness(networks),
            _all_rows(mechanism, gaps),
        )
    )


def nearest(results: Results) -> str:
    """The mechanism that most networks agree with most; the first of equals."""
    names = [network.nearest for network in results.networks]
    return max(results.mechanisms, key=names.count)


def _softness(networks: Sequence[NetworkMeasures]) -> str:
    hardened = [n.causal.tempered["hardened"] for n in networks if n.causal is not None]
    return (
        f"Hardened to the largest entry of each row, their own attention gives "
        f"{_percent(hardened)} ({100 * min(hardened):.1f} to {100 * max(hardened):.1f} %)."
    )


def _all_rows(mechanism: str, gaps: Sequence[Gap]) -> str:
    other = [1 - sum(g.parts["updated"].values()) / g.tv for g in gaps if g.tv]
    return (
        f"Over all nodes and steps {_percent(g.tv for g in gaps)} of attention is not where "
        f"{mechanism} has it; {_percent(other)} of that is on nodes that it does not update."
    )


def _percent(values: Iterable[float]) -> str:
    each = known(list(values))
    return f"{100 * float(np.mean(each)):.1f} %" if each else "an unknown share"
