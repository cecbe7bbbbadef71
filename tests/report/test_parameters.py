"""Figures draw what the network holds."""

import jax
import numpy as np
import pytest

from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs
from mechgap.programs.depth_first import dfs
from mechgap.programs.library import LIBRARY, bfs
from mechgap.report.parameters import auxiliary_matrices, main_matrices
from mechgap.report.run_figure import longest, run_figure


@pytest.mark.parametrize(
    ("program", "target", "hidden"),
    [(bfs, "paper", 4), (bfs, "general", 8), (bfs, "stock-ln", 128), (dfs, "stock-ln", 128)],
)
def test_every_parameter_that_is_not_zero_is_shown(program, target, hidden):
    domain = Domain.regular(program, 8)
    compiled = compile_program(program, TARGETS[target], domain, hidden_size=hidden)
    shown = [*main_matrices(compiled), *auxiliary_matrices(compiled)]
    count = sum(np.count_nonzero(m.values) for m in shown)
    network = compiled.network
    leaves = [network.processor, network.encoders, network.decoders]
    assert count == sum(np.count_nonzero(leaf) for leaf in jax.tree.leaves(leaves))
    assert all(m.values.shape == (len(m.rows), len(m.columns)) for m in shown)


def test_units_have_the_variables_names():
    program = LIBRARY["bellman_ford"]
    compiled = compile_program(program, TARGETS["paper"], Domain.regular(program, 6), hidden_size=4)
    value = main_matrices(compiled)[0]
    assert list(value.rows) == ["visit", "dist", "-dist", "pi"]
    assert "in dist" in value.columns
    assert "in start" in value.columns


def test_a_run_with_phases_is_drawn():
    compiled = compile_program(dfs, TARGETS["stock"], Domain.regular(dfs, 3), hidden_size=40)
    figure = run_figure(compiled, fresh_graphs(dfs, 3, 1, 0))
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert len(shown) == 3 * 8  # three phases in each of eight steps
    texts = {text.get_text() for text in shown[-1].texts}
    assert any("black" in text and "time = 0.06" in text for text in texts)


def test_the_longest_run_is_chosen():
    batch = fresh_graphs(bfs, 6, 16, 0)
    assert int(batch.lengths[longest(batch)]) == int(batch.lengths.max())
