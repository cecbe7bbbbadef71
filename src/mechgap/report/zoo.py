"""All compiled programs in one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from mechgap.compiler.sizes import Largest
from mechgap.compiler.verify import Verification
from mechgap.compiler.zoo import Attempt
from mechgap.report.measures import WIDE


@dataclass(frozen=True)
class ZooRow:
    """A program in a target, and how its verification went if there was one."""

    attempt: Attempt
    verification: Verification | None

    def data(self) -> dict[str, Any]:
        """As plain data."""
        attempt, found = self.attempt, self.verification
        about: dict[str, Any] = {
            "program": attempt.program.name,
            "task": attempt.program.task,
            "target": attempt.target.name,
            "refused": attempt.refused,
        }
        if attempt.compiled is not None:
            network, certificate = attempt.compiled.network, attempt.compiled.certificate
            about |= {
                "hidden_size": network.config.hidden_size,
                "message_passing_steps": network.config.nb_msg_passing_steps,
                "state_units": len(attempt.compiled.hidden_units),
                "attention_units": len(attempt.compiled.attention_units),
                "parameters": network.parameters,
                "nodes": certificate.domain.nodes,
                "steps": certificate.domain.steps,
                "attention_error": certificate.attention_error,
                "unclaimed": dict(attempt.program.unclaimed),
            }
        if found is not None:
            about |= {
                "exact": found.exact,
                "graphs": found.graphs,
                "outputs": dict(found.outputs),
                "hints": dict(found.hints),
                "verdict": found.verdict.value,
                "inside_certificate": found.inside_certificate,
                "outside_certificate": found.outside_certificate,
            }
        return about


def show_zoo(rows: Sequence[ZooRow]) -> None:
    """Print the table, then what was refused and why."""
    console = _console()
    table = Table(
        Column("program", no_wrap=True),
        *("target", "units: state", "attention", "hidden", "parameters"),
        *("certified nodes", "attention error", "outputs", "hints", "graphs inside", "exact"),
        box=None,
        padding=(0, 2, 0, 0),
    )
    for row in rows:
        about = row.data()
        if about["refused"] is None:
            table.add_row(*_cells(about))
    console.print(table)
    programs = {e.attempt.program.name: e.attempt.program for e in rows}
    missing = [f"{n}: {', '.join(p.unclaimed)}" for n, p in programs.items() if p.unclaimed]
    if missing:
        told = "; ".join(missing)
        console.print(f"\nhints that are not claimed (mechgap verify says why): {told}")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.attempt.refused is not None:
            reasons.setdefault(row.attempt.refused, []).append(row.attempt.target.name)
    if reasons:
        console.print("\nnot compiled:")
    for why, targets in reasons.items():
        console.print(f"  {', '.join(targets)}: {why}")


def _cells(about: dict[str, Any]) -> tuple[str, ...]:
    shape = (
        *(about["program"], about["target"], str(about["state_units"])),
        *(str(about["attention_units"]), str(about["hidden_size"]), f"{about['parameters']:,}"),
        *(str(about["nodes"]), f"{about['attention_error']:.1g}"),
    )
    if "exact" not in about:
        return (*shape, "-", "-", "0", "-")
    outputs, hints = min(about["outputs"].values()), min(about["hints"].values())
    exact = "yes" if about["exact"] else f"NO: {about['verdict']}"
    inside = f"{about['inside_certificate']} of {about['graphs']}"
    return (*shape, f"{outputs:.4f}", f"{hints:.4f}", inside, exact)


def show_largest(found: Sequence[Largest]) -> None:
    """Print how large graphs may be, then what refuses larger ones."""
    console = _console()
    table = Table(
        Column("program", no_wrap=True),
        *("target", "certified nodes", "competing values apart there, 1 hop"),
        box=None,
        padding=(0, 2, 0, 0),
    )
    taken = [each for each in found if each.nodes]
    for each in taken:
        apart = "-" if each.value_gap is None else f"{each.value_gap:.2g}"
        table.add_row(each.program, each.target, f"{each.nodes:,}", apart)
    console.print(table)
    console.print("\nwhat refuses larger graphs:")
    for each in taken:
        console.print(f"  {each.program}, {each.target}: {each.why}")


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDE)
