"""Measures over training, seeds that end faithful beside the others, as a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechgap.report.style import SERIES, STYLE


@dataclass(frozen=True)
class Course:
    """One seed along its training."""

    seed: int
    values: Mapping[str, Mapping[int, float]]
    """By measure and step. `tv` is told as attention that is where the mechanism has it."""


def over_training(populations: Mapping[str, Sequence[Course]], labels: Mapping[str, str]) -> Figure:
    """A panel for each population, a line for each measure and half of the seeds.

    Solid are the seeds that end with the smaller gap (tv), dashed the others; points are seeds.

    Args:
        populations: By name.
        labels: What measures are called.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * len(populations), 3.0), layout="constrained")
        panels = figure.subplots(1, len(populations), squeeze=False, sharey=True)[0]
        for axes, (name, courses) in zip(panels, populations.items(), strict=True):
            ends = {
                c.seed: c.values["tv"][max(c.values["tv"])] for c in courses if "tv" in c.values
            }
            middle = np.median(list(ends.values())) if ends else 0.0
            for (measure, _), colour in zip(labels.items(), SERIES, strict=False):
                for faithful, dash in ((True, "-"), (False, "--")):
                    some = [
                        course.values[measure]
                        for course in courses
                        if measure in course.values
                        and (ends.get(course.seed, middle) >= middle) == faithful
                    ]
                    steps = sorted({step for values in some for step in values})
                    means = [100 * np.mean([v[s] for v in some if s in v]) for s in steps]
                    axes.plot(steps, means, dash, color=colour, lw=1.3)
                    for values in some:
                        points = [100 * value for value in values.values()]
                        axes.plot(list(values), points, ".", color=colour, ms=2, alpha=0.35)
            axes.set_xscale("symlog", linthresh=50)
            looked = sorted({s for c in courses for values in c.values.values() for s in values})
            axes.set_xticks(looked, [f"{step:,}" for step in looked], rotation=60, fontsize=6)
            axes.set_xlabel("training step")
            axes.set_title(f"{name} ({len(courses)} seeds)")
            axes.grid(lw=0.3)
        panels[0].set_ylabel("%, deep graphs")
        shown = [
            Line2D([], [], color=colour, label=label)
            for label, colour in zip(labels.values(), SERIES, strict=False)
        ]
        shown += [
            Line2D([], [], color="#5b6672", ls=dash, label=label)
            for dash, label in (("-", "seeds that end more faithful"), ("--", "the others"))
        ]
        figure.legend(handles=shown, loc="outside upper center", ncols=3, fontsize=6.5)
    return figure
