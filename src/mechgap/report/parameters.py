"""Compiled parameters as pictures: the paper's main and auxiliary figures.

Every matrix is drawn as the paper writes it, outputs down and inputs across, with units named after
the program's variables. Units that are not used are left out of large networks; a column "1" holds
the bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure

from mechgap.compiler.compile import Compiled
from mechgap.network.decoders import (
    GraphDecoder,
    NodeDecoder,
    PointerDecoder,
    SimplifiedPointerDecoder,
)
from mechgap.network.encoders import carrier
from mechgap.network.linear import Linear
from mechgap.report.style import DIVERGING, STYLE
from mechgap.tasks.specs import Location


@dataclass(frozen=True)
class Matrix:
    """A matrix with names for its rows and columns."""

    title: str
    values: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]


def _padded(names: Sequence[str], size: int) -> list[str]:
    return [*names, *["·"] * (size - len(names))]


class _Names:
    """The units' names, and which of them are shown."""

    def __init__(self, compiled: Compiled):
        layout = compiled.layout
        hidden = layout.hidden_size
        state = [unit.label for unit in layout.state]
        if layout.reference is not None:
            state += ["reference", "ballast"]
        self.state = _padded(state, hidden)
        self.attention = _padded([unit.label for unit in layout.attention], hidden)
        self.node = _padded([f"in {name}" for name in layout.nodes], hidden)
        self.edge = _padded([f"edge {name}" for name in layout.edges], hidden)
        self.graph = _padded(["total"], hidden)
        self.decoder = _padded([f"unit {i + 1}" for i in range(min(3, hidden))], hidden)
        self.features = [*self.node, *(f"h {name}" if name != "·" else "·" for name in self.state)]
        before = [f"prev {name}" if name != "·" else "·" for name in self.state]
        self.read = [*self.node, *before, *self.features[hidden:]]
        self.everything = hidden <= 8

    def matrix(
        self, title: str, values: np.ndarray, rows: Sequence[str], columns: Sequence[str]
    ) -> Matrix:
        """A matrix without the rows and columns that nothing uses, unless it is small."""
        if self.everything:
            return Matrix(title, values, rows, columns)
        down = [i for i, name in enumerate(rows) if name != "·"] or [0]
        across = [i for i, name in enumerate(columns) if name != "·"] or [0]
        return Matrix(
            title,
            values[np.ix_(down, across)],
            [rows[i] for i in down],
            [columns[i] for i in across],
        )


def _with_bias(linear: Linear) -> np.ndarray:
    """Weights as outputs by inputs, and the bias as a last column."""
    return np.concatenate([np.asarray(linear.weight).T, np.asarray(linear.bias)[:, None]], axis=1)


def _numbered(name: str, classes: int) -> list[str]:
    """A name for every class of a feature."""
    return [name] if classes == 1 else [f"{name} {i}" for i in range(classes)]


def main_matrices(compiled: Compiled) -> list[Matrix]:
    """The processor's parameters."""
    names, gat = _Names(compiled), compiled.network.processor
    inputs = [*names.features, "1"]
    edges = [*names.edge, "1"]
    blank = ["·"] * compiled.layout.hidden_size
    found = [
        names.matrix("$W_{val}$", _with_bias(gat.value), names.state, inputs),
        names.matrix("$W_{in}$ (sender)", _with_bias(gat.sender), names.attention, inputs),
        names.matrix("$W_{out}$ (receiver)", _with_bias(gat.receiver), names.attention, inputs),
        names.matrix("$W_{skip}$", _with_bias(gat.skip), names.state, inputs),
        names.matrix("$W_{edge}$", _with_bias(gat.edge), names.attention, edges),
        names.matrix("$W_{meta}$", _with_bias(gat.meta), names.attention, [*blank, "1"]),
        names.matrix("$\\omega$", np.asarray(gat.attention), ["head"], names.attention),
    ]
    if gat.info is not None:
        info = np.asarray(gat.info).T
        found.append(names.matrix("$W_{info}$", info, names.state, names.edge))
    if gat.pre_attention_bias is not None:
        bias = np.asarray(gat.pre_attention_bias)
        nodes = [str(i) for i in range(len(bias))]
        found.append(Matrix("$B$", bias, nodes, nodes))
    if gat.norm is not None:
        both = np.stack([np.asarray(gat.norm.scale), np.asarray(gat.norm.offset)])
        found.append(names.matrix("layer norm", both, ["scale", "offset"], names.state))
    return found


