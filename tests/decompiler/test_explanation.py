"""What is claimed follows from the numbers: on which graphs, and from which state."""

import pytest

from made_explanations import SETS, explanation, phase_found
from mechgap.decompiler.evidence import FromOwnState

RULE = "select=minimum(other.dist), mask=other.queued"
KNOWN = {"dijkstra": 1.0}


def found(*, trace=(0.9, 0.9), own=None, on_selected=0.95, **forced):
    """With such agreement on held-out and test graphs, from the trace's state and its own."""
    told = None
    if own is not None:
        told = FromOwnState(dict(zip(SETS, own, strict=True)), 0.95, dict.fromkeys(SETS, 0.5))
    phase = phase_found(
        RULE,
        like=KNOWN,
        agreement=dict(zip(SETS, trace, strict=True)),
        soft_explains=dict.fromkeys(SETS, 0.5),
        on_selected=on_selected,
        from_own_state=told,
    )
    return explanation(phase, **forced)


@pytest.mark.parametrize(
    ("told", "claim", "in_short"),
    [
        (found(), "program", "runs dijkstra"),
        (found(on_selected=0.7), "program", "runs dijkstra, softly"),
        (found(trace=(0.7, 0.3)), "none", "nothing explains it"),
        (found(trace=(0.7, 0.3), own=(0.9, 0.85)), "program", "runs dijkstra, out of step"),
        # Attention on whom the rule selects is counted from the state that tells it.
        (
            found(trace=(0.7, 0.3), own=(0.9, 0.85), on_selected=0.4),
            "program",
            "runs dijkstra, out of step",
        ),
        (found(trace=(0.9, 0.3)), "small", "runs dijkstra on small graphs"),
        (found(trace=(0.9, 0.3), own=(0.9, 0.7)), "small", "runs dijkstra on small graphs"),
        (
            found(trace=(0.7, 0.3), own=(0.9, 0.7)),
            "small",
            "runs dijkstra on small graphs, out of step",
        ),
        # One state must tell of both sets.
        (
            found(trace=(0.7, 0.9), own=(0.9, 0.7)),
            "small",
            "runs dijkstra on small graphs, out of step",
        ),
        # What costs accuracy when it is forced is no claim, whatever it tells.
        (found(trace=(0.7, 0.3), own=(0.9, 0.9), rule=0.9), "none", "nothing explains it"),
        (found(uniform=0.97), "refused", "nothing to explain"),
    ],
)
def test_claims(told, claim, in_short):
    assert told.claim == claim
    assert told.in_short == in_short


def test_a_verdict_says_from_which_state_and_on_which_graphs():
    assert "in 90% of rows or more, and made" in found().verdict
    apart = found(trace=(0.7, 0.3), own=(0.9, 0.85)).verdict
    assert "in 85% of rows or more, from its own state" in apart
    assert "with which it is out of step, in 30%)" in apart
    small = found(trace=(0.9, 0.3), own=(0.9, 0.7)).verdict
    assert "On graphs of 16 nodes it attends most to whom this selects in 90%" in small
    assert "Not on graphs of 64 nodes" in small
    assert "tells 30% of test rows (70% from its own state)" in small
    none = found(trace=(0.7, 0.3), own=(0.75, 0.5)).verdict
    assert "which tells 30% of test rows (50% from its own state), is select=" in none
