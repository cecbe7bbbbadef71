"""Draw the weights of small compiled networks for docs/compiler.md: `docs/figures/gadget_*.png`.

python scripts/draw_gadgets.py
"""

import runpy
from pathlib import Path

import mechgap
from mechgap.report.parameters import main_figure
from mechgap.report.style import save_figure

PROJECT = Path(__file__).parent.parent
DRAWN = {
    "selection": ("reachability", "general", 4),
    "number": ("bellman_ford", "general", 8),
    "phases": ("walk", "stock", 24),
}
"""The program, the target and the hidden size that show a gadget."""


def main() -> None:
    """All of them, for graphs of 8 nodes."""
    own = runpy.run_path(str(PROJECT / "examples" / "own_programs.py"))
    for gadget, (name, target, hidden) in DRAWN.items():
        compiled = mechgap.compile(own.get(name, name), target, 8, hidden_size=hidden)
        save_figure(main_figure(compiled), PROJECT / "docs" / "figures" / f"gadget_{gadget}.png")


if __name__ == "__main__":
    main()
