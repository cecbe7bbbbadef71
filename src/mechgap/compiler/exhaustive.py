"""Is it exact on every small graph? What `verify` asks of some, asked of all up to a size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from mechgap.compiler.compile import Compiled
from mechgap.compiler.verify import Disagreement, Verification, posed_batch, verify
from mechgap.tasks.enumerated import check_enumerable, every_graph
from mechgap.tasks.specs import get_task


@dataclass(frozen=True)
class Exhausted:
    """All graphs of one size, each from every source."""

    nodes: int
    graphs: int
    inside: int
    """Of the certificate: what is promised is about these."""
    missed_inside: int
    """On how many of these the network is not the program, or the program not the algorithm."""
    missed_outside: int
    """On how many of the others the network is not the program."""
    first: Disagreement | None

    ALSO_TOLD: ClassVar = ("exact", "sentence")

    @property
    def exact(self) -> bool:
        """Whether nothing is missed inside."""
        return self.missed_inside == 0

    @property
    def sentence(self) -> str:
        """What was looked at, and what was missed.

        >>> Exhausted(3, 24, 24, 0, 0, None).sentence
        'exact on all 24 graphs of 3 nodes'
        """
        of = f"all {self.graphs:,} graphs of {self.nodes} nodes"
        if self.nodes == 1:
            of = "the only graph of 1 node"
        if self.inside < self.graphs:
            outside = self.graphs - self.inside
            of = (
                f"the {self.inside:,} of {of} that lie inside the certificate; of {outside:,} "
                f"outside, {self.missed_outside:,} are missed"
            )
        if self.exact:
            return f"exact on {of}" if self.inside else f"nothing is promised: {of}"
        return f"NOT exact: {self.missed_inside:,} missed of {of}"


def exhaustive(compiled_for: Callable[[int], Compiled], most: int) -> Iterator[Exhausted]:
    """Verify a program on every graph of 1, 2, … nodes.

    Args:
        compiled_for: The network for a number of nodes.
        most: The largest number of nodes.

    Raises:
        InvalidInput: there are too many graphs of that size, before any is looked at.
    """
    check_enumerable(get_task(compiled_for(most).program.task), most)
    for nodes in range(1, most + 1):
        compiled = compiled_for(nodes)
        task = get_task(compiled.program.task)
        found = [
            verify(compiled, posed_batch(compiled.program, batch))
            for batch in every_graph(task, nodes)
        ]
        yield _together(nodes, found)


def _together(nodes: int, found: list[Verification]) -> Exhausted:
    return Exhausted(
        nodes,
        sum(each.graphs for each in found),
        sum(each.inside_certificate for each in found),
        sum(each.missed_graphs_inside + each.unlike_trace_inside for each in found),
        sum(each.missed_graphs_outside for each in found),
        next((each.first for each in found if each.first is not None), None),
    )
