"""The smallest wrong graph of every seed, drawn: what was answered, and what is right."""

from collections.abc import Iterator, Set
from html import escape
from math import cos, pi, sin

from mechgap.measures.counterexample import MOST_DRAWN, Counterexample, Searched
from mechgap.measures.counterexamples import SearchedRun

SIZE, RADIUS, NODE = 220, 84, 11
_NOTE = (
    "All graphs up to that size were tried in order, then larger ones by chance; what was found "
    "there lost edges for as long as it stayed wrong. From every wrong node a dashed line leads to "
    "whom the network names and a thick one to whom it should, where that is another node. The "
    "source has a thick ring."
)
_OPENS = " A click shows the network's run over the graph in the player."


def wrong_graphs(run: SearchedRun | None, openable: Set[int] = frozenset()) -> str:
    """A figure and a sentence for each seed; those that the player has lead to it."""
    if run is None or not run.seeds:
        return ""
    count = (
        f"{run.right_on_all} of {len(run.seeds)} seeds are right on all graphs up to "
        f"{run.max_nodes} nodes."
    )
    figures = "".join(
        _figure(seed, searched, seed in openable) for seed, searched in run.seeds.items()
    )
    return (
        f'<p>{escape(count)}</p><div class="wrong-graphs">{figures}</div>'
        f'<p class="quiet">{escape(_NOTE + _OPENS * bool(openable))}</p>'
    )


def _figure(seed: int, searched: Searched, opens: bool) -> str:
    found = searched.found
    drawn = _drawn(found) if found is not None and found.nodes <= MOST_DRAWN else ""
    if opens:
        title = f"Show the run of seed {seed} over this graph in the player"
        drawn = f'<a href="#player" data-wrong-of="{seed}" title="{title}">{drawn}</a>'
    said = f"Seed {seed}: {searched.sentence}."
    if found is not None and found.went_wrong is not None:
        wrong = found.went_wrong
        attended = ", ".join(map(str, wrong.attended))
        exact = ", ".join(map(str, wrong.exact))
        said += (
            f" The run was first wrong in step {wrong.step + 1}, in {wrong.hint} of node "
            f"{wrong.node}, which attended most to {attended}"
            + (f" (exactly: {exact})." if exact else ".")
        )
    return f"<figure>{drawn}<figcaption>{escape(said)}</figcaption></figure>"


def _drawn(found: Counterexample) -> str:
    """The graph on a circle, as SVG."""
    at = [_place(node, found.nodes) for node in range(found.nodes)]
    parts = [*_edges(found, at), *_answers(found, at)]
    wrong = {answer.node for answer in found.wrong}
    for node, (x, y) in enumerate(at):
        kinds = ["node"] + ["wrong"] * (node in wrong) + ["source"] * (node == found.source)
        parts.append(
            f'<g class="{" ".join(kinds)}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{NODE}"/>'
            f'<text x="{x:.1f}" y="{y:.1f}">{node}</text></g>'
        )
    label = escape(found.sentence)
    return (
        f'<svg class="graph" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _place(node: int, nodes: int) -> tuple[float, float]:
    angle = 2 * pi * node / nodes - pi / 2
    return SIZE / 2 + RADIUS * cos(angle), SIZE / 2 + RADIUS * sin(angle)


def _edges(found: Counterexample, at: list[tuple[float, float]]) -> Iterator[str]:
    for one, other, weight in found.edges:
        if one == other:
            continue
        (x, y), (u, v) = at[one], at[other]
        yield _line("edge", at[one], at[other])
        if weight != 1:
            middle = f'x="{(x + u) / 2:.1f}" y="{(y + v) / 2:.1f}"'
            yield f'<text class="weight" {middle}>{weight:.2g}</text>'


def _answers(found: Counterexample, at: list[tuple[float, float]]) -> Iterator[str]:
    """From every wrong node to whom it names, and to whom it should."""
    for answer in found.wrong:
        for kind, named in (("right", answer.right), ("answered", answer.answered)):
            if named.is_integer() and 0 <= named < found.nodes and named != answer.node:
                yield _line(kind, at[answer.node], at[int(named)])


def _line(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (u, v) = start, end
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}"/>'
