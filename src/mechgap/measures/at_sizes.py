"""What size does to networks: those of a run, an untrained and a compiled one on graphs of several
kinds and sizes, up to where no matrix of all pairs has room.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from mechgap.compiler.certificate import Certificate
from mechgap.compiler.compile import Compiled
from mechgap.compiler.sizes import compile_for
from mechgap.compiler.target import TARGETS, Target
from mechgap.errors import InvalidInput
from mechgap.measures.data import make_data
from mechgap.measures.elsewhere import check_size
from mechgap.measures.large import LargeGraph, see_on_lists
from mechgap.measures.snapshot import SeenRun, see_on
from mechgap.network.network import Network
from mechgap.programs.program import Program
from mechgap.tasks.batch import Batch
from mechgap.tasks.kinds import MATRICES_UP_TO, kinds_of
from mechgap.tasks.memory import check_drawing
from mechgap.tasks.official import SAMPLES
from mechgap.tasks.sampling import TEST_P, check_nodes, sample
from mechgap.training.local import forget_programs
from mechgap.training.population import graphs_to_test, initial
from mechgap.training.recipe import Recipe
from mechgap.training.store import Store, write_file
from mechgap.training.train import Tell
from mechgap.typed import plain, rounded, typed

FILE = "sizes.json"
_UNTRAINED, _COMPILED = "untrained", "compiled"


@dataclass(frozen=True)
class OnGraphs:
    """What networks do on graphs of one kind and size."""

    kind: str
    nodes: int
    count: int
    seeds: Mapping[str, SeenRun] = field(default_factory=dict)
    yardsticks: Mapping[str, SeenRun] = field(default_factory=dict)
    """`untrained`, and `compiled` where the mechanism can be certified for this size. Its graphs
    have positions on its grid."""
    refused: str | None = None
    """Why there is no compiled network."""

    @property
    def on_lists(self) -> bool:
        """Whether networks ran on lists of edges, where predicted pointers are hardened."""
        return self.nodes > MATRICES_UP_TO


@dataclass(frozen=True)
class AtSizes:
    """A run at several sizes."""

    parameters: str
    """Which of each seed: best (by validation) or last."""
    graphs: tuple[OnGraphs, ...] = ()

    def of(self, kind: str, nodes: int, count: int) -> OnGraphs:
        """What is known of some graphs."""
        for each in self.graphs:
            if (each.kind, each.nodes, each.count) == (kind, nodes, count):
                return each
        return OnGraphs(kind, nodes, count)

    def with_(self, found: OnGraphs) -> "AtSizes":
        """With what was found on some graphs in the place of what was known."""
        others = [g for g in self.graphs if (g.kind, g.nodes, g.count)
                  != (found.kind, found.nodes, found.count)]  # fmt: skip
        order = sorted((*others, found), key=lambda g: (g.kind, g.nodes, g.count))
        return replace(self, graphs=tuple(order))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return rounded(plain(self))

    @staticmethod
    def read(path: Path) -> "AtSizes | None":
        """What a file says; None where there is none.

        Raises:
            InvalidInput: it cannot be read.
        """
        try:
            return typed(AtSizes, json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, InvalidInput) as error:
            raise InvalidInput(
                f"'{path}' cannot be read ({error}). Remove it and run again"
            ) from error

    def write(self, path: Path) -> None:
        """Write a file, whole or not at all."""
        text = json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"
        write_file(path, text.encode())


def load_sizes(folder: Path, which: str = "best") -> AtSizes:
    """What is known of a run; nothing where nobody looked."""
    found = AtSizes.read(_path(folder, which))
    return AtSizes(which) if found is None else found


def measure_sizes(
    folder: Path,
    kinds: Sequence[str],
    sizes: Sequence[int],
    *,
    which: str = "best",
    count: int = SAMPLES,
    tell: Tell = lambda *_: None,
) -> AtSizes:
    """Look at a run's finished seeds, an untrained and a compiled network on other graphs.

    It is written seed by seed into the run's folder; the same call goes on where one was stopped.

    Raises:
        InvalidInput: there is no such kind or size, or there are no finished seeds.
    """
    with Store.reading(folder) as store:
        recipe = store.recipe
        if count < 1:
            raise InvalidInput(f"count must be at least 1; got {count}")
        for kind in kinds:
            kinds_of(kind)
        for nodes in sizes:
            check_nodes(nodes)
            check_size(recipe, nodes)
            at_once = 1 if nodes > MATRICES_UP_TO else count
            check_drawing(recipe.posed, at_once, nodes, "Take smaller ones (--nodes)")
        seeds = [str(row.seed) for row in store.seeds() if row.state == "finished"]
        if not seeds:
            raise InvalidInput(f"'{folder}' has no finished seeds to measure. Go on training")
        found = load_sizes(folder, which)
        asked = [(kind, nodes) for nodes in sorted(set(sizes)) for kind in kinds]
        for done, (kind, nodes) in enumerate(asked):
            told = f"{kind}, {nodes:,} nodes"
            tell(told, done, len(asked))
            for each in _measured(found.of(kind, nodes, count), recipe, store, which, seeds):
                found = found.with_(each)
                found.write(_path(folder, which))
            forget_programs()
    return found


def _path(folder: Path, which: str) -> Path:
    return folder / (FILE if which == "best" else f"last-{FILE}")


def _measured(
    on: OnGraphs, recipe: Recipe, store: Store, which: str, seeds: Sequence[str]
) -> Iterator[OnGraphs]:
    """One network after the other, those that are not known yet."""
    missing = [seed for seed in seeds if seed not in on.seeds]
    programs = recipe.mechanisms
    if missing or _UNTRAINED not in on.yardsticks:
        see = _seeing(recipe, on, programs)
        for seed in missing:
            on = replace(on, seeds={**on.seeds, seed: see(store.network(int(seed), which))})
            yield on
        if _UNTRAINED not in on.yardsticks:
            seen = see(initial(recipe, jnp.int32(0)).network)
            on = replace(on, yardsticks={**on.yardsticks, _UNTRAINED: seen})
            yield on
    if _COMPILED not in on.yardsticks and on.refused is None:
        compiled = _compiled(recipe, on.nodes)
        if isinstance(compiled, str):
            yield replace(on, refused=compiled)
            return
        seen = _seeing(recipe, on, [compiled.program], compiled.certificate)(compiled.network)
        yield replace(on, yardsticks={**on.yardsticks, _COMPILED: seen})


def _seeing(
    recipe: Recipe, on: OnGraphs, programs: Sequence[Program], within: Certificate | None = None
) -> Callable[[Network], SeenRun]:
    """What looks at networks on these graphs; on a certificate's grid, if it has one."""
    grid = within.domain.position_grid if within is not None else None
    if not on.on_lists:
        batch = graphs_to_test(recipe.posed, on.kind, on.nodes, on.count)
        data = make_data(on.kind, batch.on_grid(grid), programs)
        return lambda network: see_on(network, data)
    graphs = [
        LargeGraph.of(graph.on_grid(grid), programs)
        for graph in _large(recipe, on.kind, on.nodes, on.count)
    ]
    return lambda network: see_on_lists(network, graphs, programs)


def _large(recipe: Recipe, kind: str, nodes: int, count: int) -> Iterator[Batch]:
    """One graph at a time: together they would not have room."""
    for k in range(count):
        key = jax.random.fold_in(jax.random.key(0x7E57), k)
        yield sample(recipe.posed, key, batch_size=1, nodes=nodes, p=TEST_P, random_pos=False,
                     graphs=kind)  # fmt: skip


def _compiled(recipe: Recipe, nodes: int) -> Compiled | str:
    """The task's first mechanism, in the architecture of the run if it can be; or why not."""
    if not recipe.mechanisms:
        return f"no exact program of {recipe.task} is known"
    refused = list[str]()
    others = (target for target in TARGETS.values() if not target.pre_attention_bias)
    for target in dict.fromkeys([Target.of(recipe.network_config), *others]):
        try:
            return compile_for(recipe.mechanisms[0], target, nodes)
        except InvalidInput as error:
            refused.append(f"{target.name}: {error}")
    return "; ".join(refused)
