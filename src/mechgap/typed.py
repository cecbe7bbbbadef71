"""Typed results as files: plain values for JSON, and arrays by where they stand.

A result is a dataclass of numbers, texts, arrays, and of mappings, tuples and dataclasses of them;
its annotations say what is read back. What is not a number (no such row, one seed only) is null in
JSON and NaN in Python. A class may tell more than its fields, by naming properties in `ALSO_TOLD`:
they are written for readers of the file, and not read back. A field that has been renamed is still
read by its name in older files, if the class says in `FORMERLY` what that was.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import AbstractArray

from mechgap.errors import InvalidInput

Arrays = Mapping[str, np.ndarray]
"""Arrays by name; in files, by the path of names that leads to them."""


def plain(value: Any) -> Any:
    """What JSON can hold of a result: all but its arrays.

    >>> plain({"tv": float("nan"), "steps": (1, 2), "series": np.zeros(3)})
    {'tv': None, 'steps': [1, 2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value)] + list(getattr(value, "ALSO_TOLD", ()))
        return plain({name: getattr(value, name) for name in names})
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items() if not _holds_arrays(v)}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.value if isinstance(value, Enum) else value


def _holds_arrays(value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else [value]
    return any(isinstance(each, np.ndarray) for each in inner)


def arrays(value: Any, path: str = "") -> dict[str, np.ndarray]:
    """All arrays of a result, by path.

    >>> list(arrays({"seeds": {0: {"distances": np.zeros(3), "n": 3}}}))
    ['seeds/0/distances']
    """
    if isinstance(value, np.ndarray):
        return {path: np.ascontiguousarray(value)}
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, tuple):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        return {}
    inner = (arrays(v, f"{path}/{k}" if path else str(k)) for k, v in value.items())
    return {name: array for each in inner for name, array in each.items()}


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


def typed(kind: Any, data: Any, series: Arrays | None = None, path: str = "") -> Any:
    """A result of some type from its plain values and arrays; fields with defaults may be absent.

    Raises `InvalidInput` where the values are not of that type.
    """
    series = series or {}
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        some = next(k for k in inner if k is not NoneType)
        absent = data is None and not (_is_array(some) and path in series)
        return None if absent else typed(some, data, series, path)
    if _is_array(kind):
        if path not in series:
            raise InvalidInput(f"'{path}' is missing")
        return series[path]
    if isinstance(kind, type) and is_dataclass(kind):
        return data if isinstance(data, kind) else _dataclass(kind, data, series, path)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(inner, data, series, path)
    if origin is tuple and isinstance(data, list):
        kinds = [inner[0]] * len(data) if inner[-1] is ... else inner
        pairs = enumerate(zip(kinds, data, strict=True))
        return tuple(typed(k, each, series, f"{path}/{i}") for i, (k, each) in pairs)
    if kind is float and isinstance(data, int | float | NoneType):
        return math.nan if data is None else float(data)
    if isinstance(kind, type) and isinstance(data, kind):
        return data
    raise InvalidInput(f"'{path}' must be {getattr(kind, '__name__', kind)}; got {data!r}")


def _dataclass(kind: type[Any], data: Any, series: Arrays, path: str) -> Any:
    if not isinstance(data, Mapping):
        raise InvalidInput(f"'{path}' must be a mapping; got {data!r}")
    found, formerly = {}, getattr(kind, "FORMERLY", {})
    for name, (inner, needed) in _fields(kind).items():
        older = formerly.get(name, name)
        written = name if name in data or older not in data else older
        where = f"{path}/{written}" if path else written
        if written in data or where in series or _is_arrays(inner):
            found[name] = typed(inner, data.get(written), series, where)
        elif needed:
            raise InvalidInput(f"'{where}' is missing")
    return kind(**found)


def _mapping(inner: tuple[Any, Any], data: Any, series: Arrays, path: str) -> Any:
    key, value = inner
    if _is_array(value):
        inside = f"{path}/"
        return {n.removeprefix(inside): v for n, v in series.items() if n.startswith(inside)}
    if not isinstance(data, Mapping):
        raise InvalidInput(f"'{path}' must be a mapping; got {data!r}")
    return {key(k): typed(value, v, series, f"{path}/{k}") for k, v in data.items()}


@cache
def _fields(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """The annotation of every field, and whether it must be there."""
    hints = get_type_hints(kind)
    return {
        f.name: (hints[f.name], f.default is MISSING and f.default_factory is MISSING)
        for f in fields(kind)
    }


def _is_array(kind: Any) -> bool:
    if get_origin(kind) in {Union, UnionType}:
        return any(_is_array(some) for some in get_args(kind))
    return isinstance(kind, type) and issubclass(kind, np.ndarray | AbstractArray)


def _is_arrays(kind: Any) -> bool:
    origin = get_origin(kind)
    is_mapping = isinstance(origin, type) and issubclass(origin, Mapping)
    return is_mapping and _is_array(get_args(kind)[1])
