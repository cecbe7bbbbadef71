"""Write the measured numbers from `benchmarks/results/` into the README's table.

    python scripts/update_readme.py

Nothing in the table is typed by hand; a test checks that README and results agree.
"""

import json
import re
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parent.parent
README = PROJECT / "README.md"
_TABLE = re.compile(r"(<!-- measured -->\n).*?(<!-- /measured -->)", re.DOTALL)


def results(name: str) -> dict[str, Any]:
    """The numbers that one benchmark wrote."""
    return json.loads((PROJECT / "benchmarks" / "results" / f"{name}.json").read_text())


def table() -> str:
    """The table of measured numbers, as Markdown."""
    rows = ["| | dm-clrs | mechgap | |", "|---|---|---|---|"]
    sampling = results("sampling")
    for task, numbers in sampling["tasks"].items():
        rows.append(
            f"| a training batch of {sampling['batch_size']} {task} graphs, n = {sampling['nodes']}"
            f" | {numbers['dm_clrs_ms']:.1f} ms | {numbers['mechgap_ms']:.2f} ms"
            f" | {numbers['ratio']:.0f} × |"
        )
    startup = results("startup")
    theirs, ours = startup["dm_clrs_megabytes"], startup["core_megabytes"]
    rows.append(f"| installed size | {theirs:,} MB | {ours:,} MB | {theirs / ours:.1f} × |")
    rows.append(f"| `mechgap --help` | | {startup['help_seconds']:.2f} s | |")
    return "\n".join(rows) + "\n"


def updated(readme: str) -> str:
    """The README with the table of today's results."""
    return _TABLE.sub(lambda found: found[1] + table() + found[2], readme)


if __name__ == "__main__":
    README.write_text(updated(README.read_text()))
