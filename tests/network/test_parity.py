"""Our network is dm-clrs's network: a pairwise cover of tasks and architectures.

`benchmarks/parity.py` runs the full product.
"""

import itertools
from dataclasses import asdict

import pytest

from dm_clrs_peer import DM_CLRS_TASKS
from mechgap.network.config import NetworkConfig
from parity import measure_parity

FACTORS = {
    "task": tuple(DM_CLRS_TASKS),
    "hidden_size": (4, 128),
    "nb_heads": (1, 4),
    "use_ln": (True, False),
    "hint_mode": ("encoded_decoded", "decoded_only", "none"),
    "hint_repred_mode": ("soft", "hard", "hard_on_eval"),
    "hint_teacher_forcing": (0.0, 1.0),
    "nb_msg_passing_steps": (1, 3),
    "processor_type": ("gatv2", "gatv2_full"),
}

QUICK = [  # dm-clrs's defaults: with weights; directed, with all pairs attending
    ("bellman_ford", 128, 1, True, "encoded_decoded", "soft", 0.0, 1, "gatv2"),
    ("topological_sort", 128, 1, True, "encoded_decoded", "soft", 0.0, 1, "gatv2_full"),
]
CASES = [
    *QUICK,
    ("dfs", 128, 1, True, "encoded_decoded", "soft", 0.0, 1, "gatv2"),
    ("bfs", 128, 1, True, "encoded_decoded", "soft", 0.0, 1, "gatv2"),
    # with these, every pair of values of any two factors
    ("topological_sort", 4, 4, False, "none", "hard_on_eval", 1.0, 3, "gatv2"),
    ("dijkstra", 128, 4, False, "decoded_only", "hard", 1.0, 3, "gatv2_full"),
    ("mst_prim", 4, 1, True, "decoded_only", "soft", 0.0, 3, "gatv2_full"),
    ("mst_prim", 128, 4, False, "encoded_decoded", "hard_on_eval", 1.0, 1, "gatv2_full"),
    ("dijkstra", 4, 1, True, "none", "soft", 1.0, 1, "gatv2_full"),
    ("dfs", 4, 4, False, "encoded_decoded", "hard", 0.0, 3, "gatv2_full"),
    ("bellman_ford", 4, 4, False, "decoded_only", "hard", 1.0, 1, "gatv2"),
    ("bfs", 4, 1, False, "decoded_only", "hard_on_eval", 0.0, 3, "gatv2_full"),
    ("mst_prim", 128, 1, True, "none", "hard", 1.0, 3, "gatv2"),
    ("bellman_ford", 128, 4, True, "none", "hard_on_eval", 0.0, 3, "gatv2_full"),
    ("dijkstra", 4, 1, True, "encoded_decoded", "hard_on_eval", 0.0, 3, "gatv2"),
    ("dfs", 4, 4, False, "none", "soft", 1.0, 3, "gatv2_full"),
    ("bfs", 4, 4, True, "none", "hard", 1.0, 3, "gatv2"),
    ("dfs", 4, 4, False, "decoded_only", "hard_on_eval", 0.0, 1, "gatv2_full"),
    ("topological_sort", 4, 4, False, "decoded_only", "hard", 1.0, 3, "gatv2"),
]


def test_the_cases_cover_every_pair():
    for (i, first), (j, second) in itertools.combinations(enumerate(FACTORS.values()), 2):
        assert set(itertools.product(first, second)) == {(case[i], case[j]) for case in CASES}


@pytest.mark.parametrize(
    "case",
    [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in CASES],
    ids=lambda case: "-".join(map(str, case)),
)
def test_predictions_loss_and_gradients_are_dm_clrs(case, record_property):
    task, *rest = case
    config = NetworkConfig(**dict(zip(list(FACTORS)[1:], rest, strict=True)))
    found = measure_parity(task, config, single=case in QUICK)
    errors = {name: f"{value:.1e}" for name, value in asdict(found).items() if value is not None}
    record_property("errors", errors)
    assert found.gradients <= 1e-6
    assert found.loss <= 1e-6
    assert found.outputs <= 1e-6
    assert found.hints <= 1e-6
    # Deeper and smaller networks amplify float32's rounding, dm-clrs's as well as ours.
    assert found.float32 is None or found.float32 <= 1e-4
