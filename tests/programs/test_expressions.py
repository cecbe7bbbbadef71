"""Expressions print back as the text that made them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechgap.programs.expressions import (
    Add,
    And,
    Constant,
    Name,
    Not,
    Or,
    Scale,
    Side,
    Subtract,
    edge,
    init,
    other,
    self,
)

SCOPE = {"self": self, "other": other, "init": init, "edge": edge}
NAMES = st.builds(Name, st.sampled_from(Side), st.sampled_from(["visit", "idx", "dist"]))
CONSTANTS = st.builds(Constant, st.sampled_from([0.5, 1.0, 3.0]))
FACTORS = st.sampled_from([0.25, -1.0, 2.0])


def flags(inner):
    return st.builds(And, inner, inner) | st.builds(Or, inner, inner) | st.builds(Not, inner)


def numbers(inner):
    # Python itself adds two bare numbers, so a constant always stands beside a name.
    sums = [st.builds(kind, inner, inner | CONSTANTS) for kind in (Add, Subtract)]
    return sums[0] | sums[1] | st.builds(Scale, FACTORS, inner)


EXPRESSIONS = st.recursive(NAMES, flags, max_leaves=8) | st.recursive(NAMES, numbers, max_leaves=8)


@given(EXPRESSIONS)
def test_the_text_gives_the_expression_back(expression):
    assert eval(str(expression), dict(SCOPE)) == expression


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (other.visit & ~self.visit, "other.visit & ~self.visit"),
        (~(self.a | other.b) & edge.loop, "~(self.a | other.b) & edge.loop"),
        (other.dist + edge.weight - 2 * self.dist, "other.dist + edge.weight - 2 * self.dist"),
        (other.a - (other.b - 1), "other.a - (other.b - 1)"),
        (0.5 * (other.a + 1), "0.5 * (other.a + 1)"),
        (1 - init.start, "1 - init.start"),
    ],
)
def test_brackets_stand_where_they_are_needed(expression, text):
    assert str(expression) == text


def test_walking_finds_every_name():
    names = {str(part) for part in (other.a & ~self.b | edge.loop).walk() if isinstance(part, Name)}
    assert names == {"other.a", "self.b", "edge.loop"}
