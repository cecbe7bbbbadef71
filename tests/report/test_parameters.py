"""Figures draw what the network holds."""

import jax
import numpy as np
import pytest

from mechgap.compiler.compile import compile_program
from mechgap.compiler.domain import Domain
from mechgap.compiler.target import TARGETS
from mechgap.compiler.verify import fresh_graphs
from mechgap.programs.library import LIBRARY, bfs
from mechgap.report.parameters import auxiliary_matrices, main_matrices
from mechgap.report.run_figure import longest


@pytest.mark.parametrize(("target", "hidden"), [("paper", 4), ("general", 8), ("stock-ln", 128)])
def test_every_parameter_that_is_not_zero_is_shown(target, hidden):
    domain = Domain.regular(bfs, 8)
    compiled = compile_program(bfs, TARGETS[target], domain, hidden_size=hidden)
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
    assert list(value.rows) == ["visit", "dist", "pi", "-pi"]
    assert "h dist" in value.columns
    assert "in start" in value.columns


def test_the_longest_run_is_chosen():
    batch = fresh_graphs(bfs, 6, 16, 0)
    assert int(batch.lengths[longest(batch)]) == int(batch.lengths.max())
