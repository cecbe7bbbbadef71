"""Tables of what teaching does: what closes the gap, and how depth-first search was learned."""

from collections.abc import Mapping
from types import MappingProxyType

from mechgap.experiments.replication.kinds import Row, Table
from mechgap.experiments.replication.library import (
    BF,
    BF_CURRICULUM,
    BF_EDGE_MIXED,
    BF_TAUGHT,
    BFS,
    BFS_CURRICULUM,
    BFS_SUPERVISED,
    BFS_SUPERVISED_PARENT,
    DFS,
    DFS_TAUGHT,
    DFS_TWIN,
    DFS_WIDE,
    DIJKSTRA_SHORT,
    MEASURED,
    PRIM_SHORT,
    SHORT,
    TOPOLOGICAL_SHORT,
)
from mechgap.experiments.replication.objectives import ObjectivesTable
from mechgap.experiments.replication.populations import LARGER
from mechgap.experiments.replication.sizes import BreakingTable, OwnStateTable, SizesTable
from mechgap.experiments.replication.teaching import LESSONS, by_attention, by_hints, by_state

_DFS_LEARNED = (
    Row("hints alone, long", DFS_TWIN),
    Row("+ attention, signals; long", DFS_TAUGHT),
    Row("hints alone", by_hints("dfs")),
    Row("+ attention", by_attention("dfs")),
    Row("+ attention, signals", by_state("dfs")),
    Row(
        "+ attention, signals; of dfs",
        by_state("dfs", "dfs", supervised_mechanism="dfs"),
        "in which nodes that are not addressed attend to themselves, not to parents",
    ),
    Row(
        "+ attention, signals; Adam",
        by_state("dfs", "adam", optimizer="adam", learning_rate=2e-3),
        "at a learning rate of 0.002",
    ),
    Row(
        "+ attention, signals; er alone",
        by_state("dfs", "er", train_graphs="er"),
        "trained on dense graphs alone",
    ),
    Row(
        "+ attention, signals; means alone",
        by_state("dfs", "means", worst_weight=0.0),
        "without one more error of each step's worst node",
    ),
    Row(
        "+ attention, signals; for 2,000 steps",
        by_state("dfs", "until_2000", supervision_ends=2_000),
        "then 6,000 by hints alone",
    ),
    Row(
        "+ attention, signals; for 4,000 steps",
        by_state("dfs", "until_4000", supervision_ends=4_000),
        "then 4,000 by hints alone",
    ),
    Row(
        "+ attention, signals; from step 4,000",
        by_state("dfs", "from_4000", supervision_begins=4_000),
        "after 4,000 by hints alone",
    ),
    Row(
        "+ attention, signals; forcing to 0",
        by_state("dfs", "annealed", hint_teacher_forcing=1.0, teacher_forcing_schedule="linear"),
        "all hints true at first, none at the end",
    ),
    Row(
        "+ attention, signals; noise",
        by_state("dfs", "noise", hidden_noise=0.1),
        "on the hidden state that is carried from window to window",
    ),
    Row(
        "+ attention, signals; active alone",
        by_state("dfs", "active", attention_supervision=0.0),
        "attention is taught where anyone passes the program's mask, and nowhere else",
    ),
    Row(
        "+ attention, signals; with v",
        by_state("dfs", "with_v", ignored_hints=""),
        "the hint that cannot be predicted counts, too",
    ),
    Row(
        "+ attention, signals; without d, f",
        by_state("dfs", "without_d_f", ignored_hints="d,f,v"),
        "the times of discovery and finish count as little as v",
    ),
    Row(
        "+ attention, signals; wide",
        by_state("dfs", "wide", hidden_size=128),
        "hidden size 128",
    ),
    Row("+ attention, signals; wide, long", DFS_WIDE, "hidden size 128"),
)


def _taught(task: str) -> tuple[Row, ...]:
    """What teaching does to a task with long traces."""
    return (
        Row(f"{task}, windows", by_hints(task)),
        Row(f"{task}, windows, taught attention", by_attention(task)),
        Row(f"{task}, windows, taught attention and signals", by_state(task)),
    )


