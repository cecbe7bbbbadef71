"""The paper's figures: which drawings of which populations each one is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mechgap.errors import InvalidInput
from mechgap.experiments.gap import NODES
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.tables import BF, BFS, DFS, REGULARISED_BFS, TABLES
from mechgap.measures.population import compile_reference
from mechgap.measures.results import load_results
from mechgap.measures.surroundings import SETTINGS, load_landscape
from mechgap.measures.trajectory import FILE as TRAJECTORY
from mechgap.measures.trajectory import Standpoint, load_trajectory
from mechgap.report.figures import available_figures
from mechgap.report.landscape import draw_landscape
from mechgap.report.style import save_figure
from mechgap.report.trajectory import trajectories


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper: a drawing of some populations."""

    caption: str
    drawing: str
    """As `mechgap figures` calls it."""
    populations: tuple[Population, ...]

    @property
    def is_landscape(self) -> bool:
        """Whether it needs more than a measured population."""
        return self.drawing.startswith("landscape")

    def file(self, population: Population) -> str:
        """The name of a drawing's file, without its ending. Stability has one for each task."""
        drawn = population.task if self is STABILITY else population.name
        return f"{self.drawing}_{drawn}"


STABILITY = PaperFigure(
    "Compiled parameters, trained on", "stability", tuple(TABLES["stability"].populations)
)


FIGURES: Sequence[PaperFigure] = (
    PaperFigure("External and internal faithfulness against accuracy", "faithfulness", (BFS, BF)),
    PaperFigure("Internal faithfulness over time", "internal_over_time", (BFS,)),
    PaperFigure("Attention compared over time, the best match", "attention_comparison", (BFS,)),
    PaperFigure("Trace predictions over time", "traces_over_time", (BFS, BF)),
    PaperFigure(
        "Distances between solutions, and Ward's dendrogram", "solutions", (BFS, REGULARISED_BFS)
    ),
    PaperFigure("Compiled parameters, main", "parameters_main", (BF, BFS)),
    PaperFigure("Compiled parameters, auxiliary", "parameters_auxiliary", (BF, BFS)),
    PaperFigure("Full attention over time", "attention_full", (BF, BFS)),
    PaperFigure("Loss landscapes", "landscape_surfaces", (BF, BFS, DFS)),
    PaperFigure("Loss landscapes as contours", "landscape_contours", (BF, BFS, DFS)),
    PaperFigure("Flatness", "landscape_flatness", (BF, BFS, DFS)),
    PaperFigure("From learned to compiled parameters", "landscape_line", (BFS,)),
    STABILITY,
)


def figure_populations() -> Mapping[str, Population]:
    """Every population that some figure needs."""
    return MappingProxyType({p.name: p for figure in FIGURES for p in figure.populations})


def draw_paper_figures(runs: Path, out: Path) -> list[Path]:
    """Draw what the measured runs allow, as PDF and PNG; where the drawings are."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder '{out}': {error}") from error
    written = []
    for population in figure_populations().values():
        surroundings = runs / population.name / "landscape"
        if (surroundings / SETTINGS).exists():
            written += draw_landscape(load_landscape(surroundings), out, population.name)
        try:
            results = load_results(runs / population.name)
        except InvalidInput:  # not measured yet
            continue
        drawings = available_figures(results, compile_reference(population.recipe, NODES))
        for figure in FIGURES:
            if population not in figure.populations or figure.drawing not in drawings:
                continue
            drawn = drawings[figure.drawing]()
            for ending in ("pdf", "png"):
                path = out / f"{figure.file(population)}.{ending}"
                save_figure(drawn, path)
                written.append(path)
    return written + _draw_stability(runs, out)


def _draw_stability(runs: Path, out: Path) -> list[Path]:
    """What became of compiled parameters, a figure a task."""
    paths: dict[str, dict[str, Sequence[Standpoint]]] = {}
    for population in STABILITY.populations:
        if (runs / population.name / TRAJECTORY).exists():
            label = population.suffix.replace("stability_", "").replace("_", " ")
            known = paths.setdefault(STABILITY.file(population), {})
            known[label] = load_trajectory(runs / population.name)
    written = []
    for name, several in paths.items():
        figure = trajectories(several)
        for ending in ("pdf", "png"):
            written.append(out / f"{name}.{ending}")
            save_figure(figure, written[-1])
    return written
