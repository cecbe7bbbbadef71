"""Compiled programs and their verification, for the terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mechgap.compiler.compile import Compiled
from mechgap.compiler.verify import Verification


def show(view: RenderableType) -> None:
    """Print a view."""
    Console(highlight=False).print(view)


def _pairs(rows: list[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*row)
    return table


def compiled_view(compiled: Compiled) -> Group:
    """What was compiled, and what is guaranteed."""
    network = compiled.network
    headline = Text.assemble(
        (compiled.program.name, "bold"),
        f" for {compiled.target.name} ({compiled.target.summary}): "
        f"{network.parameters:,} parameters, hidden size {network.config.hidden_size}\n",
    )
    state = ", ".join(unit.label for unit in compiled.hidden_units)
    attention = ", ".join(unit.label for unit in compiled.attention_units)
    guarantees = [
        ("state units", state),
        ("attention units", attention),
        *compiled.certificate.guarantees,
    ]
    return Group(headline, _pairs(guarantees))


def verification_view(compiled: Compiled, found: Verification) -> Group:
    """How the comparison went."""
    headline = Text.assemble(
        (compiled.program.name, "bold"),
        f" for {compiled.target.name}: ",
        (found.sentence, "bold green" if found.exact else "bold red"),
        "\n",
    )
    rows = [(f"output {name}", f"{share:.6f}") for name, share in found.outputs.items()]
    rows.append(("graphs with every output right", f"{found.whole:.6f}"))
    rows += [(f"hint {name}", f"{share:.6f}") for name, share in found.hints.items()]
    for name, missing in found.unclaimed.items():
        agrees = "not predicted" if missing.share is None else f"{missing.share:.6f}"
        rows.append((f"hint {name}, not claimed", f"{agrees}: {missing.why}"))
    rows += [
        ("attention, largest difference", f"{found.attention:.2g}"),
        ("graphs inside the certificate", str(found.inside_certificate)),
        ("missed by the network", str(found.missed_graphs_inside)),
        ("where the program is not CLRS's", str(found.unlike_trace_inside)),
        ("graphs outside it", str(found.outside_certificate)),
        ("missed by the network", str(found.missed_graphs_outside)),
        *((f"outside: {why}", str(count)) for why, count in found.outside_reasons.items()),
    ]
    parts: list[RenderableType] = [headline, _pairs(rows)]
    if found.first is not None:
        table = Table(
            *("graph", "what", "step", "node", "interpreter", "network", "CLRS", "certificate"),
            box=None,
            padding=(0, 2, 0, 0),
            title="first disagreement",
            title_justify="left",
        )
        at = found.first
        table.add_row(
            *(str(at.graph), at.name, "output" if at.step is None else str(at.step), str(at.node)),
            *(f"{at.interpreter:g}", f"{at.network:g}"),
            "-" if at.clrs is None else f"{at.clrs:g}",
            "inside" if at.inside else "outside",
        )
        parts.append(table)
    return Group(*parts)
