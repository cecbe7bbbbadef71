"""What the networks of a run are running, and the file that says so."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from mechgap.decompiler.decompile import decompile
from mechgap.decompiler.explanation import Explanation
from mechgap.decompiler.graphs import LARGE, SMALL, graphs_for
from mechgap.disk import write_file
from mechgap.errors import InvalidInput, unknown
from mechgap.training.run import Run
from mechgap.training.train import OnProgress
from mechgap.typed import plain, rounded, typed

FILE = "decompiled.json"


@dataclass(frozen=True)
class DecompiledRun:
    """What was found about every seed."""

    task: str
    parameters: str
    """Of each seed: best (by validation) or last."""
    seeds: Mapping[int, Explanation]

    ALSO_TOLD: ClassVar = ("programs",)

    @property
    def programs(self) -> Mapping[str, int]:
        """How many seeds run what, most first."""
        return dict(Counter(e.in_short for e in self.seeds.values()).most_common())

    def to_json(self) -> dict[str, Any]:
        """As in its file."""
        return rounded(plain(self))

    @staticmethod
    def load(folder: Path) -> "DecompiledRun | None":
        """What was written into a run; None if nothing was."""
        return DecompiledRun.read(folder / FILE, f"Run: mechgap decompile {folder}")

    @staticmethod
    def read(path: Path, remedy: str) -> "DecompiledRun | None":
        """From a file; None if there is none."""
        if not path.exists():
            return None
        try:
            return typed(DecompiledRun, json.loads(path.read_text()))
        except (OSError, ValueError, KeyError, InvalidInput) as error:
            raise InvalidInput(f"'{path}' cannot be read ({error}). {remedy}") from error

    def write(self, path: Path) -> None:
        """Into a file, whole or not at all."""
        text = json.dumps(self.to_json(), indent=1, allow_nan=False)
        write_file(path, (text + "\n").encode())

    def with_seeds(self, more: Mapping[int, Explanation]) -> "DecompiledRun":
        """Joined with what was found about others, or again."""
        return replace(self, seeds=dict(sorted({**self.seeds, **more}.items())))


def decompile_run(
    run: Run,
    which: str = "best",
    seeds: Sequence[int] | None = None,
    on_progress: OnProgress = lambda *_: None,
) -> DecompiledRun:
    """Decompile a run's finished seeds, and write what was found into its folder.

    It is written seed by seed. Without `seeds`, what the folder says already is not found again:
    the same call resumes where it was.

    Args:
        run: The run.
        which: `best` (by validation) or `last` parameters.
        seeds: Some of them, which are decompiled anew; those that nobody has yet if not given.
        on_progress: Is told how it goes.

    Returns:
        What is known about all seeds.

    Raises:
        InvalidInput: there are no such parameters, or no such finished seed.
    """
    if which not in {"best", "last"}:
        raise unknown("kind of parameters", which, ["best", "last"])
    finished = [row.seed for row in run.finished]
    wanted = finished if seeds is None else list(seeds)
    missing = sorted({*wanted} - {*finished})
    if missing or not wanted:
        raise InvalidInput(
            f"'{run.folder}' has these finished seeds: {finished}; asked for {wanted or 'any'}. "
            "Go on training"
        )
    found = DecompiledRun.load(run.folder)
    if found is None or found.parameters != which:
        found = DecompiledRun(run.recipe.task, which, {})
    to_do = [seed for seed in wanted if seeds is not None or seed not in found.seeds]
    # A pre-attention bias allows one size only.
    size = run.recipe.validation_nodes if run.recipe.use_pre_att_bias else None
    graphs = graphs_for(run.recipe.posed, size or SMALL, size or LARGE)
    for done, seed in enumerate(to_do):
        on_progress("seeds", done, len(to_do))
        explanation = decompile(run.network(seed, which), graphs, run.recipe.mechanisms).explanation
        found = found.with_seeds({seed: explanation})
        found.write(run.folder / FILE)
    on_progress("seeds", len(to_do), len(to_do))
    return found
