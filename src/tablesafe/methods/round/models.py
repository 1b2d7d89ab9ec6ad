"""Which steps some cells may take while all others stay: the program of a rounding, or of a part of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.methods.round.grid import Grid
from tablesafe.solve.rounding import WHOLE, StepProgram, deciding

SIMPLE = 1500
SLACK = 1000
"""Hidden cells may fall by this many steps, and by a few for every cell: large numbers are no food for solvers."""


def whole_cells(grid: Grid) -> Mask:
    """The cells that the solver is asked to make whole: all, which is fastest, where that is not its ruin.

    Where there are more equations than cells it would lose itself in modular arithmetic: then only cells that decide
    the others, which follow. With different bases they do not.
    """
    rows, cells = grid.matrix.shape
    if rows <= cells or cells < SIMPLE or not bool((grid.step == grid.step[:1]).all()):
        return np.ones(cells, dtype=np.bool_)
    return deciding(grid.matrix, grid.counts.table.totals) | grid.hidden


@dataclass(frozen=True, eq=False)
class Columns:
    """Steps that a cell may take, each once: the cell, the direction, and whether it leaves the neighbours."""

    cell: NDArray[np.intp] = field(repr=False)
    direction: Integers = field(repr=False)
    beyond: Integers = field(repr=False)
    """0 between the two neighbours, then 1, 2, … for each step further."""

    @classmethod
    def within(cls, grid: Grid, cells: Mask, furthest: int) -> Self:
        """From the lower neighbour to the upper one, and so many steps beyond either; never below zero."""
        near = np.flatnonzero(cells & grid.free & (grid.high > grid.low))
        parts = [(near, 1, 0)]
        free = np.flatnonzero(cells & grid.free)
        for step in range(1, furthest + 1):
            parts += [(free, 1, step), (free[grid.low[free] >= step], -1, step)]
        return cls(
            np.concatenate([cell for cell, _, _ in parts]),
            np.concatenate([np.full(len(cell), direction) for cell, direction, _ in parts]),
            np.concatenate([np.full(len(cell), step) for cell, _, step in parts]),
        )

    def costs(self, grid: Grid) -> Floats:
        """What each step adds to the distance: less than the next one in its direction, so they are taken in order."""
        cell, low, high = self.cell, grid.low[self.cell], grid.high[self.cell]
        last = np.where(self.direction > 0, high, low) + self.direction * (self.beyond - 1)
        here = np.where(self.beyond == 0, low, last)
        return grid.distances(here + self.direction, cell) - grid.distances(here, cell)


@dataclass(frozen=True, eq=False)
class Model:
    """The program over some cells, and how its columns stand for them."""

    grid: Grid = field(repr=False)
    columns: Columns
    start: Integers = field(repr=False)
    """All steps when no column is taken."""
    hidden: NDArray[np.intp] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    """The equations that the program has a row for."""
    program: StepProgram = field(repr=False)

    @classmethod
    def of(
        cls,
        grid: Grid,
        whole: Mask,
        *,
        cells: Mask | None = None,
        stay: Integers | None = None,
        furthest: int = 0,
        dear: float = 0.0,
        fewest: bool = False,
        most_beyond: int | None = None,
    ) -> Self:
        """The least distance with `cells` free and all others as they `stay`.

        Steps beyond the neighbours, up to `furthest`, cost `dear` more each; with `fewest` they alone cost;
        no more than `most_beyond` are taken.
        """
        moving = np.ones(len(grid.step), dtype=np.bool_) if cells is None else cells
        columns = Columns.within(grid, moving, furthest)
        hidden = np.flatnonzero(grid.hidden & moving)
        start = grid.low.copy() if stay is None else np.where(moving & grid.free, grid.low, stay)
        start[hidden] = np.maximum(grid.low[hidden] - 4 * len(start) - SLACK, 0)
        cell = np.concatenate([columns.cell, hidden])
        direction = np.concatenate([columns.direction, np.ones(len(hidden), np.int64)])
        matrix = sparse.csr_array(grid.by_cell[:, cell])
        matrix.data = matrix.data * direction[matrix.indices]
        rhs = -np.asarray(grid.matrix @ start)
        used = (np.diff(matrix.indptr) > 0) | (rhs != 0)
        rows = np.flatnonzero(used)
        matrix, rhs = sparse.csr_array(matrix[rows]), rhs[rows]
        away = columns.beyond > 0
        cost = away.astype(np.float64) if fewest else columns.costs(grid) + dear * away
        cost = np.concatenate([cost, np.zeros(len(hidden))])
        most = np.concatenate([np.ones(len(columns.cell)), np.full(len(hidden), np.inf)])
        kinds = np.concatenate([whole[columns.cell], np.ones(len(hidden), np.bool_)])
        offset = 0.0 if fewest else float(grid.distances(start).sum())
        if most_beyond is not None:  # one row more, and a column for the steps that are not needed
            row = sparse.csr_array(np.concatenate([away, np.zeros(len(hidden), np.bool_)]).astype(np.int64)[None])
            unused = sparse.csr_array(([1], ([0], [0])), shape=(1, 1))
            matrix = sparse.csr_array(sparse.block_array([[matrix, None], [row, unused]], format="csr"))
            rhs, kinds = np.append(rhs, most_beyond), np.append(kinds, False)
            cost, most = np.append(cost, 0.0), np.append(most, float(most_beyond))
        return cls(grid, columns, start, hidden, rows, StepProgram(matrix, rhs, cost, most, kinds, offset))

    def steps(self, point: Floats | None) -> Integers | None:
        """The solver's point as steps of every cell, if they are whole, add up exactly, and stay in their windows."""
        if point is None:
            return None
        n, k = len(self.columns.cell), len(self.grid.step)
        moved = np.zeros(k)
        np.add.at(moved, self.columns.cell, point[:n] * self.columns.direction)
        moved[self.hidden] += point[n : n + len(self.hidden)]
        whole = np.rint(moved)
        if (np.abs(moved - whole) > WHOLE).any() or (np.abs(whole) > 2.0**52).any():
            return None
        steps = self.start + whole.astype(np.int64)
        furthest = int(self.columns.beyond.max(initial=0))
        if (self.grid.beyond(steps)[self.columns.cell] > furthest).any() or not self.grid.adds_up(steps):
            return None
        return steps

    def fractional(self, point: Floats) -> NDArray[np.intp]:
        """The columns that are not whole."""
        return np.flatnonzero(np.abs(point - np.rint(point)) > WHOLE)

    def taken(self, steps: Integers) -> Floats:
        """Some steps as a point of this program: where a solver may begin."""
        cell, step = self.columns.cell, self.columns.beyond
        up, down = steps[cell] - self.grid.high[cell], self.grid.low[cell] - steps[cell]
        far = np.where(self.columns.direction > 0, up, down) >= step
        near = steps[cell] > self.grid.low[cell]
        point = np.where(step == 0, near, far).astype(np.float64)
        point = np.concatenate([point, (steps - self.start)[self.hidden].astype(np.float64)])
        spare = len(self.program.cost) - len(point)
        return np.append(point, self.program.rhs[-1] - (step > 0) @ point[: len(step)]) if spare else point