def auxiliary_matrices(compiled: Compiled) -> list[Matrix]:
    """The encoders' and decoders' parameters."""
    names, network = _Names(compiled), compiled.network
    found = []
    units = {Location.NODE: names.node, Location.EDGE: names.edge, Location.GRAPH: names.graph}
    places = {f.name: units[carrier(f)] for f in network.encoders.features}
    for name, linear in network.encoders.linears.items():
        rows = places[name]
        columns = _numbered(name, linear.weight.shape[0])
        found.append(names.matrix(f"encoder {name}", _with_bias(linear), rows, [*columns, "1"]))
    read = [*names.read, "1"]
    edges = [*names.edge, "1"]
    for name, decoder in network.decoders.items():
        match decoder:
            case NodeDecoder():
                values = _with_bias(decoder.linear)
                rows = _numbered(name, len(values))
                found.append(names.matrix(f"decoder {name}", values, rows, read))
            case GraphDecoder():
                for title, linear, columns in (
                    ("nodes", decoder.nodes, read),
                    ("graph", decoder.graph, [*names.graph, "1"]),
                ):
                    values = _with_bias(linear)
                    found.append(names.matrix(f"decoder {name}: {title}", values, [name], columns))
            case PointerDecoder():
                for title, linear, rows, columns in (
                    ("p1 (from)", decoder.pointing, names.decoder, read),
                    ("p2 (to)", decoder.pointed, names.decoder, read),
                    ("edge", decoder.edge, names.decoder, edges),
                    ("score", decoder.score, [name], [*names.decoder, "1"]),
                ):
                    values = _with_bias(linear)
                    found.append(names.matrix(f"decoder {name}: {title}", values, rows, columns))
            case SimplifiedPointerDecoder():
                values = _with_bias(decoder.position)
                found.append(names.matrix(f"decoder {name}: position", values, [name], read))
    return found


def draw_matrices(matrices: Sequence[Matrix], title: str) -> Figure:
    """Matrices side by side on one colour scale, logarithmic on both sides of zero."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 1), layout="constrained")
        lines = _lines(matrices, across=26)
        heights = [max(len(m.rows) for m in line) for line in lines]
        figure.set_figheight(1.3 + sum(0.28 * height + 1.15 for height in heights))
        ratios = [*(h + 4 for h in heights), 2]
        rows = figure.subfigures(len(lines) + 1, 1, height_ratios=ratios, squeeze=False)[:, 0]
        largest = max(float(np.abs(m.values).max()) for m in matrices)
        norm = SymLogNorm(linthresh=0.1, vmin=-largest, vmax=largest)
        axes: list[Axes] = []
        for row, line in zip(rows[:-1], lines, strict=True):
            widths = [len(m.columns) + 2.5 for m in line]
            drawn = row.subplots(1, len(line), width_ratios=widths, squeeze=False)[0]
            for one, matrix in zip(drawn, line, strict=True):
                _draw(one, matrix, norm)
                axes.append(one)
        scale = rows[-1].add_axes((0.3, 0.62, 0.4, 0.16))
        bar = rows[-1].colorbar(axes[0].images[0], cax=scale, orientation="horizontal")
        bar.set_label("parameter value (logarithmic beyond ±0.1)")
        top = int(np.log10(max(1.0, largest)))
        sizes = [10.0**power for power in sorted({0, top // 2, top})]
        bar.set_ticks([*(-size for size in sizes[::-1]), 0.0, *sizes])
        figure.suptitle(title)
    return figure


def _lines(matrices: Sequence[Matrix], across: int) -> list[list[Matrix]]:
    """Matrices in lines that are not too wide."""
    lines: list[list[Matrix]] = []
    left = 0.0
    for matrix in matrices:
        needed = len(matrix.columns) + 3
        if needed > left:
            lines.append([])
            left = across
        lines[-1].append(matrix)
        left -= needed
    return lines


def _draw(axes: Axes, matrix: Matrix, norm: SymLogNorm) -> None:
    axes.imshow(matrix.values, cmap=DIVERGING, norm=norm, aspect="auto")
    axes.set_title(matrix.title)
    axes.set_xticks(range(len(matrix.columns)), matrix.columns, rotation=90)
    axes.set_yticks(range(len(matrix.rows)), matrix.rows)
    if matrix.values.size > 400:
        return
    for (i, j), value in np.ndenumerate(matrix.values):
        if value:
            strong = abs(float(norm(value)) - 0.5) > 0.35
            text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0e}".replace("e+0", "e")
            axes.text(
                j, i, text, ha="center", va="center", fontsize=5, color="w" if strong else "k"
            )


def main_figure(compiled: Compiled) -> Figure:
    """The paper's figure of main parameters."""
    return draw_matrices(main_matrices(compiled), _title(compiled, "main parameters"))


def auxiliary_figure(compiled: Compiled) -> Figure:
    """The paper's figure of auxiliary parameters."""
    return draw_matrices(auxiliary_matrices(compiled), _title(compiled, "encoders and decoders"))


def _title(compiled: Compiled, what: str) -> str:
    network = compiled.network
    return (
        f"{compiled.program.name}, target {compiled.target.name}, hidden size "
        f"{network.config.hidden_size}, {network.parameters:,} parameters: {what}"
    )
