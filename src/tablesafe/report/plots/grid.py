"""Where each cell of a table stands in a picture: one dimension down, the others across, in tree order."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import InvalidOption
from tablesafe.core.table import Table
from tablesafe.files.read import did_you_mean
from tablesafe.report.axis import Axis

FINEST = (600, 900)
"""Most places down and across; where there are more lines, several share a place."""
INDENT = "\u00a0" * 3
"""Spaces that a page does not draw together."""


@dataclass(frozen=True, eq=False)
class Side:
    """One side of the picture: its lines, each with a name, how deep it lies, and the group that it belongs to."""

    heading: str
    names: tuple[str, ...] = field(repr=False)
    depth: NDArray[np.int32] = field(repr=False)
    group: Integers = field(repr=False)
    """The number of the group of lines, rising; of one group only where there is one dimension."""
    groups: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.depth)

    def ticks(self, most: int) -> Integers:
        """The lines to name: all, or as many levels from the top as fit, or every so many."""
        if len(self) <= most:
            return np.arange(len(self))
        for level in range(int(self.depth.max(initial=0)), -1, -1):
            chosen = np.flatnonzero(self.depth <= level)
            if len(chosen) <= most and (len(chosen) > 3 or level > 0):
                return _apart(chosen, len(self) / most)
        return np.arange(0, len(self), ceil(len(self) / most))


@dataclass(frozen=True, eq=False)
class Grid:
    """The line down and the line across of every cell."""

    rows: Side
    columns: Side
    row: Integers = field(repr=False)
    column: Integers = field(repr=False)

    @classmethod
    def of(cls, table: Table, rows: str | None = None) -> Self:
        """Lay a table out: `rows` stands down, by default the longest dimension; lines without a cell are left out."""
        if not table.dimensions:
            return cls._of_names(len(table))
        names = list(table.dimensions)
        if rows is not None and rows not in names:
            raise InvalidOption(
                f"The table has no dimension {rows!r}.\n\nHint: "
                f"{did_you_mean(rows, names) or 'its dimensions are ' + ', '.join(map(repr, names)) + '.'}"
            )
        down = rows or max(names, key=lambda name: len(table.dimensions[name]))
        across = sorted((name for name in names if name != down), key=lambda name: len(table.dimensions[name]))
        row, row_side = _side(table, [down])
        column, column_side = _side(table, across)
        return cls(row_side, column_side, row, column)

    @classmethod
    def _of_names(cls, n: int) -> Self:
        """Cells without dimensions, in their order, line by line."""
        width = max(1, ceil(sqrt(1.6 * n)))
        height = max(1, ceil(n / width))
        at = np.arange(n, dtype=np.int64)
        plain = [
            Side(words, (), np.zeros(lines, np.int32), np.zeros(lines, np.int64))
            for words, lines in (("Cells in their order, line by line", height), ("", width))
        ]
        return cls(plain[0], plain[1], at // width, at % width)

    @property
    def shape(self) -> tuple[int, int]:
        """Places down and across."""
        return min(len(self.rows), FINEST[0]), min(len(self.columns), FINEST[1])

    @property
    def shared(self) -> bool:
        """Whether several lines share a place."""
        return self.shape != (len(self.rows), len(self.columns))

    def greatest(self, values: Floats) -> Floats:
        """A picture of the greatest value at each place; NaN where there is no cell."""
        down, across = self.shape
        place = (self.row * down // len(self.rows)) * across + self.column * across // len(self.columns)
        picture = np.full(down * across, -np.inf)
        np.maximum.at(picture, place, values)
        return np.where(np.isneginf(picture), np.nan, picture).reshape(down, across)


def _side(table: Table, names: list[str]) -> tuple[Integers, Side]:
    """The line of every cell along some dimensions, the first of them outermost."""
    every = list(table.dimensions)
    axes = [Axis.of(name, table.dimensions[name]) for name in names]
    place = np.zeros(len(table), dtype=np.int64)
    for axis in axes:
        place = place * len(axis) + axis.line_of(table.codes[:, every.index(axis.name)])
    used, line = np.unique(place, return_inverse=True)
    if not axes:
        return line, Side("", (table.response,), np.zeros(1, np.int32), np.zeros(1, np.int64))
    inner, outer = axes[-1], axes[:-1]
    depth = inner.depth[used % len(inner)]
    texts = [INDENT * level + inner.heading(at) for at, level in enumerate(inner.depth.tolist())]
    shown = pl.Series(texts, dtype=pl.String).gather((used % len(inner)).astype(np.uint32)).to_list()
    found, group = np.unique(used // len(inner), return_inverse=True)
    words = tuple(_words(int(at), outer) for at in found) if outer and len(found) <= FINEST[1] else ()
    return line, Side(" × ".join(axis.name for axis in axes), tuple(shown), depth, group.astype(np.int64), words)


def _words(place: int, axes: list[Axis]) -> str:
    """The codes that a group of lines stands for."""
    parts = []
    for axis in reversed(axes):
        place, at = divmod(place, len(axis))
        parts.append(axis.heading(at))
    return ", ".join(reversed(parts))


def _apart(chosen: Integers, distance: float) -> Integers:
    """Those that keep their distance from the one before."""
    kept: list[int] = []
    for at in chosen.tolist():
        if not kept or at - kept[-1] >= distance:
            kept.append(at)
    return np.array(kept, dtype=np.int64)
