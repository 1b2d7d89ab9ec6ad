"""The part of a table that fits on a page or into a workbook, and what to say of the rest.

Small tables are shown whole: one slice per combination of codes of the dimensions that are neither down nor across.
Of large ones the first levels are shown, and the page says what is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Self

import numpy as np

from tablesafe.equations import Integers, Mask
from tablesafe.report.axis import Axis
from tablesafe.report.cells import NUMBER, Kind
from tablesafe.report.layout import Layout, Window

MOST_TRIED = 400
"""Combinations of codes that are looked at: of linked tables many hold no cell."""
UNFOLDED = 90
"""Lines up to which a slice is shown unfolded."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much there is room for."""

    cells: int
    rows: int
    columns: int
    slices: int


PAGE = Room(cells=6_000, rows=400, columns=16, slices=60)
WORKBOOK = Room(cells=200_000, rows=1_048_000, columns=2_000, slices=60)
"""Below the limits of Excel, and small enough to open at once."""


@dataclass(frozen=True, eq=False)
class Slice:
    """The table at one code of each dimension that is neither down nor across."""

    window: Window = field(repr=False)
    filters: Mapping[str, str]
    parent: Integers = field(repr=False)
    """Per line of the window the line of the window above it, −1 for none."""

    @property
    def layout(self) -> Layout:
        """Where the slice comes from."""
        return self.window.layout

    @property
    def depth(self) -> list[int]:
        """Levels below the top, per line."""
        found: list[int] = self.layout.rows.depth[self.window.rows].tolist()
        return found

    @property
    def has_children(self) -> list[bool]:
        """Which lines have lines of the slice below them."""
        below = np.zeros(len(self.parent), dtype=np.bool_)
        below[self.parent[self.parent >= 0]] = True
        found: list[bool] = below.tolist()
        return found

    @property
    def open_depth(self) -> int:
        """Down to which level lines are unfolded at first."""
        depth = self.layout.rows.depth[self.window.rows]
        counts = np.cumsum(np.bincount(depth, minlength=1))
        fitting = np.flatnonzero(counts <= UNFOLDED)
        return max(1, int(fitting[-1]) if fitting.size else 0)

    @property
    def name(self) -> str:
        """The codes that it is held at, with their labels."""
        table = self.layout.table
        words = []
        for name, code in self.filters.items():
            label = table.dimensions[name].labels.get(code, "")
            words.append(f"{name}: {code}" + (f" {label}" if label and label != code else ""))
        return " · ".join(words)


@dataclass(frozen=True, eq=False)
class Excerpt:
    """The slices that are shown, and what is not."""

    slices: tuple[Slice, ...]
    notes: tuple[str, ...]
    """What is left out, in sentences; none when the table is whole."""

    @classmethod
    def of(cls, layout: Layout, room: Room = PAGE) -> Self:
        """As much of a layout as there is room for, its first levels first."""
        columns = _fitting(layout.columns, np.ones(len(layout.columns), np.bool_), room.columns)
        across, left = max(1, len(columns)), room.cells
        slices: list[Slice] = []
        for held in _combinations(layout):
            here = layout.at(filters=held) if held else layout
            rows = _fitting(here.rows, _with_totals(here.rows, here.occupied), max(1, min(left // across, room.rows)))
            whole = len(rows) == int(_with_totals(here.rows, here.occupied).sum())
            if slices and not whole:
                break
            if len(rows) or not held:
                slices.append(Slice(here.window(rows, columns), held, _parents(here.rows, rows)))
                left -= len(rows) * across
            if not whole or len(slices) == room.slices:
                break
        shown = tuple(slices) or (Slice(layout.window([], columns), {}, np.zeros(0, np.int64)),)
        return cls(shown, tuple(_notes(layout, shown, len(columns))))

    @property
    def cells(self) -> int:
        """How many cells are shown."""
        return sum(map(_shown, self.slices))


def _with_totals(axis: Axis, occupied: Mask) -> Mask:
    """The lines that have a cell, and those above them."""
    needed = occupied.copy()
    for level in range(int(axis.depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(needed & (axis.depth == level))
        needed[axis.parent[here]] = True
    return needed


def _fitting(axis: Axis, wanted: Mask, most: int) -> Integers:
    """As many lines as there is room for: all, or whole levels from the top, or the first ones of the top levels."""
    lines = np.flatnonzero(wanted)
    if len(lines) <= most:
        return lines
    counts = np.cumsum(np.bincount(axis.depth[lines]))
    level = max(1, int(np.searchsorted(counts, most, side="right")) - 1)
    return lines[axis.depth[lines] <= level][:most]


def _parents(axis: Axis, rows: Integers) -> Integers:
    """The line of the window above each of its lines."""
    if not len(rows):
        return np.zeros(0, np.int64)
    above = axis.parent[rows]
    at = np.minimum(np.searchsorted(rows, above), len(rows) - 1)
    return np.where((above >= 0) & (rows[at] == above), at, -1)


def _combinations(layout: Layout) -> Iterator[dict[str, str]]:
    """Codes to hold the other dimensions at, the totals first; not more than are worth trying."""
    axes = {name: layout.choices(name) for name in layout.filters}
    first = {name: np.argsort(axis.depth, kind="stable")[:MOST_TRIED] for name, axis in axes.items()}
    while prod(map(len, first.values())) > MOST_TRIED**2:
        first = {name: lines[: max(1, len(lines) // 2)] for name, lines in first.items()}
    every = list(itertools.product(*(lines.tolist() for lines in first.values())))
    depth = [sum(int(axis.depth[line]) for axis, line in zip(axes.values(), lines, strict=True)) for lines in every]
    held = tuple(int(np.flatnonzero(axis.codes == layout.filters[name])[0]) for name, axis in axes.items())
    order = sorted(range(len(every)), key=lambda i: (every[i] != held, depth[i]))
    for i in order[:MOST_TRIED]:
        yield {name: str(axes[name].codes[line]) for name, line in zip(axes, every[i], strict=True)}


def _notes(layout: Layout, slices: tuple[Slice, ...], columns: int) -> Iterator[str]:
    """What is not shown."""
    every = prod(len(layout.table.dimensions[name]) for name in layout.filters)
    if sum(map(_shown, slices)) == sum(layout.counts().values()):
        return
    if len(slices) < every:
        others = " and ".join(f"{name!r}" for name in layout.filters)
        yield f"{len(slices):,} of {every:,} slices by {others} are shown, the totals first."
    if columns < len(layout.columns):
        yield f"{columns:,} of {len(layout.columns):,} codes of {layout.columns.name!r} are shown across."
    first = slices[0]
    wanted = int(_with_totals(first.layout.rows, first.layout.occupied).sum())
    if len(first.window.rows) < wanted:
        lines = len(first.window.rows)
        yield f"{lines:,} of {wanted:,} codes of {layout.rows.name!r} are shown down, from the top."


def _shown(each: Slice) -> int:
    """How many cells of a slice show anything."""
    cells = each.window.cell[each.window.cell >= 0]
    return int((each.layout.view.kind[cells] != NUMBER[Kind.ABSENT]).sum())
