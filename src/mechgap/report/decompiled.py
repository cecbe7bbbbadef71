"""What networks run, in words and tables."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from mechgap.decompiler.explanation import Explanation
from mechgap.decompiler.population import FILE, DecompiledRun
from mechgap.report.measures import WIDE


def show_decompiled(run: DecompiledRun, folder: Path) -> None:
    """Print what the seeds of a run do."""
    console = _console()
    for seed, explanation in run.seeds.items():
        _show(console, f"seed {seed}", explanation)
    console.print("In short: " + "; ".join(f"{n} × {what}" for what, n in run.programs.items()))
    console.print(f"\nwritten: {folder}/{FILE}")


def show_explanation(name: str, explanation: Explanation) -> None:
    """Print what one network does, with its program."""
    console = _console()
    _show(console, name, explanation)
    if explanation.program is not None:
        console.print(explanation.program, markup=False)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDE)


def _show(console: Console, name: str, found: Explanation) -> None:
    console.print(f"{name}: {found.verdict}", markup=False)
    console.print(_forced(found))
    for k, phase in enumerate(found.phases):
        which = f"phase {k}: " if len(found.phases) > 1 else ""
        words = "; ".join(
            f"{w.weight:+.2f} {'' if w.receivers == 'all' else f'[{w.receivers}] '}{w.word}"
            for w in phase.soft
        )
        shares = ", ".join(f"{100 * share:.0f}" for share in phase.path)
        console.print(f"  {which}attends by {words}", markup=False)
        console.print(f"  words 1, 2, … explain {shares} % of held-out attention\n", markup=False)


def _forced(found: Explanation) -> Table:
    """Accuracies, by what the network is made to attend to."""
    table = Table(box=None, pad_edge=False)
    table.add_column("outputs right, %")
    first = next(iter(found.forced.values()))
    named = ["own", "hardened", "rule", "rule_softly", "soft", "uniform", "floor"]
    columns = {"rule_softly": "rule, softly", "soft": "soft form"}
    for name in (*named, *first.mechanisms):
        table.add_column(columns.get(name, name), justify="right")
    for which, forced in found.forced.items():
        values = [*(getattr(forced, n) for n in named), *forced.mechanisms.values()]
        label = f"{which}: {forced.graphs} graphs of {forced.nodes} nodes"
        table.add_row(label, *(f"{100 * value:.1f}" for value in values))
    return table
