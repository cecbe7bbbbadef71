"""What size does to networks: those of a run beside uniform attention, an untrained and a compiled
network, on graphs of several kinds and sizes, up to where no matrix of all pairs has room.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from mechgap.compiler.certificate import Certificate
from mechgap.compiler.compile import Compiled
from mechgap.compiler.sizes import compile_for
from mechgap.compiler.target import TARGETS, Target
from mechgap.disk import write_file
from mechgap.errors import InvalidInput
from mechgap.measures.data import Data, make_data
from mechgap.measures.elsewhere import check_size
from mechgap.measures.large import LargeGraph, see_on_lists, uniform_on_lists
from mechgap.measures.snapshot import SeenRun, see_on, uniform_on
from mechgap.measures.workers import Workers, this_process
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
from mechgap.training.store import Store
from mechgap.training.train import OnProgress
from mechgap.typed import plain, rounded, typed

FILE = "sizes.json"
UNIFORM, UNTRAINED, COMPILED = "uniform", "untrained", "compiled"
ALIKE_FOR_ALL = (UNIFORM, COMPILED)
"""Baselines that do not depend on how networks begin."""


@dataclass(frozen=True)
class OnGraphs:
    """What networks do on graphs of one kind and size."""

    kind: str
    nodes: int
    count: int
    seeds: Mapping[str, SeenRun] = field(default_factory=dict)
    baselines: Mapping[str, SeenRun] = field(default_factory=dict)
    """`uniform` attention, an `untrained` network, and a `compiled` one where the mechanism can be
    certified for this size. Its graphs have positions on its grid."""
    refused: str | None = None
    """Why there is no compiled network."""
    lists: bool = False
    """Whether lists of edges were asked for, also where matrices have room."""

    FORMERLY: ClassVar = {"baselines": "yardsticks"}

    @property
    def on_lists(self) -> bool:
        """Whether networks ran on lists of edges, where predicted pointers are hardened."""
        return self.lists or self.nodes > MATRICES_UP_TO

    @property
    def key(self) -> tuple[str, int, int, bool]:
        """What graphs these are."""
        return self.kind, self.nodes, self.count, self.lists

    def missing(self, seeds: Sequence[int]) -> list[str]:
        """Of some seeds and all baselines, those of which nothing is known."""
        beside = [UNIFORM, UNTRAINED] + ([] if self.refused is not None else [COMPILED])
        return [str(seed) for seed in seeds if str(seed) not in self.seeds] + [
            name for name in beside if name not in self.baselines
        ]

    def having(self, name: str, seen: SeenRun | str) -> "OnGraphs":
        """With what was seen of a seed or baseline, or why there is no compiled network."""
        if isinstance(seen, str):
            return replace(self, refused=seen)
        if name in (UNIFORM, UNTRAINED, COMPILED):
            beside = {**self.baselines, name: seen}
            return replace(self, baselines={each: beside[each] for each in sorted(beside)})
        seeds = {**self.seeds, name: seen}
        return replace(self, seeds={each: seeds[each] for each in sorted(seeds, key=int)})


@dataclass(frozen=True)
class AtSizes:
    """A run at several sizes."""

    parameters: str
    """Which of each seed: best (by validation) or last."""
    graphs: tuple[OnGraphs, ...] = ()

    def of(self, kind: str, nodes: int, count: int, lists: bool = False) -> OnGraphs:
        """What is known of some graphs."""
        nothing = OnGraphs(kind, nodes, count, lists=lists)
        return next((each for each in self.graphs if each.key == nothing.key), nothing)

    def with_(self, found: OnGraphs) -> "AtSizes":
        """With what was found on some graphs in the place of what was known."""
        others = (each for each in self.graphs if each.key != found.key)
        order = sorted((*others, found), key=lambda each: each.key)
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
    lists: bool = False,
    workers: Workers = this_process,
    on_progress: OnProgress = lambda *_: None,
) -> AtSizes:
    """Look at a run's finished seeds and at what they are compared with on other graphs.

    It is written network by network into the run's folder; the same call resumes where one was
    stopped. With `lists`, also graphs that matrices have room for run as lists of edges: the same
    graphs, with predicted pointers as decisions.

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
        seeds = [row.seed for row in store.seeds() if row.state == "finished"]
        if not seeds:
            raise InvalidInput(f"'{folder}' has no finished seeds to measure. Go on training")
        found = load_sizes(folder, which)
        graphs = [
            OnGraphs(kind, nodes, count, lists=lists and nodes <= MATRICES_UP_TO)
            for nodes in sorted(set(sizes))
            for kind in kinds
        ]
        asked = [(on, name) for on in graphs for name in found.of(*on.key).missing(seeds)]

        def network(name: str) -> Network | None:
            if name in ALIKE_FOR_ALL:
                return None
            if name == UNTRAINED:
                return initial(recipe, jnp.int32(0)).network
            return store.network(int(name), which)

        jobs = (Look(on, name, network(name)) for on, name in asked)
        on_progress("networks", 0, len(asked))
        for done, (look, seen) in enumerate(workers(Looking(recipe), jobs), 1):
            found = found.with_(found.of(*look.on.key).having(look.name, seen))
            found.write(_path(folder, which))
            on_progress(f"{look.on.kind}, {look.on.nodes:,} nodes", done, len(asked))
    return found


