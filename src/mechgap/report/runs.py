"""Runs as tables: who is finished, how good, beside the paper's numbers."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mechgap.report.paper import paper_number
from mechgap.training.run import Run
from mechgap.training.store import DATABASE


def run_summary(folder: Path) -> dict[str, Any]:
    """A run's recipe, state and scores, and the paper's number beside them."""
    run = Run.open(folder)
    return {**run.to_json(), "paper": paper_number(run.recipe)}


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
    run = Run.open(folder)
    console = Console(highlight=False)
    table = Table(
        *("seed", "state", "step", "best at", "validation", "test", "test, last"),
        box=None,
        padding=(0, 2, 0, 0),
    )
    for row in run.seeds:
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
    scores = {"best validation's": run.accuracy, "last": run.accuracy_last}
    for said, (which, found) in zip(("test accuracy", ""), scores.items(), strict=True):
        console.print(f"{said:13} {spread_text(vars(found))}, {which} parameters")
    paper = paper_number(run.recipe)
    if paper:
        console.print(f"the paper     {spread_text(paper)}, {paper['n']} seeds")
    for seed, step in run.diverged.items():
        console.print(f"seed {seed} diverged at step {step} and is in none of these numbers")


def spread_text(spread: dict[str, Any] | None) -> str:
    """A spread as the paper writes it: mean ± std (max), in percent."""
    if not spread or not spread["n"]:
        return "-"
    deviation = "" if spread["std"] is None else f" ± {spread['std']:.2f}"
    largest = "" if spread.get("max") is None else f" ({spread['max']:.2f})"
    return f"{spread['mean']:.2f}{deviation}{largest} %, n = {spread['n']}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"
