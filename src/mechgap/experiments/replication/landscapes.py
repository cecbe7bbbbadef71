"""The paper's landscapes, and flatness as a number: learned beside compiled."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from mechgap.experiments.landscape import landscape_of_run
from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.kinds import Study, Table
from mechgap.experiments.replication.numbers import load_data, save_data
from mechgap.experiments.replication.populations import Population
from mechgap.experiments.replication.rendering import Rendered
from mechgap.measures.landscape import Settings, compute
from mechgap.report.landscape import draw_landscape
from mechgap.training.store import DATABASE
from mechgap.training.train import OnProgress

SEED = 0
"""Whose learned parameters are looked at."""
SHOWN = ("learned", "compiled")
POINTS = {"dfs": 21}
"""A side of a surface, where fewer than usual: DFS's traces are over ten times as long."""


def file_name(population: Population) -> str:
    """The landscape's file in `results/`."""
    return f"landscape_{population.name}"


def is_computed(population: Population, results: Path) -> bool:
    """Whether its landscape's numbers are known."""
    return load_data(results, file_name(population)) is not None


def keep_landscape(
    population: Population, runs: Path, results: Path, on_progress: OnProgress
) -> None:
    """Look around the parameters of a run, or at the rest of it; its numbers are kept."""
    folder = runs / population.name
    if not (folder / DATABASE).exists():
        return
    job = landscape_of_run(folder, SEED, None)
    points = POINTS.get(population.task, Settings.points)
    settings = Settings(title=job.title, points=points)
    found = compute(job.folder, settings, job.networks, job.batch, on_progress)
    draw_landscape(found, job.folder)
    numbers = {"settings": asdict(settings), "flatness": found.flatness()}
    numbers["settings"]["radii"] = list(settings.radii)
    save_data(results, file_name(population), numbers)


LANDSCAPES = Study(keep_landscape, is_computed)


@dataclass(frozen=True)
class FlatnessTable:
    """How much the loss rises around learned and compiled parameters."""

    study: ClassVar[Study | None] = LANDSCAPES

    caption: str
    populations: Sequence[Population]
    remarks: tuple[str, ...]

    def shortened(self, steps: int) -> Table:
        """The same with so many training steps."""
        return replace(self, populations=tuple(p.shortened(steps) for p in self.populations))

    def tests(self, results: Path) -> Mapping[str, float]:  # noqa: ARG002
        """None: the paper prints no numbers."""
        return {}

    def rendered(self, name: str, results: Path, judge: Judge) -> Rendered:  # noqa: ARG002
        """A row for each task and radius."""
        rows, data = [], []
        pairs = "0"
        for population in self.populations:
            kept = load_data(results, file_name(population))
            data.append({"row": population.name, "flatness": kept and kept["flatness"]})
            if kept is None:
                rows.append((f"{population.name}: not computed", "-", "-", "-", "-", "-"))
                continue
            at = {(row["network"], row["radius"]): row for row in kept["flatness"]}
            for radius in dict.fromkeys(row["radius"] for row in kept["flatness"]):
                here = [at.get((network, radius)) for network in SHOWN]
                pairs = str(next(row["pairs"] for row in here if row))
                cells = [_rise(row) for row in here]
                sharper = "-"
                learned, compiled = (row["rise"] if row else None for row in here)
                if learned and compiled and min(learned, compiled) > 0:
                    sharper = f"{compiled / learned:.2g}"
                rows.append((population.name, f"{radius:g}", *cells, sharper, pairs))
        head = ("", "radius", "rise, learned", "rise, compiled", "compiled / learned",
                "pairs of directions")  # fmt: skip
        return Rendered(name, self.caption, head, rows, self.remarks, data)


def _rise(row: Any) -> str:
    if row is None:
        return "-"
    if row["rise"] is None:
        return "beyond float32"
    deviation = "" if row["std"] is None else f" ± {row['std']:.1e}"
    return f"{row['rise']:.1e}{deviation}"
