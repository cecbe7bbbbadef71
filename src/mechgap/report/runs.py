"""Runs as tables: who is finished, how good, beside the paper's numbers."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mechgap.report.paper import paper_number
from mechgap.training.store import DATABASE, SeedRow, Store


def run_summary(folder: Path) -> dict[str, Any]:
    """A run's recipe, state and scores."""
    with Store.reading(folder) as store:
        recipe, seeds, about = store.recipe, store.seeds(), store.about
    finished = [row for row in seeds if row.state == "finished"]
    return {
        "folder": str(folder),
        "task": recipe.task,
        "recipe": recipe.data(),
        "versions": about["versions"],
        "commit": about["commit"],
        "native": about.get("native"),
        "states": {
            s: sum(row.state == s for row in seeds) for s in sorted({r.state for r in seeds})
        },
        "steps": {"done": sum(row.step for row in seeds), "all": recipe.train_steps * len(seeds)},
        "accuracy": _spread([row.test_of_best for row in finished]),
        "accuracy_last": _spread([row.test for row in finished]),
        "paper": paper_number(recipe),
        "diverged": {row.seed: row.diverged_at for row in seeds if row.diverged_at is not None},
        "seeds": [vars(row) for row in seeds],
    }


def run_summaries(root: Path) -> list[dict[str, Any]]:
    """Every run at or below a folder."""
    return [run_summary(path.parent) for path in sorted(root.rglob(DATABASE))]


def show_runs(root: Path) -> None:
    """Print the runs below a folder."""
    table = Table("run", "task", "seeds", "steps", "accuracy", box=None, padding=(0, 2, 0, 0))
    summaries = run_summaries(root)
    for summary in summaries:
        states = ", ".join(f"{count} {state}" for state, count in summary["states"].items())
        share = summary["steps"]["done"] / max(1, summary["steps"]["all"])
        accuracy = spread_text(summary["accuracy"])
        table.add_row(summary["folder"], summary["task"], states, f"{share:.0%}", accuracy)
    if summaries:
        Console(highlight=False).print(table)
    else:
        print(f"no runs below '{root}'")


def show_run(folder: Path) -> None:
    """Print a run's seeds and their mean ± std (max)."""
    summary = run_summary(folder)
    console = Console(highlight=False)
    table = Table(
        *("seed", "state", "step", "best at", "validation", "test", "test, last"),
        box=None,
        padding=(0, 2, 0, 0),
    )
    for seed in summary["seeds"]:
        row = SeedRow(**seed)
        state = row.state
        if row.diverged_at is not None:
            state = f"diverged at {row.diverged_at}"
        table.add_row(
            str(row.seed),
            state,
            f"{row.step:,}",
            "-" if row.best_step is None else f"{row.best_step:,}",
            *map(_percent, (row.best_validation, row.test_of_best, row.test)),
        )
    console.print(table)
    console.print()
    console.print(f"test accuracy {spread_text(summary['accuracy'])}, best validation's parameters")
    console.print(f"              {spread_text(summary['accuracy_last'])}, last parameters")
    paper = summary["paper"]
    if paper:
        console.print(f"the paper     {spread_text(paper)}, {paper['n']} seeds")
    for seed, step in summary["diverged"].items():
        console.print(f"seed {seed} diverged at step {step} and is in none of these numbers")


def spread_text(spread: dict[str, Any] | None) -> str:
    """A spread as the paper writes it: mean ± std (max), in percent."""
    if not spread or not spread["n"]:
        return "-"
    deviation = "" if spread["std"] is None else f" ± {spread['std']:.2f}"
    largest = "" if spread.get("max") is None else f" ({spread['max']:.2f})"
    return f"{spread['mean']:.2f}{deviation}{largest} %, n = {spread['n']}"


def _spread(scores: Sequence[float | None]) -> dict[str, Any]:
    percent = [100 * score for score in scores if score is not None]
    return {
        "mean": statistics.fmean(percent) if percent else None,
        "std": statistics.stdev(percent) if len(percent) > 1 else None,
        "max": max(percent, default=None),
        "n": len(percent),
    }


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"
