"""A program as a task: its own trace is what networks learn.

Where a program answers for all of CLRS's hints and outputs, the task is CLRS's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mechgap.programs.program import Program
from mechgap.tasks.specs import Stage, Task, get_task


def posed(program: Program) -> Task:
    """The task that a program solves: CLRS's own if it answers for CLRS's hints and outputs.

    Otherwise a task with CLRS's inputs and the program's hints and outputs, traced by itself.

    >>> from mechgap.programs.library import bfs, reachability
    >>> posed(bfs) == get_task("bfs"), posed(reachability).name
    (True, 'reachability')
    """
    clrs = get_task(program.task)
    own = {f.name for f in clrs.features if f.stage is not Stage.INPUT}
    if own == {*program.hints, *program.output, *program.unclaimed}:
        return clrs
    hints = (c.feature(name, Stage.HINT) for name, c in program.hints.items())
    outputs = (c.feature(name, Stage.OUTPUT) for name, c in program.output.items())
    return Task(
        name=program.name,
        summary=f"the graph program {program.name}",
        features=(*clrs.inputs, *outputs, *hints),
        directed=clrs.directed,
        acyclic=clrs.acyclic,
        weighted=clrs.weighted,
        has_source=clrs.has_source,
        in_dm_clrs=False,
        like=clrs.like or clrs.name,
        tracer=ProgramTracer(program),
    )


@dataclass(frozen=True)
class ProgramTracer:
    """Runs a program on a batch of graphs and keeps what its task asks for."""

    program: Program

    def max_hints(self, nodes: int) -> int:
        """One more than its steps: as many as it says, or as the longest run that was found takes.

        A quarter more than that, since graphs may be harder than those that were tried.
        """
        steps = self.program.steps
        if isinstance(steps, int):
            return steps + 1
        # NumPy and JAX are imported where they are needed: a recipe's options are shown without.
        from mechgap.programs.lengths import longest_run

        longest = longest_run(self.program, nodes)
        return longest + longest // 4 + 2

    def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Hints (zero after each sample's end), outputs and lengths."""
        from mechgap.programs.tracing import trace

        return trace(self.program, inputs, self.max_hints(inputs["pos"].shape[-1]))
