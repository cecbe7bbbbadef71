"""Results come back from their files as they were, or are refused in one line."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from jaxtyping import Float

from mechgap.errors import InvalidInput
from mechgap.typed import Arrays, arrays, plain, typed


@dataclass(frozen=True)
class Inner:
    """A part."""

    value: float
    pair: tuple[float, float]
    series: Float[np.ndarray, "steps"]
    name: str | None = None


@dataclass(frozen=True)
class Outer:
    """A whole."""

    count: int
    inner: Mapping[int, Inner]
    several: tuple[Inner, ...]
    maybe: Inner | None
    print_: Float[np.ndarray, "n"] | None
    named: Arrays = field(default_factory=dict)


floats = some.floats(allow_infinity=False) | some.just(math.nan)
vectors = some.lists(some.floats(-1, 1), max_size=4).map(np.array)
inners = some.builds(
    Inner, floats, some.tuples(floats, floats), vectors, some.none() | some.text(max_size=3)
)
names = some.text("abc", min_size=1, max_size=3)
outers = some.builds(
    Outer,
    some.integers(),
    some.dictionaries(some.integers(0, 9), inners, max_size=2),
    some.lists(inners, max_size=2).map(tuple),
    some.none() | inners,
    some.none() | vectors,
    some.dictionaries(names, vectors, max_size=2),
)


@given(outers)
def test_what_is_written_is_read(value: Outer):
    text, series = json.dumps(plain(value), allow_nan=False), arrays(value)
    again = typed(Outer, json.loads(text), series)
    assert plain(again) == plain(value)
    assert arrays(again).keys() == series.keys()
    for name, array in arrays(again).items():
        assert np.array_equal(array, series[name])
    assert type(again.several) is tuple
    assert list(again.inner) == list(value.inner)


GOOD = Outer(1, {0: Inner(1.0, (1.0, 2.0), np.zeros(2))}, (), None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": "one"}, "'count' must be int; got 'one'"),
        ({"inner": []}, "'inner' must be a mapping"),
        ({"inner": {"0": {"value": 1.0}}}, "'inner/0/pair' is missing"),
        ({"inner": {"1": {"value": 1.0, "pair": [1.0, 2.0]}}}, "'inner/1/series' is missing"),
        ({"maybe": 3}, "'maybe' must be a mapping; got 3"),
    ],
)
def test_what_is_not_such_a_result_is_refused(change, said):
    with pytest.raises(InvalidInput) as error:
        typed(Outer, {**plain(GOOD), **change}, arrays(GOOD))
    assert said in str(error.value)


@dataclass(frozen=True)
class Renamed:
    """Written when `parts` was called `pieces`."""

    parts: Mapping[str, Inner]

    FORMERLY: ClassVar = {"parts": "pieces"}


def test_older_files_are_read_by_the_names_that_they_have():
    value = Renamed({"a": Inner(1.0, (0.0, 1.0), np.ones(2))})
    now, series = plain(value), arrays(value)
    before = {"pieces": now["parts"]}
    renamed = {name.replace("parts/", "pieces/"): array for name, array in series.items()}
    for data, held in ((now, series), (before, renamed)):
        again = typed(Renamed, data, held)
        assert again.parts["a"].value == 1.0
        np.testing.assert_array_equal(again.parts["a"].series, np.ones(2))
    with pytest.raises(InvalidInput, match="'parts' is missing"):
        typed(Renamed, {})