def _path(folder: Path, which: str) -> Path:
    return folder / (FILE if which == "best" else f"last-{FILE}")


@dataclass(frozen=True)
class Look:
    """A network to look at, and the graphs to do so on."""

    on: OnGraphs
    """Which graphs these are; nothing is known of them here."""
    name: str
    """A seed, or a baseline."""
    network: Network | None
    """None for attention to all alike, and for the compiled network, which is made for the size."""


class Looking:
    """Looks at networks of a recipe. The graphs of the last look are at hand for the next."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self._graphs: tuple[OnGraphs, _Graphs] | None = None

    def __call__(self, look: Look) -> SeenRun | str:
        """What was seen, or why there is nothing to see."""
        if look.name == COMPILED:
            compiled = _compiled(self.recipe, look.on.nodes)
            if isinstance(compiled, str):
                return compiled
            graphs = _drawn(self.recipe, look.on, [compiled.program], compiled.certificate)
            return graphs.see(compiled.network)
        if self._graphs is None or self._graphs[0] != look.on:
            forget_programs()
            self._graphs = look.on, _drawn(self.recipe, look.on, self.recipe.mechanisms)
        graphs = self._graphs[1]
        return graphs.uniform() if look.network is None else graphs.see(look.network)


class _Graphs(NamedTuple):
    """Graphs to look at networks on: as matrices, or as lists of edges."""

    programs: Sequence[Program]
    matrices: Data | None
    lists: Sequence[LargeGraph]

    def see(self, network: Network) -> SeenRun:
        if self.matrices is not None:
            return see_on(network, self.matrices)
        return see_on_lists(network, self.lists, self.programs)

    def uniform(self) -> SeenRun:
        if self.matrices is not None:
            return uniform_on(self.matrices)
        return uniform_on_lists(self.lists, self.programs)


def _drawn(
    recipe: Recipe, on: OnGraphs, programs: Sequence[Program], within: Certificate | None = None
) -> _Graphs:
    """The graphs to look on; on a certificate's grid, if it has one."""
    grid = within.domain.position_grid if within is not None else None
    if on.nodes > MATRICES_UP_TO:
        single = _large(recipe, on.kind, on.nodes, on.count)
    else:
        batch = graphs_to_test(recipe.posed, on.kind, on.nodes, on.count)
        if not on.lists:
            return _Graphs(programs, make_data(on.kind, batch.on_grid(grid), programs), ())
        single = (batch[k : k + 1] for k in range(batch.size))
    return _Graphs(programs, None, [LargeGraph.of(each.on_grid(grid), programs) for each in single])


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
