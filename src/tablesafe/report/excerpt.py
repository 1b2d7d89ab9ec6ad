"""The part of a table that fits on a page or into a workbook, and what to say of the rest.

Small tables are shown whole: one slice per combination of codes of the dimensions that are neither down nor across.
Of large ones the first levels are shown, with the lines of withheld cells, which is what a reader looks for; a slice
that has any is opened first. The page says what is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tablesafe.core.equations import Integers, Mask, cell_keys
from tablesafe.core.language import Text, text
from tablesafe.report.axis import Axis
from tablesafe.report.cells import NUMBER, Kind
from tablesafe.report.layout import Layout, Window

HIDDEN = tuple(
    NUMBER[kind]
    for kind in (
        Kind.WITHHELD, Kind.SENSITIVE, Kind.SENSITIVE_SHOWN, Kind.COMPLEMENTARY, Kind.GIVEN, Kind.INTERVAL,
        Kind.POSSIBLY, Kind.OPEN,
    )
)  # fmt: skip
"""Kinds of cells that a reader looks for first."""
FEWEST = 12
"""Lines of a slice, if it has so many, without which it is left out."""
UNFOLDED = 90
"""Lines up to which a slice is shown unfolded."""


@dataclass(frozen=True, slots=True)
class Space:
    """How much there is room for."""

    cells: int
    rows: int
    columns: int
    slices: int


PAGE = Space(cells=6_000, rows=400, columns=16, slices=60)
"""What a page has room for, and a browser draws at once."""
WORKBOOK = Space(cells=200_000, rows=1_048_000, columns=2_000, slices=60)
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
    def leads(self) -> list[bool]:
        """Which lines must be unfolded to see the first line with a withheld cell."""
        found = np.zeros(len(self.parent), dtype=np.bool_)
        line = int(np.argmax(self._hidden)) if self._hidden.any() else -1
        while line >= 0 and self.parent[line] >= 0:
            line = int(self.parent[line])
            found[line] = True
        leading: list[bool] = found.tolist()
        return leading

    @property
    def hides(self) -> bool:
        """Whether it shows a cell of which the value is hidden."""
        return bool(self._hidden.any())

    @property
    def _hidden(self) -> Mask:
        """Which lines of the window show a cell of which the value is hidden."""
        cell = self.window.cell
        hidden = np.isin(self.layout.view.kind, HIDDEN)
        return np.asarray(np.append(hidden, False)[cell].any(axis=1), np.bool_)

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
    texts: tuple[Text, ...]
    """What is left out, in sentences; none when the table is whole."""

    @classmethod
    def of(cls, layout: Layout, room: Space = PAGE) -> Self:
        """As much of a layout as there is room for, its first levels first."""
        sought = layout.holding(HIDDEN, across=True)[: len(layout.columns)]
        columns = _fitting(layout.columns, np.ones(len(layout.columns), np.bool_), room.columns, sought)
        across, every = max(1, len(columns)), _combinations(layout)
        here = [(held, layout.at(filters=held) if held else layout) for held in every[: room.slices]]
        wanted = [_with_totals(each.rows, each.occupied) for _, each in here]
        slices: list[Slice] = []
        for (held, each), lines, most in zip(
            here, wanted, _shares(wanted, room.cells // across, room.rows), strict=True
        ):
            rows = _fitting(each.rows, lines, most, each.holding(HIDDEN, across=False))
            if len(rows) or not held:
                slices.append(Slice(each.window(rows, columns), held, _parents(each.rows, rows)))
        shown = tuple(slices) or (Slice(layout.window([], columns), {}, np.zeros(0, np.int64)),)
        return cls(shown, tuple(_notes(layout, shown, len(columns), len(every), room)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not shown, in English."""
        return tuple(map(str, self.texts))

    @property
    def opening(self) -> int:
        """The slice to look at first: the first that shows a withheld cell."""
        return next((i for i, each in enumerate(self.slices) if each.hides), 0)

    @property
    def cells(self) -> int:
        """How many cells are shown."""
        return sum(map(_shown, self.slices))


