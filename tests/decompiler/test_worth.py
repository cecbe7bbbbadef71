"""Conditions that are worth their words: what is said is what was counted, and noise is not."""

import numpy as np
import pytest

from mechgap.decompiler.kinds import Kinds
from mechgap.decompiler.words import length
from mechgap.decompiler.worth import worthwhile
from mechgap.programs.library import LIBRARY
from seen_programs import seen


@pytest.fixture(scope="module")
def scenes():
    return seen(LIBRARY["dfs"], 11, 8, 16)[0]


@pytest.fixture(scope="module")
def kinds(scenes):
    return Kinds.of(scenes)


@pytest.mark.parametrize("price", [0.0, 0.003, 0.03])
def test_what_is_said_holds_for_the_kinds_that_were_counted(scenes, kinds, price):
    rng = np.random.default_rng(3)
    for _ in range(20):
        gain = rng.normal(size=len(kinds.table)) / len(kinds.table)
        found = worthwhile(kinds, gain, price)
        assert found is not None
        words = 0 if found.said is None else length(found.said)
        assert found.worth == pytest.approx(gain[found.holds].sum() - price * words)
        assert found.worth >= max(gain.sum(), 0.0)
        if found.said is not None:
            value = scenes.values(found.said)[..., 0] > 0.5
            assert (value == found.holds[kinds.of_node]).all()


def test_a_flag_comes_back_from_under_noise(kinds):
    """What an exact condition would list as exceptions."""
    rng = np.random.default_rng(4)
    for flag in range(len(kinds.flags)):
        has = kinds.table[:, flag]
        gain = np.where(has, 0.5 / has.sum(), -0.5 / (~has).sum())
        wrong = rng.choice(len(gain), 1)
        gain[wrong] = -1e-4 * np.sign(gain[wrong])
        found = worthwhile(kinds, gain, 0.01)
        assert found is not None
        assert found.said == kinds.flags[flag]


def test_what_is_only_lost_is_not_said(kinds):
    assert worthwhile(kinds, np.full(len(kinds.table), -0.01), 0.003) is None
    everybody = worthwhile(kinds, np.full(len(kinds.table), 0.01), 0.003)
    assert everybody is not None
    assert everybody.said is None
