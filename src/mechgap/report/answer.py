"""The answer in plain sentences: how accurate, and is it the algorithm inside?"""

from collections.abc import Iterable, Sequence

import numpy as np

from mechgap.measures.internal import Gap
from mechgap.measures.results import NetworkMeasures, Results
from mechgap.report.measures import constant_sentence, known


def answer(results: Results) -> str:
    """What was found, in two sentences, with what it is to be held against."""
    networks = results.networks
    count = len(networks)
    who = f"{count} learned network{'s get' if count > 1 else ' gets'}"
    whole = f"({_percent(n.graph_accuracy for n in networks)} of whole graphs)"
    accurate = f"{who} {_percent(n.accuracy for n in networks)} of outputs right {whole}"
    constant = results.graphs.constant_outputs
    note = f" ({constant_sentence(constant)[:-1]})" if constant else ""
    where = f"on {results.graphs.words}{note}"
    if not results.mechanisms:
        hints = ""
        if results.has_traces:
            hints = f", with a hint accuracy of {_percent(n.external for n in networks)}"
        return (
            f"{accurate} {where}{hints}. There is no compiled {results.recipe.task} to "
            "compare attention with."
        )
    mechanism = nearest(results)
    gaps = [n.gaps["test"][mechanism] for n in networks]
    chance = results.baselines["uniform"].gaps["test"][mechanism].agreement
    return (
        f"{accurate} {where}. On the nodes that {mechanism} updates, their largest attention is on "
        f"a sender that it could have chosen in {_percent(g.agreement for g in gaps)} of cases (by "
        f"chance {_percent([chance])}); {_percent(g.misplaced for g in gaps)} of their attention "
        "there is misplaced."
    )


def beyond_the_answer(results: Results) -> str:
    """What hardening does to it, and how much attention is misplaced anywhere; empty where no
    mechanism is known."""
    if not results.mechanisms:
        return ""
    mechanism = nearest(results)
    gaps = [n.gaps["test"][mechanism] for n in results.networks]
    return f"{_softness(results.networks)} {_everywhere(mechanism, gaps)}"


def nearest(results: Results) -> str:
    """The mechanism that most networks agree with most; the first of equals."""
    names = [network.nearest for network in results.networks]
    return max(results.mechanisms, key=names.count)


def _softness(networks: Sequence[NetworkMeasures]) -> str:
    hardened = [n.causal.tempered["hardened"] for n in networks if n.causal is not None]
    return (
        f"Hardened to the largest entry of each node, their own attention gives an accuracy of "
        f"{_percent(hardened)} ({100 * min(hardened):.1f} to {100 * max(hardened):.1f} %)."
    )


def _everywhere(mechanism: str, gaps: Sequence[Gap]) -> str:
    other = [1 - sum(g.parts["updated"].values()) / g.tv for g in gaps if g.tv]
    return (
        f"Over all nodes and steps {_percent(g.tv for g in gaps)} of attention is misplaced; "
        f"{_percent(other)} of that is on nodes that {mechanism} does not update."
    )


def _percent(values: Iterable[float]) -> str:
    each = known(list(values))
    return f"{100 * float(np.mean(each)):.1f} %" if each else "an unknown share"