TAUGHT: Mapping[str, Table] = MappingProxyType(
    {
        "teaching": ObjectivesTable(
            "Beyond the paper: what closes the gap?",
            (
                Row("bfs", BFS),
                Row(
                    "bfs, traces first",
                    BFS_CURRICULUM,
                    "5,000 steps on hints alone, then 5,000 on hints and output",
                ),
                Row("bfs, taught bfs's attention", BFS_SUPERVISED),
                Row("bfs, taught bfs_parent's attention", BFS_SUPERVISED_PARENT),
                Row("bellman_ford", BF),
                Row(
                    "bellman_ford, traces first",
                    BF_CURRICULUM,
                    "as above",
                ),
                Row("bellman_ford, edge information", BF_EDGE_MIXED),
                Row("bellman_ford, edge information, taught attention", BF_TAUGHT),
                Row("dfs", DFS),
                *_taught("dfs"),
                Row("dfs, windows, long", DFS_TWIN),
                Row("dfs, windows, taught attention and signals, long", DFS_TAUGHT),
                Row("topological_sort", TOPOLOGICAL_SHORT, SHORT),
                *_taught("topological_sort"),
                Row("dijkstra", DIJKSTRA_SHORT, SHORT),
                *_taught("dijkstra"),
                Row("mst_prim", PRIM_SHORT, SHORT),
                *_taught("mst_prim"),
            ),
            (
                f"{MEASURED} Beside the program that taught, where one did.",
                "Sparse: the deep graphs, 1,000 of 32 nodes with long traces.",
                "Windows: four hints at a time, graphs of 16 and 32 nodes, hidden size 64, as many "
                "message-passing steps as the program selects in a hint (dfs and topological_sort "
                "3, the others 2, with attention to all nodes and edge information).",
                "160 nodes: output accuracy / graph accuracy / top-1 agreement on 32 new graphs "
                "of each kind; in brackets of how many seeds, where not of all.",
            ),
            elsewhere=LARGER,
        ),
        "from_own_state": OwnStateTable(
            "Beyond the paper: out of step, or another way?",
            tuple(row for task in LESSONS for row in _taught(task)),
            (
                "Top-1 agreement on updated nodes beside the program's run, and beside what the "
                "program would select from the network's own state before every step (what its "
                "hints say; docs/measures.md). 32 new graphs of each kind, of seeds that were "
                "looked at so. A network that runs the program and is out of step agrees from its "
                "own state; one that goes another way does not.",
            ),
            (("er", 64), ("er-sparse", 64)),
        ),
        "dfs_learned": SizesTable(
            "Beyond the paper: depth-first search, learned",
            _DFS_LEARNED,
            (
                "Outputs / whole graphs that are right / updated nodes whose largest attention is "
                "where the program that taught (or dfs) could have it (%), mean over seeds; 32 new "
                "graphs of each kind and size. er: CLRS's, p = 0.5; er-sparse: p between log n / n "
                "and 3 log n / n.",
                "All: three message-passing steps per hint, hidden size 64, windows of four hints, "
                "graphs of 16 and 32 nodes of both kinds with positions i/128, half of the hints "
                "true; Muon if not said otherwise.",
            ),
            (
                "hints alone, long",
                "+ attention, signals; long",
                "hints alone",
                "+ attention",
                "+ attention, signals",
                "+ attention, signals; wide",
                "+ attention, signals; wide, long",
            ),
        ),
        "dfs_breaking": BreakingTable(
            "Beyond the paper: depth-first search, learned: where runs go wrong",
            _DFS_LEARNED,
            (
                "32 new graphs of 64 nodes of each kind; networks run by themselves, no hint is "
                "given. Agreement by phase: return, choose, enter. Never wrong: runs in which "
                "every hint that the program claims is right at every node in every step; else "
                "the first wrong step (median over runs, mean over seeds), and which hints are "
                "wrong then (of runs that go wrong; those of 10 % and more).",
            ),
        ),
    }
)
