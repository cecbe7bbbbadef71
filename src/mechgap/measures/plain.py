"""Numbers as JSON can hold them."""

import math
from collections.abc import Mapping
from typing import Any


def without_nan(value: Any) -> Any:
    """Plain values in which what is not a number is None."""
    if isinstance(value, Mapping):
        return {k: without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def rounded(value: Any) -> Any:
    """Plain values with six digits, which is what measures in float32 can tell.

    >>> rounded([0.123456789, {"a": None}])
    [0.123457, {'a': None}]
    """
    if isinstance(value, Mapping):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
