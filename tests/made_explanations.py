"""Explanations as a decompiler would write them, made by hand: soon there, and of any content."""

from typing import Any

from mechgap.decompiler.evidence import ErrorsPredicted, Forced, PhaseFound, Weighted
from mechgap.decompiler.explanation import Explanation

SETS = ("held out", "test")


def phase_found(
    rule: str, soft: tuple[Weighted, ...] = (), like: dict[str, float] | None = None, **more: Any
) -> PhaseFound:
    """What one phase attends by; the rule selects as the mechanisms in `like` do, so often."""
    like = {"bfs": 0.9, "bfs_parent": 1.0} if like is None else like
    told: dict[str, Any] = {
        "words": 3,
        "alike": 1,
        "agreement": {"held out": 0.97, "test": 0.95},
        "on_selected": 0.8,
        "softly": {"reached": 2.0},
        "rule_explains": dict.fromkeys(SETS, 0.7),
        "path": (0.6, 0.9),
        "soft_explains": {"held out": 0.9123, "test": 0.8765},
        "by_receivers": {"reached": 0.9},
        "sharpness": 0.6,
        "same_as": like,
        "like": like,
        "everywhere": like,
    }
    return PhaseFound(rule=rule, soft=soft, **{**told, **more})


def explanation(*phases: PhaseFound, **forced: Any) -> Explanation:
    """One that is claimed, unless something else is told of what forcing gives."""
    values = {"own": 0.98, "floor": 0.3, "hardened": 0.97, "uniform": 0.5, "rule": 0.9812,
              "rule_softly": 0.96, "soft": 0.975, "mechanisms": {"bfs": 0.71, "bfs_parent": 0.99},
              **forced}  # fmt: skip
    return Explanation(
        phases=phases,
        heads={},
        program='GraphProgram(name="decompiled")',
        unclaimed=(),
        forced={
            which: Forced(graphs=8, nodes=nodes, **values)
            for which, nodes in zip(SETS, (16, 64), strict=True)
        },
        parts=(),
        errors={which: ErrorsPredicted(0.02, 0.8, 0.7) for which in SETS},
        seconds=1.0,
    )
