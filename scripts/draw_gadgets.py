"""Draw the compiler's gadgets for docs/compiler.md: `docs/figures/gadget*.png`.

python scripts/draw_gadgets.py

One picture of what each computes, and the weights of small compiled networks in which they stand.
"""

import runpy
from pathlib import Path

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import mechgap
from mechgap.compiler.affine import Affine, term
from mechgap.compiler.ballast import ballast as ballast_for
from mechgap.compiler.gadgets import LEAK, tent_of
from mechgap.network.linear import LayerNorm
from mechgap.programs.expressions import Name, Side
from mechgap.report.parameters import main_figure
from mechgap.report.style import SERIES, STYLE, save_figure

PROJECT = Path(__file__).parent.parent
FIGURES = PROJECT / "docs" / "figures"
DRAWN = {
    "selection": ("reachability", "general", 4),
    "number": ("bellman_ford", "general", 8),
    "phases": ("walk", "stock", 24),
}
"""The program, the target and the hidden size that show a gadget."""
UNIT, SUM = {"lw": 0.9, "ls": "--"}, {"lw": 1.8, "color": "black"}


def relu(x: np.ndarray, leak: float = 0.0) -> np.ndarray:
    """Leaky where attention scores are, not where values are."""
    return np.where(x > 0, x, leak * x)


def selection(axes: Axes) -> None:
    """A sender's score against its key."""
    key, sharpness, lift = np.linspace(0, 1, 100), 6.0, 10.0
    axes.plot(key, relu(lift - sharpness * key), label="passes the mask", color=SERIES[1], lw=1.8)
    axes.plot(key, relu(-sharpness * key), label="does not", color=SERIES[0], lw=1.8)
    axes.set(title="select: relu(M · flags − c · key)", xlabel="key of the sender", ylabel="score")


def tent(axes: Axes) -> None:
    """What three units make of the distance between two nodes."""
    x = np.linspace(-2.5, 2.5, 201)
    name = Name(Side.SELF, "x")
    units = tent_of(term(Side.SELF, "x"), Affine({}, 1.0), 1.0, "")
    total = np.zeros_like(x)
    for unit, colour in zip(units, SERIES, strict=False):
        zeta = unit.zeta.terms[name] * x + unit.zeta.constant
        values = unit.omega * relu(zeta, LEAK)
        axes.plot(x, values, color=colour, label=unit.label.strip(), **UNIT)
        total += values
    axes.plot(x, total, label="sum", **SUM)
    axes.set(title="oneself: a tent of three units", xlabel="places between the two nodes",
             ylim=(-2.2, 2.2))  # fmt: skip


def rounding(axes: Axes) -> None:
    """What two units make of a flag that is nearly 0 or 1."""
    x = np.linspace(-0.3, 1.3, 161)
    up, down = relu(2 * x - 0.5), -relu(2 * x - 1.5)
    axes.plot(x, up, color=SERIES[0], label="relu(2x − ½)", **UNIT)
    axes.plot(x, down, color=SERIES[1], label="− relu(2x − 3/2)", **UNIT)
    axes.plot(x, up + down, label="sum", **SUM)
    axes.set(title="a flag that lasts: rounded", xlabel="flag, with its error", ylim=(-1.1, 2.1))


def condition(axes: Axes) -> None:
    """A number that holds where a flag is set."""
    x, force = np.linspace(0, 4, 100), 8.0
    for flag, colour in ((1, SERIES[1]), (0, SERIES[0])):
        value = relu(x) - relu(x - force * flag) + relu(np.full_like(x, -force * flag))
        axes.plot(x, value, color=colour, lw=1.8, label=f"flag {flag}")
    axes.set(title="where(flag, value, 0), F = 8", xlabel="value", ylabel="what is held")


def pointer(axes: Axes) -> None:
    """The decoder's score of each of eight nodes, for a pointer held as a position."""
    positions, held = np.arange(8) / 8, 0.37
    line = np.linspace(0, 1, 201)
    axes.plot(line, -np.abs(line - held), color=SERIES[5], lw=0.9)
    scores = -np.abs(positions - held)
    axes.plot(positions, scores, "o", color=SERIES[0], ms=4, label="node")
    best = scores.argmax()
    axes.plot(positions[best], scores[best], "o", color=SERIES[1], ms=6, label="is pointed to")
    axes.axvline(held, color="black", lw=0.6, ls=":", label="what is held")
    axes.set(title="a pointer: − |held − position of j|", xlabel="position", ylabel="score")


def ballast(axes: Axes) -> None:
    """What layer norm makes of a 1 while another unit changes; read beside a unit that is 0."""
    others, units = np.linspace(0, 8, 60), 16
    heavy = ballast_for(9.0, 8.0, units, float(np.finfo(np.float32).eps) / 2)
    without, with_it = (0.0, 1.0, "without ballast"), (heavy.weight, heavy.scale, "with ballast")
    for (weight, scale, label), colour in zip((without, with_it), SERIES, strict=False):
        hidden = np.zeros((len(others), units), np.float32)
        hidden[:, 0], hidden[:, 1], hidden[:, 2] = 1, others, weight
        norm = LayerNorm(jnp.full(units, scale), jnp.zeros(units))
        normed = np.asarray(norm(jnp.asarray(hidden)))
        axes.plot(others, normed[:, 0] - normed[:, -1], color=colour, lw=1.8, label=label)
    axes.set(title="layer norm: what a 1 becomes", xlabel="another unit's value", ylim=(0, 4))


def computed() -> Figure:
    """What every gadget computes."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 5.2), layout="constrained")
        panels = (selection, tent, rounding, condition, pointer, ballast)
        for axes, draw in zip(figure.subplots(2, 3).flat, panels, strict=True):
            draw(axes)
            axes.legend(fontsize=6.5, frameon=False)
            axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """All of them; networks are for graphs of 8 nodes."""
    save_figure(computed(), FIGURES / "gadgets.png")
    own = runpy.run_path(str(PROJECT / "examples" / "own_programs.py"))
    for gadget, (name, target, hidden) in DRAWN.items():
        compiled = mechgap.compile(own.get(name, name), target, 8, hidden_size=hidden)
        save_figure(main_figure(compiled), FIGURES / f"gadget_{gadget}.png")


if __name__ == "__main__":
    main()
