"""A population as a folder that the Hugging Face hub takes as it is, and back.

    config.json          the recipe, which checkpoint, and every seed with its scores
    seed-N.safetensors   the networks
    measures.json        what was measured, if it was
    README.md            a model card that is made of these

Nothing is sent: pushing it is the user's own command. Nothing in such a folder is executed.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mechgap import __version__
from mechgap.errors import InvalidInput, unknown
from mechgap.measures.results import NUMBERS, Results, load_results
from mechgap.network.files import load_network, save_network
from mechgap.report.answer import answer, beyond_the_answer
from mechgap.report.measures import GAP_COLUMNS, PERCENTAGES, people, percent
from mechgap.training.presets import recipe_from
from mechgap.training.recipe import Recipe
from mechgap.training.rows import SeedRow
from mechgap.training.run import Run
from mechgap.training.store import Store

FORMAT = "mechgap population 1"
CONFIG, CARD = "config.json", "README.md"


def write_hub_folder(run: Run, out: Path, which: str = "best") -> Path:
    """Write a run's finished networks, what was measured of them, and a card; whole or not at all.

    Args:
        run: With at least one finished seed.
        out: A folder that does not exist yet.
        which: `best` (by validation) or `last` checkpoints.

    Raises:
        InvalidInput: there is nothing to write, or nowhere to write it.
    """
    if which not in {"best", "last"}:
        raise unknown("checkpoint", which, ["best", "last"])
    if not run.finished:
        raise InvalidInput(f"'{run.folder}' has no finished seed. Train it to its end first")
    if out.exists():
        raise InvalidInput(f"'{out}' exists already. Choose a new folder")
    if not out.parent.is_dir():
        raise InvalidInput(f"there is no folder '{out.parent}' to make {out.name} in")
    results = _measured(run, which)
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            for row in run.finished:
                about = {"seed": row.seed, "which": which}
                save_network(run.network(row.seed, which), partial / _file(row.seed), about)
            if results is not None:
                shutil.copyfile(results.folder(run.folder) / NUMBERS, partial / NUMBERS)
            (partial / CONFIG).write_text(json.dumps(_config(run, which), indent=1) + "\n")
            (partial / CARD).write_text(card(run, which, results))
            partial.chmod(0o755)
            partial.rename(out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise InvalidInput(f"cannot write '{out}': {error}") from error
    return out


def read_hub_folder(folder: Path, out: Path) -> int:
    """Make a run of such a folder, so that it can be measured like any other; how many seeds.

    Both checkpoints of its seeds are the one that the folder has. Everything is checked before
    anything is written.

    Raises:
        InvalidInput: it is no such folder, it is damaged, or the run exists already.
    """
    recipe, seeds = _read_config(folder)
    networks = {row.seed: load_network(folder / _file(row.seed))[0] for row in seeds}
    for seed, network in networks.items():
        if network.task.name != recipe.task or network.config.hidden_size != recipe.hidden_size:
            raise InvalidInput(f"'{folder / _file(seed)}' is not a network of {CONFIG}'s recipe")
    if out.exists():
        raise InvalidInput(f"'{out}' exists already. Choose a new folder")
    with Store.writing(out, recipe, 1) as store:
        for row in seeds:
            scores = row.best_validation, row.test_of_best
            store.put(row.seed, networks[row.seed], *scores, f"from {folder.name}")
    return len(seeds)


def card(run: Run, which: str, results: Results | None) -> str:
    """The model card: what these networks are, what was measured, and how to load them."""
    recipe = run.recipe
    head = {
        "library_name": "mechgap",
        "tags": ["mechgap", "clrs", "neural-algorithmic-reasoning", "gatv2", recipe.task],
    }
    front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in head.items())
    changed = recipe.differences(Recipe(task=recipe.task, program=recipe.program))
    said, table = "They were not measured.", ""
    if results is not None:
        said = f"{answer(results)} {beyond_the_answer(results)}".rstrip()
        table = _table(results)
    return f"""---
{front}
---

# {recipe.task}: {len(run.finished)} graph attention networks

{said}

{table}
- Checkpoint: {"the best by validation" if which == "best" else "the final one"}, after at most
  {recipe.train_steps:,} steps; hidden size {recipe.hidden_size}.
- Differs from the paper's recipe: {"; ".join(changed) or "nowhere"}.
- Made with mechgap {__version__}. What the numbers mean and what they do not is in its
  documents on measures.

```python
from mechgap.network.files import load_network

network, about = load_network("{_file(run.finished[0].seed)}")
```

`mechgap import FOLDER --out runs/{recipe.task}` makes a run of all of them, to be measured again.
"""


def _table(results: Results) -> str:
    mechanism = results.mechanisms[0] if results.mechanisms else None
    gap = {k: v for k, v in GAP_COLUMNS.items() if k in {"agreement", "misplaced", "tv"}}
    head = ["", *PERCENTAGES.values(), *(gap.values() if mechanism else ())]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, rows in people(results, "learned").items():
        cells = [percent([getattr(row, c) for row in rows]) for c in PERCENTAGES]
        if mechanism:
            gaps = [row.gaps["test"][mechanism] for row in rows]
            cells += [percent([getattr(each, c) for each in gaps]) for c in gap]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines) + "\n"


def _measured(run: Run, which: str) -> Results | None:
    """What is known of these checkpoints."""
    try:
        results = load_results(run.folder)
    except InvalidInput:
        return None
    same = {*results.seeds} == {row.seed for row in run.finished}
    return results if results.parameters == which and same else None


def _config(run: Run, which: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "mechgap": __version__,
        "model_type": "mechgap",
        "which": which,
        "recipe": run.recipe.data(),
        "seeds": [
            {
                "seed": row.seed,
                "file": _file(row.seed),
                "best_step": row.best_step,
                "validation": row.best_validation if which == "best" else None,
                "test": row.test_of_best if which == "best" else row.test,
            }
            for row in run.finished
        ],
    }


def _read_config(folder: Path) -> tuple[Recipe, Sequence[SeedRow]]:
    try:
        config: Mapping[str, Any] = json.loads((folder / CONFIG).read_text())
        if config.get("format") != FORMAT:
            raise InvalidInput(f"'{folder}' holds no mechgap population ({CONFIG} says another)")
        recipe = recipe_from(config["recipe"])
        rows = [
            SeedRow(
                int(each["seed"]), "finished", recipe.train_steps,
                best_validation=each["validation"], test_of_best=each["test"],
            )
            for each in config["seeds"]
        ]  # fmt: skip
    except FileNotFoundError as error:
        raise InvalidInput(f"'{folder}' has no {CONFIG}: it is no population of mechgap") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"'{folder / CONFIG}' is damaged: {error!r}") from error
    if not rows:
        raise InvalidInput(f"'{folder / CONFIG}' names no seed")
    return recipe, rows


def _file(seed: int) -> str:
    return f"seed-{seed}.safetensors"
