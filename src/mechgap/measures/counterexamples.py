"""The smallest wrong graph of every seed of a run, and the files that say so: what was found as
JSON, and the runs over these graphs as safetensors.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from mechgap.disk import write_file
from mechgap.errors import InvalidInput, unknown
from mechgap.measures.counterexample import Searched, smallest_wrong
from mechgap.network.files import packed
from mechgap.tasks.enumerated import check_enumerable, largest_within
from mechgap.training.run import Run
from mechgap.training.train import OnProgress
from mechgap.typed import arrays, plain, typed

FILE, SERIES = "counterexamples.json", ".safetensors"
ASKED = 200_000
"""If nobody says otherwise all graphs of a size are tried if they are no more than these."""


@dataclass(frozen=True)
class SearchedRun:
    """What was found about every seed."""

    task: str
    parameters: str
    """Of each seed: best (by validation) or last."""
    max_nodes: int
    seeds: Mapping[int, Searched]

    ALSO_TOLD: ClassVar = ("right_on_all",)

    @property
    def right_on_all(self) -> int:
        """How many seeds are right on all graphs up to `max_nodes`."""
        return sum(self.max_nodes in s.all_of and (s.found is None or bool(s.tried))
                   for s in self.seeds.values())  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """As in its file."""
        return plain(self)

    def with_seeds(self, more: "SearchedRun") -> "SearchedRun":
        """Joined with what was found about others in the same way, or again."""
        return replace(self, seeds=dict(sorted({**self.seeds, **more.seeds}.items())))

    @staticmethod
    def load(folder: Path) -> "SearchedRun | None":
        """What was written into a run; None if nothing was."""
        again = f"Delete it, and run: mechgap counterexample {folder}"
        return SearchedRun.read(folder / FILE, again)

    @staticmethod
    def read(path: Path, remedy: str) -> "SearchedRun | None":
        """From a file, with the runs over the graphs beside it; None if there is none."""
        if not path.exists():
            return None
        beside = path.with_suffix(SERIES)
        try:
            series = load_tensors(beside.read_bytes()) if beside.exists() else {}
            return typed(SearchedRun, json.loads(path.read_text()), series)
        except (OSError, ValueError, KeyError, SafetensorError, InvalidInput) as error:
            raise InvalidInput(f"'{path}' cannot be read ({error}). {remedy}") from error

    def write(self, path: Path) -> None:
        """Into a file, whole or not at all."""
        text = json.dumps(self.to_json(), indent=1, allow_nan=False)
        write_file(path, (text + "\n").encode())

    def write_runs(self, path: Path) -> None:
        """The runs over the graphs, into the file beside that one."""
        series = packed(arrays(self), {"format": "mechgap counterexamples"})
        write_file(path.with_suffix(SERIES), series)


def counterexamples(
    run: Run,
    which: str = "best",
    max_nodes: int | None = None,
    on_progress: OnProgress = lambda *_: None,
) -> SearchedRun:
    """Search for the smallest graph on which each finished seed of a run is wrong.

    It is written into the run's folder seed by seed: the same call resumes where it was stopped.

    Args:
        run: The run.
        which: `best` (by validation) or `last` parameters.
        max_nodes: Up to this size all graphs are tried; if not given, as many as `ASKED` allows.
        on_progress: Is told how it goes.

    Raises:
        InvalidInput: there are too many graphs of that size, no finished seed, or networks that run
            at one size only.
    """
    if which not in {"best", "last"}:
        raise unknown("kind of parameters", which, ["best", "last"])
    recipe = run.recipe
    if recipe.use_pre_att_bias:
        raise InvalidInput(
            "networks with a pre-attention bias run at one size only: there are no smaller graphs"
        )
    most = largest_within(recipe.posed, ASKED) if max_nodes is None else max_nodes
    check_enumerable(recipe.posed, most)
    finished = [row.seed for row in run.finished]
    if not finished:
        raise InvalidInput(f"'{run.folder}' has no finished seeds. Go on training")
    found = SearchedRun.load(run.folder)
    if found is None or (found.parameters, found.max_nodes) != (which, most):
        found = SearchedRun(recipe.task, which, most, {})
    to_do = [seed for seed in finished if seed not in found.seeds]
    for done, seed in enumerate(to_do):
        on_progress("seeds", done, len(to_do))
        network = run.network(seed, which)
        searched = smallest_wrong(network, recipe.posed, most, recipe.mechanisms)
        found = found.with_seeds(replace(found, seeds={seed: searched}))
        found.write_runs(run.folder / FILE)
        found.write(run.folder / FILE)
    on_progress("seeds", len(to_do), len(to_do))
    return found
