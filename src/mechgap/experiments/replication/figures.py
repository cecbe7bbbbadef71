"""The paper's figures: which drawings of which populations each one is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mechgap.errors import InvalidInput
from mechgap.experiments.gap import NODES
from mechgap.experiments.replication.kinds import Drawn, Study
from mechgap.experiments.replication.landscapes import LANDSCAPES
from mechgap.experiments.replication.library import BF, BFS, DFS_SHORT, REGULARISED_BFS
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.tables import STABILITY_ROWS, TABLES
from mechgap.measures.landscape import SETTINGS, load_landscape
from mechgap.measures.reference import compile_reference
from mechgap.measures.results import load_results
from mechgap.measures.snapshot import Snapshot, load_snapshots
from mechgap.report.figures import available_figures
from mechgap.report.landscape import draw_landscape
from mechgap.report.style import save_in_both
from mechgap.report.trajectory import trajectories
from mechgap.training.store import DATABASE


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper: a drawing of some populations."""

    caption: str
    drawing: str
    """As `mechgap figures` calls it."""
    populations: tuple[Population, ...]

    @property
    def study(self) -> Study | None:
        """What it needs beside measured networks."""
        return LANDSCAPES if self.drawing.startswith("landscape") else None

    def file(self, population: Population) -> str:
        """The name of a drawing's file, without its ending. Stability has one for each task."""
        drawn = population.task if self is STABILITY else population.name
        return f"{self.drawing}_{drawn}"


STABILITY = PaperFigure(
    "Compiled parameters, trained on", "stability", tuple(row.population for row in STABILITY_ROWS)
)

FIGURES: Sequence[PaperFigure] = (
    PaperFigure("External and internal faithfulness against accuracy", "faithfulness", (BFS, BF)),
    PaperFigure("Internal faithfulness over time", "internal_over_time", (BFS, BF)),
    PaperFigure("Beyond the paper: what the gap is made of", "gap_parts", (BFS, BF)),
    PaperFigure("Attention compared over time, the best match", "attention_comparison", (BFS,)),
    PaperFigure("Trace predictions over time", "traces_over_time", (BFS, BF)),
    PaperFigure(
        "Distances between solutions, and Ward's dendrogram", "solutions", (BFS, REGULARISED_BFS)
    ),
    PaperFigure("Compiled parameters, main", "parameters_main", (BF, BFS)),
    PaperFigure("Compiled parameters, auxiliary", "parameters_auxiliary", (BF, BFS)),
    PaperFigure("Full attention over time", "attention_full", (BF, BFS)),
    PaperFigure("Loss landscapes", "landscape_surfaces", (BF, BFS, DFS_SHORT)),
    PaperFigure("Loss landscapes as contours", "landscape_contours", (BF, BFS, DFS_SHORT)),
    PaperFigure("Flatness", "landscape_flatness", (BF, BFS, DFS_SHORT)),
    PaperFigure("From learned to compiled parameters", "landscape_line", (BFS,)),
    STABILITY,
)


def figure_populations() -> Mapping[str, Population]:
    """Every population that some figure needs."""
    return MappingProxyType({p.name: p for figure in FIGURES for p in figure.populations})


def draw_paper_figures(runs: Path, results: Path, out: Path) -> list[Path]:
    """Draw what measured runs and kept numbers allow, as PDF and PNG; where the drawings are."""
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
            measured = load_results(runs / population.name)
        except InvalidInput:  # not measured yet
            continue
        drawings = available_figures(measured, compile_reference(population.recipe, NODES).compiled)
        for figure in FIGURES:
            if population not in figure.populations or figure.drawing not in drawings:
                continue
            drawn = drawings[figure.drawing]()
            written += save_in_both(drawn, out, figure.file(population))
    for name, table in TABLES.items():
        drawn = table.drawn(results) if isinstance(table, Drawn) else None
        written += save_in_both(drawn, out, name) if drawn is not None else []
    return written + _draw_stability(runs, out)


def _draw_stability(runs: Path, out: Path) -> list[Path]:
    """What became of compiled parameters, a figure a task."""
    paths: dict[str, dict[str, Sequence[Snapshot]]] = {}
    for row in STABILITY_ROWS:
        folder = runs / row.population.name
        if (folder / DATABASE).exists():
            of_task = paths.setdefault(STABILITY.file(row.population), {})
            of_task[row.label] = [s for s in load_snapshots(folder) if s.which == "step"]
    drawn = (save_in_both(trajectories(each), out, name) for name, each in paths.items())
    return [path for both in drawn for path in both]
