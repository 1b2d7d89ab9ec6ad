"""Recognise linked views in a problem: a full cube that is withheld by design, and margins of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table
from tablesafe.methods.views.operators import Interval, sums_of_slices

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Structure:
    """The cells of a cube and of its margins as arrays of cell numbers; a margin is named by the axes it keeps."""

    shape: tuple[int, ...]
    margins: dict[Axes, Integers] = field(repr=False)

    @property
    def inner(self) -> Integers:
        """The cells of the cube itself."""
        return self.margins[tuple(range(len(self.shape)))]

    @classmethod
    def of(cls, problem: Problem) -> Self | None:
        """The cube behind a problem; None when there is none: hierarchies, gaps, sums that are not written down."""
        table = problem.table
        hierarchies = list(table.dimensions.values())
        if len(hierarchies) < 2 or not all(map(_is_flat, hierarchies)):
            return None
        totals = np.column_stack([h.is_total[table.codes[:, d]] for d, h in enumerate(hierarchies)])
        place = np.column_stack([(np.cumsum(~h.is_total) - 1)[table.codes[:, d]] for d, h in enumerate(hierarchies)])
        shape = tuple(len(h) - 1 for h in hierarchies)
        key = totals @ (1 << np.arange(len(shape)))
        margins: dict[Axes, Integers] = {}
        for kind in np.unique(key).tolist():
            axes = tuple(d for d in range(len(shape)) if not kind >> d & 1)
            cells = _filled(np.flatnonzero(key == kind), place, axes, tuple(shape[d] for d in axes))
            if cells is None:
                return None
            margins[axes] = cells
        structure = cls(shape, margins)
        if tuple(range(len(shape))) not in margins or not problem.withheld[structure.inner].all():
            return None
        return structure if structure._is_written_down(table) else None

    def published(self, hidden: Mask) -> list[Axes]:
        """The margins of which some cells are not withheld by design."""
        return [axes for axes, cells in self.margins.items() if not hidden[cells].all()]

    def _is_written_down(self, table: Table) -> bool:
        """Whether every margin adds up the cube, or a finer margin, in equations of the table."""
        finest = tuple(range(len(self.shape)))
        return all(
            any(self._adds_up(table, axes, finer) for finer in (finest, *self.margins) if set(axes) < set(finer))
            for axes in self.margins
            if axes != finest
        )

    def _adds_up(self, table: Table, axes: Axes, finer: Axes) -> bool:
        """Whether the table has the equation of every cell of a margin as the sum over a finer one."""
        cells, parts = self.margins[axes], self.margins[finer]
        summed = tuple(at for at, d in enumerate(finer) if d not in axes)
        total_of = np.full(len(table), -1, dtype=np.int64)
        total_of[parts.ravel()] = np.broadcast_to(np.expand_dims(cells, summed), parts.shape).ravel()
        equations = table.equations
        width = np.diff(equations.indptr)
        row = np.repeat(np.arange(len(width)), width)
        right = (total_of[equations.indices] == table.totals[row]) & (equations.data > 0)
        full = np.bincount(row[right], minlength=len(width)) == width - 1
        full &= width - 1 == parts.size // cells.size
        tied = np.zeros(len(table), dtype=np.bool_)
        tied[table.totals[full]] = True
        return bool(tied[cells].all())


def _is_flat(hierarchy: Hierarchy) -> bool:
    equations = hierarchy.equations
    return equations.shape[0] == 1 and equations.nnz == len(hierarchy) and int((equations.data < 0).sum()) == 1


def _filled(cells: Integers, place: Integers, axes: Axes, shape: tuple[int, ...]) -> Integers | None:
    """The cells of a margin at their places, if none is missing."""
    if len(cells) != int(np.prod(shape, dtype=np.int64)):
        return None
    if not axes:
        return cells.reshape(())
    grid = np.full(len(cells), -1, dtype=np.int64)
    grid[np.ravel_multi_index(tuple(place[cells][:, d] for d in axes), shape)] = cells
    return grid.reshape(shape) if bool((grid >= 0).all()) else None


# Two views that share dimensions, as plain arrays: what each cell shows, what it costs, what must be hidden.
#
# For every combination j of the shared codes (a *slice*: a loan type) the first view has a row `a[j]`, the second a
# row `b[j]`, and both add up to the same total. A hidden cell (i, k) is the sum over the slices of its group of what
# lies in row i and column k of each. Withholding only widens what an attacker can derive, so only the sides that are
# open while everything is published can ever matter: these are the targets.


NEAR = 1e-9
"""Noise of levels such as 1.2 · c, relative to the value."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Open sides of hidden cells, sorted by group: `start[g]:start[g + 1]` are those of group g."""

    row: Integers = field(repr=False)
    column: Integers = field(repr=False)
    start: Integers = field(repr=False)
    need: Floats = field(repr=False)
    """The whole number that the end of the interval must reach."""
    cell: Integers = field(repr=False)
    """The hidden cell's number, for messages."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def group(self) -> Integers:
        """The group of each target."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


