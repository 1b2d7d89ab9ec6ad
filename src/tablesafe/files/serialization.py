"""Frozen data as bytes, and back, without pickle: nothing that is read can make anything happen.

Dataclasses and named tuples of this package, arrays, sparse matrices, frames, paths and what Python is made of. What
comes back is equal to what went in, to the last bit; an object that stands in two places is one object again.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

PACKAGE = "tablesafe."
SPARSE = {"csr": sparse.csr_array, "csc": sparse.csc_array}
LEFT_OUT = frozenset({"budget", "origin"})
"""Fields that do not travel: how a table was made is known to those who make it, and time is no part of a question."""


class CannotKeep(TypeError):
    """Something that has no plain form."""


def freeze(value: Any, known: Mapping[str, Any] | None = None) -> bytes:
    """A value as bytes. Objects that whoever reads it has already are only named, in `known`."""
    writer = _Writer({id(given): name for name, given in (known or {}).items()})
    head = json.dumps(writer.plain(value), ensure_ascii=True, separators=(",", ":")).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *writer.buffers])


def thaw(data: bytes, known: Mapping[str, Any] | None = None) -> Any:
    """The value that bytes stand for; ValueError when they stand for none."""
    length = int.from_bytes(data[:8], "little")
    try:
        return _Reader(memoryview(data)[8 + length :], known or {}).value(json.loads(data[8 : 8 + length]))
    except (TypeError, KeyError, IndexError, AttributeError, ImportError) as error:
        raise ValueError(f"No frozen data: {error}") from error


class _Writer:
    def __init__(self, known: Mapping[int, str]) -> None:
        self.buffers: list[bytes] = []
        self._end = 0
        self._known = known
        self._seen: dict[int, tuple[int, Any]] = {}

    def plain(self, value: Any) -> Any:
        """What JSON writes: `[kind, ...]` for all but text, numbers and nothing."""
        if value is None or (isinstance(value, (bool, str)) and type(value) in (bool, str)):
            return value
        if type(value) in (int, float):
            return value
        if id(value) in self._known:
            return ["known", self._known[id(value)]]
        if id(value) in self._seen:
            return ["again", self._seen[id(value)][0]]
        kind = self._compound(value)
        if kind[0] in ("array", "sparse", "data"):
            self._seen[id(value)] = (len(self._seen), value)
        return kind

    def _compound(self, value: Any) -> list[Any]:
        match value:
            case Enum():
                return ["enum", *_home(type(value)), value.name]
            case np.generic():
                return ["scalar", value.dtype.str, value.item()]
            case np.ndarray():
                return self._array(value)
            case sparse.csr_array() | sparse.csc_array():
                parts = [self._array(part) for part in (value.data, value.indices, value.indptr)]
                return ["sparse", value.format, list(map(int, value.shape)), *parts]
            case pl.DataFrame():
                stream = io.BytesIO()
                value.write_ipc(stream)
                return ["frame", *self._bytes(stream.getvalue())]
            case Fraction():
                return ["fraction", value.numerator, value.denominator]
            case PurePath():
                return ["path", str(value)]
            case tuple() if hasattr(value, "_fields"):
                return ["named", *_home(type(value)), [self.plain(item) for item in value]]
            case tuple() | list():
                return [type(value).__name__, [self.plain(item) for item in value]]
            case Mapping():
                return ["dict", [[self.plain(key), self.plain(item)] for key, item in value.items()]]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [spec.name for spec in dataclasses.fields(value) if spec.name not in LEFT_OUT]
            return ["data", *_home(type(value)), {name: self.plain(getattr(value, name)) for name in fields}]
        raise CannotKeep(f"A {type(value).__name__} cannot be kept.")

    def _array(self, array: np.ndarray[Any, Any]) -> list[Any]:
        if array.dtype.kind in "OTV":
            return ["array", array.dtype.kind, list(array.shape), [self.plain(item) for item in array.ravel().tolist()]]
        return ["array", array.dtype.str, list(array.shape), *self._bytes(np.ascontiguousarray(array).tobytes())]

    def _bytes(self, data: bytes) -> tuple[int, int]:
        self.buffers.append(data)
        self._end += len(data)
        return self._end - len(data), len(data)


class _Reader:
    def __init__(self, buffer: memoryview, known: Mapping[str, Any]) -> None:
        self._buffer, self._known = buffer, known
        self._seen: list[Any] = []

    def value(self, plain: Any) -> Any:
        """The value behind what JSON wrote."""
        if not isinstance(plain, list):
            return plain
        kind, *rest = plain
        if kind == "known":
            return self._known[rest[0]]
        if kind == "again":
            return self._seen[rest[0]]
        found = self._compound(kind, rest)
        if kind in ("array", "sparse", "data"):
            self._seen.append(found)
        return found

    def _compound(self, kind: str, rest: list[Any]) -> Any:
        match kind:
            case "enum":
                return _class(rest[0], rest[1])[rest[2]]
            case "scalar":
                return np.dtype(rest[0]).type(rest[1])
            case "array":
                return self._array(rest)
            case "sparse":
                parts = tuple(self._array(part[1:]) for part in rest[2:])
                return SPARSE[rest[0]](parts, shape=tuple(rest[1]))
            case "frame":
                return pl.read_ipc(io.BytesIO(self._slice(rest[0], rest[1])))
            case "fraction":
                return Fraction(rest[0], rest[1])
            case "path":
                return Path(rest[0])
            case "named":
                return _class(rest[0], rest[1])(*map(self.value, rest[2]))
            case "tuple":
                return tuple(map(self.value, rest[0]))
            case "list":
                return list(map(self.value, rest[0]))
            case "dict":
                return {self.value(key): self.value(item) for key, item in rest[0]}
            case "data":
                return self._data(_class(rest[0], rest[1]), rest[2])
        raise ValueError(f"No frozen data: {kind!r}")

    def _data(self, cls: Any, fields: dict[str, Any]) -> Any:
        """A dataclass with its fields as they were; it was checked when it was made."""
        made = object.__new__(cls)
        for spec in dataclasses.fields(cls):
            value = self.value(fields[spec.name]) if spec.name in fields else None
            object.__setattr__(made, spec.name, value)
        return made

    def _array(self, rest: list[Any]) -> Any:
        dtype, shape = rest[0], tuple(rest[1])
        if dtype in ("O", "T", "V"):
            made = np.empty(
                int(np.prod(shape, dtype=np.int64)), dtype=object if dtype == "O" else np.dtypes.StringDType()
            )
            made[:] = [self.value(item) for item in rest[2]]
            return made.reshape(shape)
        flat = np.frombuffer(self._slice(rest[2], rest[3]), dtype=np.dtype(dtype))
        return flat.reshape(shape).copy()

    def _slice(self, start: int, length: int) -> bytes:
        if start < 0 or length < 0 or start + length > len(self._buffer):
            raise ValueError("No frozen data: it ends too early.")
        return bytes(self._buffer[start : start + length])


def _home(cls: type) -> tuple[str, str]:
    if not cls.__module__.startswith(PACKAGE) or "<" in cls.__qualname__:
        raise CannotKeep(f"A {cls.__name__} cannot be kept.")
    return cls.__module__, cls.__qualname__


def _class(module: str, name: str) -> Any:
    """A class of this package that holds data; nothing else can be named."""
    if not module.startswith(PACKAGE):
        raise ValueError(f"No frozen data: {module!r}")
    found: Any = sys.modules.get(module) or import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    made = isinstance(found, type) and (
        dataclasses.is_dataclass(found)
        or issubclass(found, Enum)
        or (issubclass(found, tuple) and hasattr(found, "_fields"))
    )
    if not made:
        raise ValueError(f"No frozen data: {module}.{name}")
    return found
