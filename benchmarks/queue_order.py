"""Who is taken out of the queue? Learned networks of Dijkstra's and Prim's algorithm beside it.

    python benchmarks/queue_order.py RUN [RUN …]

A step of both begins with a look at the whole queue: everybody attends to its smallest node. Up to
the first step in which a hint is wrong the network's state is the algorithm's, so there its
attention can be compared with the queue: whom does it look at where it does not look at the
smallest? Then, over the whole run: in which order are nodes taken (the hint `u`), and how many are
taken at all?
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from measuring import earlier, save
from mechgap.measures.breaking import runs_of
from mechgap.measures.data import make_data
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.programs.interpreter import Execution, interpret
from mechgap.training.population import graphs_to_test
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store
from mechgap.typed import plain, rounded, typed

FILE = "queue_order"
GRAPHS, COUNT = (("er", 16), ("er", 64), ("er-sparse", 64)), 32
KEYS = {"dijkstra": "dist", "mst_prim": "key"}


@dataclass(frozen=True)
class Order:
    """One network on graphs of one kind and size."""

    seed: int
    graphs: str
    rows: int
    """Whose largest entry is looked at: all nodes, in steps before a run is wrong, while there are
    two in the queue."""
    right: float
    """Share of them that look at the queue's smallest node."""
    smallest_right: float
    """The same of the smallest nodes themselves: they must find out who they are."""
    in_queue: float
    """Of the wrong ones, how many look at somebody in the queue."""
    rank: float
    """The place in the queue of those, their median; 0 is the smallest."""
    waiting: float
    """How many are in the queue then, median."""
    farther: float
    """By how much their key is larger than the smallest, median."""
    usual: float
    """By how much the second is larger than the smallest in all these steps, median."""
    outputs: float
    taken: float
    """Share of nodes that are ever taken."""
    tau: float
    """Kendall's τ of the order in which they are, and the algorithm's."""


@dataclass(frozen=True)
class Found:
    """All runs so far."""

    runs: dict[str, tuple[Order, ...]] = field(default_factory=dict)


def looked_at(folder: Path) -> tuple[Order, ...]:
    """All finished networks of a run."""
    with Store.reading(folder) as store:
        recipe = store.recipe
        seeds = [row.seed for row in store.seeds() if row.state == "finished"]
        networks = {seed: store.network(seed, "best") for seed in seeds}
    return tuple(order for kind, nodes in GRAPHS for order in orders(recipe, networks, kind, nodes))


def orders(recipe: Recipe, networks: dict[int, Network], kind: str, nodes: int) -> Sequence[Order]:
    """Networks of a recipe on graphs of one kind and size."""
    batch = graphs_to_test(recipe.posed, kind, nodes, COUNT)
    program = recipe.mechanisms[0]
    data = make_data(kind, batch, [program])
    inputs = {name: np.asarray(value) for name, value in batch.inputs.items()}
    truth = interpret(program, inputs, batch.steps)
    order = np.asarray(batch.hints["u"])[1:].argmax(-1)
    found = []
    for seed, network in networks.items():
        trace = run(network, batch)
        runs = runs_of(network, data, trace)
        assert runs is not None
        # The first of the two message-passing steps of every hint looks at the queue.
        attention = np.asarray(trace.attention)[::2].mean(2)
        right_so_far = np.arange(batch.steps)[:, None] <= runs.first
        whom = attention.argmax(-1)
        own_order = np.asarray(trace.hints["u"]).argmax(-1)
        pointers = np.asarray(trace.outputs["pi"]).argmax(-1)
        taken, tau = _orders_of(own_order, order, np.asarray(batch.lengths) - 1)
        found.append(
            Order(
                seed=seed,
                graphs=f"{kind}-{nodes}",
                **_queue(truth, KEYS[recipe.task], whom, right_so_far),
                outputs=float(np.mean(pointers == np.asarray(batch.outputs["pi"]))),
                taken=taken,
                tau=tau,
            )
        )
    return found


def _queue(truth: Execution, key: str, whom: np.ndarray, counted: np.ndarray) -> dict[str, Any]:
    """Whom nodes attend to, ``[steps, graphs, nodes]``, beside the queue."""
    queued = truth.states["queued"][:-1] > 0
    keys = np.where(queued, truth.states[key][:-1], np.inf)
    smallest, count = keys.argmin(-1), queued.sum(-1)
    counted = counted & (count > 1)
    rows = np.broadcast_to(counted[..., None], whom.shape)
    wrong = rows & (whom != smallest[..., None])
    waits = wrong & np.take_along_axis(queued, whom, -1)
    ranks = np.take_along_axis(keys.argsort(-1).argsort(-1), whom, -1)
    in_order = np.sort(keys, -1)
    with np.errstate(invalid="ignore"):
        farther = np.take_along_axis(keys, whom, -1) - in_order[..., :1]
        usual = (in_order[..., 1] - in_order[..., 0])[counted]
    own = np.take_along_axis(whom, smallest[..., None], -1)[..., 0] == smallest
    waiting = np.broadcast_to(count[..., None], whom.shape)
    return {
        "rows": int(rows.sum()),
        "right": float(1 - wrong.sum() / rows.sum()),
        "smallest_right": float(own[counted].mean()),
        "in_queue": float(waits.sum() / max(1, wrong.sum())),
        "rank": _median(ranks[waits]),
        "waiting": _median(waiting[waits]),
        "farther": _median(farther[waits]),
        "usual": _median(usual),
    }


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if values.size else float("nan")


def _orders_of(own: np.ndarray, true: np.ndarray, lengths: np.ndarray) -> tuple[float, float]:
    """Share of nodes ever taken, and Kendall's τ of when they first are: means over graphs."""
    shares, taus = [], []
    for k, length in enumerate(lengths):
        first = {node: step for step, node in reversed([*enumerate(own[:length, k])])}
        nodes = list(dict.fromkeys(true[:length, k].tolist()))
        known = [node for node in nodes if node in first]
        shares.append(len(known) / len(nodes))
        if len(known) > 1:
            ranks = stats.kendalltau(range(len(known)), [first[node] for node in known])
            taus.append(float(np.asarray(ranks)[0]))
    return float(np.mean(shares)), float(np.mean(taus)) if taus else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    found = typed(Found, earlier(FILE) or {}).runs
    for folder in parser.parse_args().runs:
        found = {**found, folder.name: looked_at(folder)}
        save(FILE, rounded(plain(Found(found))))
        for order in found[folder.name]:
            print(folder.name, *(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}"
                                 for k, v in plain(order).items()))  # fmt: skip


if __name__ == "__main__":
    main()