@dataclass(frozen=True, eq=False)
class Hidden:
    """A confidential view: the group of each slice, and how far each cell (group, i, k) must be hidden.

    `lowest` and `highest` are what the ends of its interval must reach; NaN where nothing is asked.
    """

    group: Integers = field(repr=False)
    lowest: Floats = field(repr=False)
    highest: Floats = field(repr=False)
    cell: Integers = field(repr=False)


@dataclass(frozen=True, eq=False)
class TwoViews:
    """The suppression problem of two views; all values are whole numbers in floats."""

    a: Floats = field(repr=False)
    b: Floats = field(repr=False)
    cost_a: Floats = field(repr=False)
    cost_b: Floats = field(repr=False)
    live_a: Mask = field(repr=False)
    """May be withheld."""
    live_b: Mask = field(repr=False)
    forced_a: Mask = field(repr=False)
    """Withheld in any case."""
    forced_b: Mask = field(repr=False)
    groups: Integers = field(repr=False)
    """Per slice its group in each confidential view."""
    low: Targets = field(repr=False)
    up: Targets = field(repr=False)
    balance: float = 0.0
    """What the larger number of cells withheld from one view costs on top."""

    @property
    def total(self) -> Floats:
        """The total of each slice."""
        return np.asarray(self.a.sum(axis=1), dtype=np.float64)

    def cost_of(self, a: Mask, b: Mask) -> float:
        """What a pattern costs beyond what is withheld in any case."""
        own = float(self.cost_a[a & ~self.forced_a].sum() + self.cost_b[b & ~self.forced_b].sum())
        return own + self.balance * max(int((a & ~self.forced_a).sum()), int((b & ~self.forced_b).sum()))


def targets_of(
    a: Floats, b: Floats, hidden: Sequence[Hidden], forced: tuple[Mask, Mask] | None = None
) -> tuple[Integers, Targets, Targets]:
    """The groups of the slices, and the open sides of all confidential views while nothing more is withheld."""
    shown_a = Interval.of(a, None if forced is None else forced[0])
    shown_b = Interval.of(b, None if forced is None else forced[1])
    groups, first, lows, ups = [], 0, [], []
    for view in hidden:
        count = len(view.lowest)
        lower, upper = sums_of_slices(shown_a, shown_b, view.group, count)
        with np.errstate(invalid="ignore"):
            lowest = np.floor(view.lowest + NEAR * np.maximum(1.0, np.abs(view.lowest)))
            highest = np.ceil(view.highest - NEAR * np.maximum(1.0, np.abs(view.highest)))
            lows.append(_chosen(lower > lowest, lowest, view.cell, first))
            ups.append(_chosen(upper < highest, highest, view.cell, first))
        groups.append(view.group + first)
        first += count
    return np.column_stack(groups), _targets(lows, first), _targets(ups, first)


def _chosen(mask: Mask, need: Floats, cell: Integers, first: int) -> tuple[NDArray[Any], ...]:
    group, row, column = np.nonzero(mask)
    return group + first, row, column, need[mask], cell[mask]


def _targets(parts: Sequence[tuple[NDArray[Any], ...]], groups: int) -> Targets:
    group, row, column, need, cell = (np.concatenate(part) for part in zip(*parts, strict=True))
    start = np.searchsorted(group, np.arange(groups + 1))
    return Targets(row.astype(np.int64), column.astype(np.int64), start.astype(np.int64), need, cell.astype(np.int64))
