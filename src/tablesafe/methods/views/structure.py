"""Recognise linked views in a problem: a full cube that is withheld by design, and margins of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from tablesafe.core.equations import Integers, Mask
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.table import Table

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
