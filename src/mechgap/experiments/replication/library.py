"""The populations that tables have in common, and what is remarked of them."""

from dataclasses import replace

from mechgap.experiments.replication.populations import LARGER, Population
from mechgap.experiments.replication.teaching import LONG, by_hints, by_state
from mechgap.measures.snapshot import STEPS

FROM_THE_START = (0, 50, 100, *STEPS)
"""Attention agrees with the mechanism early: when, is not seen from step 250 on."""
BFS, BF = (
    Population(task, snapshots=FROM_THE_START, elsewhere=LARGER) for task in ("bfs", "bellman_ford")
)
DFS_STEPS = 2_000
"""Where DFS is not trained to the paper's end, which takes hours."""
DFS = Population("dfs", seeds=2, elsewhere=LARGER)
DFS_SHORT = DFS.shortened(DFS_STEPS)
DFS_TAUGHT = replace(by_state("dfs", "long", **LONG), in_full=True)
DFS_WIDE = by_state("dfs", "wide_long", hidden_size=128, **LONG)
DFS_TWIN = by_hints("dfs", "long", **LONG)
TOPOLOGICAL_SHORT, _DIJKSTRA_SHORT, PRIM_SHORT = (
    Population(task, seeds=3, snapshots=(), elsewhere=LARGER, in_full=False).shortened(DFS_STEPS)
    for task in ("topological_sort", "dijkstra", "mst_prim")
)
DIJKSTRA_SHORT = replace(_DIJKSTRA_SHORT, in_full=True)
"""What its attention carries is asked, too."""
BFS_THREE = Population("bfs", seeds=2, overrides={"nb_msg_passing_steps": 3}, suffix="three_steps")
DFS_THREE = Population(
    "dfs", seeds=2, overrides={"nb_msg_passing_steps": 3}, suffix="three_steps"
).shortened(DFS_STEPS)
REGULARISED_BFS = Population("bfs", "regularisation_1e-4", 4)
REGULARISED_BF = Population("bellman_ford", "regularisation_1e-4", 4)
EXTENDED_BFS = Population("bfs", "grokking", 2, snapshots=(*STEPS, 20_000, 30_000))
BFS_16, BF_16 = (Population(task, "ablation_default", 4) for task in ("bfs", "bellman_ford"))
BFS_16_BIAS = Population("bfs", "ablation_pre_att_bias", 4)
BF_16_BOTH = Population("bellman_ford", "ablation_both", 4)
BF_EDGE, BF_NO_EDGE = (
    Population("bellman_ford", preset, 4) for preset in ("edge_info", "edge_info_default")
)
BF_EDGE_MIXED = Population("bellman_ford", "edge_info_mixed", 4, elsewhere=LARGER)
BF_TAUGHT = Population(
    "bellman_ford", "supervised", 3, {"use_edge_info": True}, "edge_info", elsewhere=LARGER
)
BFS_CURRICULUM = Population("bfs", "curriculum", 4, elsewhere=LARGER)
BF_CURRICULUM = Population("bellman_ford", "curriculum", 3, elsewhere=LARGER)
BFS_NO_TRACES = Population("bfs", "trace_ablation")
BF_NO_TRACES = Population("bellman_ford", "trace_ablation")
BFS_SUPERVISED = Population("bfs", "supervised", 4, elsewhere=LARGER)
BFS_SUPERVISED_PARENT = Population(
    "bfs", "supervised", 4, {"supervised_mechanism": "bfs_parent"}, "parent", elsewhere=LARGER
)
BFS_SIMPLIFIED = Population("bfs", "ablation_simplified", 2)
BFS_UNCLIPPED, BFS_BLUNT = (
    Population("bfs", "ablation_simplified", 2, overrides, suffix)
    for suffix, overrides in {
        "unclipped": {"grad_clip_max_norm": 0.0},
        "sharpness_100": {"simplified_sharpness": 100.0},
    }.items()
)
BF_SIMPLIFIED = Population("bellman_ford", "ablation_simplified", 2)
MINIMAL_STEPS = (2000, 10_000)
"""Minimal networks train in a second each; looking at them takes as long."""
BF_MINIMAL, BF_MINIMAL_BOTH, BFS_MINIMAL, BFS_MINIMAL_BIAS = (
    Population(task, preset, 1024, snapshots=MINIMAL_STEPS)
    for task, preset in (
        *(("bellman_ford", "minimal"), ("bellman_ford", "minimal_both")),
        *(("bfs", "minimal"), ("bfs", "minimal_pre_att_bias")),
    )
)
MEASURED = (
    "Agreement: of the nodes that the algorithm updates, the share whose largest attention is on a "
    "sender that a correct run could have chosen. Misplaced: the attention there that is on nobody "
    "such. Hardened: every node attends only to whom it attends to most. tv: attention that is not "
    "where the compiled mechanism has it, over all rows."
)
PARAMETERS = (
    "Each network at its best validation score, which they reach at different steps: see the table "
    "along training, where all have the same step."
)
SHORT = "2,000 of the paper's 10,000 steps"
