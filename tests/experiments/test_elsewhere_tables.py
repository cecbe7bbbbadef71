"""Tables of what networks do on other graphs, beside the numbers that are kept."""

import json
from pathlib import Path
from statistics import mean

import pytest

from mechgap.experiments.replication.judging import Judge
from mechgap.experiments.replication.tables import TABLES

RESULTS = Path(__file__).parents[2] / "results"
LABEL, NAME = "dijkstra, windows, taught attention", "dijkstra_windows_attention"


@pytest.fixture(scope="module")
def kept():
    return json.loads((RESULTS / f"{NAME}.json").read_text())["elsewhere"]


def rendered(name):
    return TABLES[name].rendered(name, RESULTS, Judge.of([], RESULTS))


def test_agreement_from_the_own_state_is_that_of_seeds_that_were_looked_at_so(kept):
    seen = [s for s in kept["er-64"].values() if s.get("from_own_state")]
    table = rendered("from_own_state")
    (cells,) = (row for row in table.rows if row[:2] == (LABEL, "er-64"))
    told = dict(zip(table.head, cells, strict=True))
    assert told["seeds"] == str(len(seen))
    own = mean(s["from_own_state"]["dijkstra"]["agreement"] for s in seen)
    assert told["from its own state (%)"] == f"{100 * own:.1f}"
    assert (
        told["its run (%)"]
        == f"{100 * mean(s['mechanisms']['dijkstra']['agreement'] for s in seen):.1f}"
    )


def test_larger_graphs_stand_beside_with_how_many_seeds(kept):
    seen = list(kept["er-160"].values())
    table = rendered("teaching")
    (cells,) = (row for row in table.rows if row[0] == LABEL)
    told = dict(zip(table.head, cells, strict=True))
    assert int(told["seeds"]) > len(seen)
    assert told["er, 160 nodes (%)"].startswith(f"{100 * mean(s['accuracy'] for s in seen):.1f} / ")
    assert told["er, 160 nodes (%)"].endswith(f" ({len(seen)})")
