"""The gap of a network, from attention that was captured inside the real dm-clrs.

Attention is taken from dm-clrs's own softmax while it predicts, and the measures are written again
from their definitions, node by node. Ours must agree.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from clrs._src import processors
from jax.experimental import io_callback

from mechgap.interop.dm_clrs import baseline_model, from_feedback, official_feedback, to_haiku
from mechgap.measures.causal import causal
from mechgap.measures.data import make_data
from mechgap.measures.internal import internal_gap
from mechgap.network.config import NetworkConfig
from mechgap.network.network import Network
from mechgap.network.trace import run
from mechgap.tasks.official import Split


class _Recording:
    """JAX as dm-clrs's processors see it, with a softmax that tells what it gave."""

    def __init__(self, records: list[np.ndarray]):
        self.nn = self
        self.records = records

    def __getattr__(self, name: str) -> Any:
        return getattr(jax.nn, name) if hasattr(jax.nn, name) else getattr(jax, name)

    def softmax(self, logits, axis=-1):
        given = jax.nn.softmax(logits, axis=axis)
        io_callback(lambda a: self.records.append(np.asarray(a)), None, given, ordered=True)
        return given


@pytest.fixture(scope="module")
def sharp() -> Network:
    """An untrained network whose attention is sharp enough to be right here and wrong there."""
    network = Network.initial("bfs", jax.random.key(3), NetworkConfig(hidden_size=16))
    return eqx.tree_at(lambda n: n.processor.attention, network, replace_fn=lambda w: 30 * w)


@pytest.fixture(scope="module")
def captured(sharp):
    feedback = official_feedback("bfs", Split.VALIDATION)
    records: list[np.ndarray] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processors, "jax", _Recording(records))
        model = baseline_model("bfs", sharp.config, feedback, parameters=to_haiku(sharp))
        outputs, _ = model.predict(jax.random.PRNGKey(0), feedback.features)
        pi = np.asarray(outputs["pi"].data)
    batch = from_feedback("bfs", feedback)
    return np.stack(records)[: batch.steps, :, 0], batch, pi


def by_definition(attention, adjacent, source, steps):
    """One graph's rows: (class, misplaced by kind, credit, strict credit), written plainly."""
    nodes = len(adjacent)
    reached = {source}
    rows = []
    for step in range(steps):
        new = set()
        for i in range(nodes):
            alpha = attention[step, i].astype(np.float64)
            parents = [j for j in sorted(reached) if adjacent[i, j] or adjacent[j, i]]
            updated = i not in reached and bool(parents)
            right = parents if updated else [i]
            chosen = right[0]
            largest = [j for j in range(nodes) if alpha[j] == alpha.max()]
            credit = sum(j in right for j in largest) / len(largest)
            strict = sum(j == chosen for j in largest) / len(largest)
            tie = sum(alpha[j] for j in right if j != chosen)
            other = sum(alpha[j] for j in range(nodes) if j not in right)
            kinds = {"tie": tie, "soft": other * credit, "wrong": other * (1 - credit)}
            rows.append(
                ("updated" if updated else "inactive", kinds, credit, strict, alpha[chosen])
            )
            if updated:
                new.add(i)
        reached |= new
    return rows


def test_the_gap_is_what_its_definition_says_of_dm_clrs_s_own_attention(sharp, captured):
    attention, batch, _ = captured
    data = make_data("validation", batch)
    ours = run(sharp, batch)
    live = np.asarray(data.valid)
    np.testing.assert_allclose(
        attention[live], np.asarray(ours.attention)[:, :, 0][live], atol=2e-5
    )
    adjacent = np.asarray(batch.inputs["adj"]) > 0
    sources = np.asarray(batch.inputs["s"]).argmax(-1)
    each = [
        by_definition(attention[:, g], adjacent[g], int(sources[g]), int(live[:, g].sum()))
        for g in range(batch.size)
    ]
    gap = internal_gap(ours.attention, data.truths[0], data)
    assert data.truths[0].mechanism == "bfs"

    def mean(values):
        """Over a graph's rows, then over graphs."""
        return np.mean([np.mean(v) for v in values])

    assert gap.tv == pytest.approx(mean([[1 - r[4] for r in rows] for rows in each]), abs=1e-4)
    for name in ("updated", "inactive"):
        for kind in ("tie", "soft", "wrong"):
            part = [[r[1][kind] * (r[0] == name) for r in rows] for rows in each]
            assert gap.parts[name][kind] == pytest.approx(mean(part), abs=1e-4), (name, kind)
    assert sum(gap.parts["unchanged"].values()) == 0
    updated = [[r for r in rows if r[0] == "updated"] for rows in each]
    updated = [rows for rows in updated if rows]
    assert gap.agreement == pytest.approx(
        mean([[r[2] for r in rows] for rows in updated]), abs=1e-3
    )
    strict = mean([[r[3] for r in rows] for rows in updated])
    assert gap.agreement_strict == pytest.approx(strict, abs=1e-3)
    misplaced = mean([[r[1]["soft"] + r[1]["wrong"] for r in rows] for rows in updated])
    assert gap.misplaced == pytest.approx(misplaced, abs=1e-4)
    # The example is worth something: rows are right here and wrong there.
    assert 0.05 < gap.agreement < 0.95
    assert min(gap.parts["updated"].values()) > 1e-3


def test_accuracy_under_its_own_attention_is_dm_clrs_s(sharp, captured):
    _, batch, pi = captured
    data = make_data("validation", batch, ())
    truth = np.asarray(batch.outputs["pi"])
    own = causal(sharp, data).own
    assert own == pytest.approx(np.mean(pi == truth), abs=1e-6)