def _shares(wanted: list[Mask], left: int, rows: int) -> list[int]:
    """How many lines each slice may have: all, if there is room; else the first half of it, and the others the rest.

    Slices for which no room is left have none.
    """
    many = [int(lines.sum()) for lines in wanted]
    if sum(many) <= left and max(many, default=0) <= rows:
        return many
    shares: list[int] = []
    for number, lines in enumerate(many):
        waiting = len(many) - number
        most = max(left // 2, FEWEST) if number == 0 and waiting > 1 else max(left // waiting, FEWEST)
        share = min(lines, most, rows, left) if left >= min(FEWEST, lines) else 0
        shares.append(share)
        left -= share
    return shares


def _with_totals(axis: Axis, occupied: Mask) -> Mask:
    """The lines that have a cell, and those above them."""
    needed = occupied.copy()
    for level in range(int(axis.depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(needed & (axis.depth == level))
        needed[axis.parent[here]] = True
    return needed


def _fitting(axis: Axis, wanted: Mask, most: int, sought: Mask) -> Integers:
    """As many lines as there is room for: all, or whole levels from the top, or the first ones of the top levels.

    Where not all fit, up to half of the room is for lines with hidden values, and those above them.
    """
    lines = np.flatnonzero(wanted)
    if len(lines) <= most:
        return lines
    counts = np.cumsum(np.bincount(axis.depth[lines]))
    level = max(1, int(np.searchsorted(counts, most, side="right")) - 1)
    first = lines[axis.depth[lines] <= level][:most]
    notable = np.flatnonzero(sought & wanted)
    missing = notable[~np.isin(notable, first)]
    if not len(missing) or most < 2:
        return first
    room = max(1, most // 2)
    kept = np.zeros(len(wanted), dtype=np.bool_)
    kept[missing[: max(1, room // (1 + int(axis.depth[missing].max(initial=0))))]] = True
    added = np.flatnonzero(_with_totals(axis, kept))
    own = first[~np.isin(first, added)][: max(0, most - len(added))]
    return np.sort(np.concatenate([own, added]))[:most]


def _parents(axis: Axis, rows: Integers) -> Integers:
    """The line of the window above each of its lines."""
    if not len(rows):
        return np.zeros(0, np.int64)
    above = axis.parent[rows]
    at = np.minimum(np.searchsorted(rows, above), len(rows) - 1)
    return np.where((above >= 0) & (rows[at] == above), at, -1)


def _combinations(layout: Layout) -> list[dict[str, str]]:
    """The codes that the other dimensions can be held at so that there is any cell: the totals first, then those
    with hidden values.

    Of linked tables most combinations hold none, so they are read off the cells.
    """
    table, names = layout.table, list(layout.filters)
    if not names:
        return [{}]
    axes = [layout.choices(name) for name in names]
    shown = np.not_equal(layout.view.kind, NUMBER[Kind.ABSENT])
    codes = table.codes[shown][:, [list(table.dimensions).index(name) for name in names]]
    keys = cell_keys(codes, [len(axis) for axis in axes])
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    hidden = np.bincount(group, weights=np.isin(layout.view.kind[shown], HIDDEN), minlength=len(first)) > 0
    lines = [axis.line_of(codes[first, d]) for d, axis in enumerate(axes)]
    depth = np.sum([axis.depth[line] for axis, line in zip(axes, lines, strict=True)], axis=0)
    held = np.all(
        [axis.codes[line] == layout.filters[axis.name] for axis, line in zip(axes, lines, strict=True)], axis=0
    )
    order = np.lexsort((*lines[::-1], depth, ~hidden, ~held))
    columns = [axis.codes[line[order]].tolist() for axis, line in zip(axes, lines, strict=True)]
    return [dict(zip(names, map(str, each), strict=True)) for each in zip(*columns, strict=True)]


def _notes(layout: Layout, slices: tuple[Slice, ...], columns: int, every: int, room: Space) -> Iterator[Text]:
    """What is not shown, and where room ends."""
    if sum(map(_shown, slices)) == sum(layout.counts().values()):
        return
    if len(slices) < every:
        others = " and ".join(f"{name!r}" for name in layout.filters)
        yield text(
            "{shown:,} of {every:,} slices by {others} are here, the totals and those with withheld cells first; "
            "{left:,} are left out. There is room for {room:,} slices and about {cells:,} cells.",
            shown=len(slices), every=every, others=others, left=every - len(slices), room=room.slices, cells=room.cells,
        )  # fmt: skip
    if columns < len(layout.columns):
        yield text("{shown:,} of {every:,} codes of {name!r} are shown across.", shown=columns,
                   every=len(layout.columns), name=layout.columns.name)  # fmt: skip
    wanted = [int(_with_totals(each.layout.rows, each.layout.occupied).sum()) for each in slices]
    short = [i for i, each in enumerate(slices) if len(each.window.rows) < wanted[i]]
    if short[:1] == [0]:
        lines = len(slices[0].window.rows)
        first = text(" of the first slice") if len(slices) > 1 else ""
        yield text("{shown:,} of {every:,} codes of {name!r}{first} are shown down, from the top.", shown=lines,
                   every=wanted[0], name=layout.rows.name, first=first)  # fmt: skip
    later = sum(i > 0 for i in short)
    if later:
        yield text(
            "Of {later:,} slices after the first only the first levels of {name!r} are shown.",
            later=later,
            name=layout.rows.name,
        )


def _shown(each: Slice) -> int:
    """How many cells of a slice show anything."""
    cells = each.window.cell[each.window.cell >= 0]
    return int((each.layout.view.kind[cells] != NUMBER[Kind.ABSENT]).sum())
