"""The neighbourhood of a cell: what the unknown cells around it allow it, by small linear programs.

In four dimensions a search from the truth holds more cells in place than it has room for, and the whole component may
have a hundred thousand cells. What the cell can do while all that is far away stays as it is, it can do; and what a
few sums around it forbid, all of them forbid.

`Guesses` are moves that are likely to take a cell as far as it must go: a box of other withheld cells, which is what
mostly protects it, or the shortest move around it. A guess counts only once it is proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.audit.system import Piece, Shape
from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import OutOfTime
from tablesafe.solve.boxes import Space, System, cheapest_box
from tablesafe.solve.highs import Model
from tablesafe.solve.neighbourhood import rings
from tablesafe.solve.program import Columns, Solution
from tablesafe.work.budget import ENDLESS, Budget

SIZES = (600, 2_000)
"""Cells to look at before the whole component is."""
WIDE = 10_000
"""The same where the component has to be looked at otherwise, at any price."""
FAR = 1e6
"""No cell needs to move further than this many times as far as the one in question."""
CLOSE = 1e-9
"""How near a bound, relative and absolute, is reached."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Some cells around one, and every sum that they stand in."""

    cells: NDArray[np.intp] = field(repr=False)
    matrix: sparse.csr_array = field(repr=False)
    """The sums, over these cells."""
    whole: Mask = field(repr=False)
    """Which sums hold no other cells."""

    @cached_property
    def up_and_down(self) -> sparse.csc_array:
        """The sums with each cell twice, for what it rises and what it falls."""
        return sparse.csc_array(sparse.hstack([self.matrix, -self.matrix], format="csc"))


class Neighbourhoods:
    """Small programs over the unknown cells of a system."""

    def __init__(self, matrix: sparse.csr_array, budget: Budget = ENDLESS) -> None:
        """Programs stop by an error when the budget is over."""
        self._rows, self._columns, self._budget = sparse.csr_array(matrix), sparse.csc_array(matrix), budget
        self._solver = Model.small()
        self._kept: dict[tuple[int, int], Neighbourhood] = {}
        """What is around the cell that was looked at last: for one insider after another it is the same."""

    def around(self, cell: int, most: int) -> Neighbourhood:
        """The cells within ever more steps from sum to sum, so many at most; of the last step, those most tied in."""
        if (cell, most) not in self._kept:
            self._kept = {key: near for key, near in self._kept.items() if key[0] == cell}
            self._kept[cell, most] = self._gathered(cell, most)
        return self._kept[cell, most]

    def _gathered(self, cell: int, most: int) -> Neighbourhood:
        cells = np.array([cell])
        for ring, met in rings(self._rows, self._columns, cells):
            tied = met / np.diff(self._columns.indptr)[ring]
            ring = ring[np.argsort(-tied, kind="stable")[: most - len(cells)]]
            cells = np.concatenate([cells, ring])
            if len(cells) == most:
                break
        cells = np.sort(cells)
        every = np.unique(self._columns[:, cells].indices)
        inside = sparse.csr_array(self._columns[:, cells].tocsr()[every])
        return Neighbourhood(cells, inside, np.diff(inside.indptr) == np.diff(self._rows.indptr)[every])

    def shortest(self, near: Neighbourhood, cell: int, by: float, lower: Floats, upper: Floats) -> Floats | None:
        """A move of the cell by so much that moves the others as little as can be, all else fixed; None without one.

        Bounds are those of the cells near; the cell itself may move in any case.
        """
        n, far = len(near.cells), abs(by)
        at = int(np.searchsorted(near.cells, cell))
        up, down = np.minimum(upper / far, FAR), np.minimum(-lower / far, FAR)
        top, low, cost = np.concatenate([up, down]), np.zeros(2 * n), np.ones(2 * n)
        moving, resting = (at, at + n) if by > 0 else (at + n, at)
        top[resting], top[moving], low[moving] = 0.0, 1.0, 1.0
        answer = self._minimum(cost, low, top, near.up_and_down)
        return None if answer is None else (answer.point[:n] - answer.point[n:]) * far

    def reach(self, near: Neighbourhood, cell: int, sign: int, lower: Floats, upper: Floats) -> tuple[float, bool]:
        """How far the cell can move while all else is fixed, and whether the rest of the table has no say in it.

        Not a number where that is not known.
        """
        least = self._furthest(near, near.matrix, cell, sign, lower, upper)
        if np.isnan(least):
            return least, False
        most = self._furthest(near, near.matrix[near.whole], cell, sign, lower, upper)
        return least, bool(least >= most * (1 - CLOSE) - CLOSE)

    def _furthest(self, near: Neighbourhood, sums: sparse.csr_array, cell: int, sign: int,
                  lower: Floats, upper: Floats) -> float:  # fmt: skip
        """How far the cell can move while some sums hold."""
        cost = np.zeros(len(near.cells))
        cost[np.searchsorted(near.cells, cell)] = -sign
        answer = self._minimum(cost, lower, upper, sparse.csc_array(sums))
        return np.nan if answer is None else abs(answer.objective)

    def _minimum(self, cost: Floats, lower: Floats, upper: Floats, sums: sparse.csc_array) -> Solution | None:
        answer = self._solver.minimise(cost, lower, upper, Columns.of(sums), budget=self._budget)
        if answer is None:
            self._budget.check()
        return answer


# -- guesses -----------------------------------------------------------------------------------------------------------


class Guesses:
    """Guesses for the sides of the forms of a piece."""

    def __init__(self, piece: Piece, shape: Shape, budget: Budget = ENDLESS) -> None:
        self._piece, self._shape = piece, shape
        matrix = sparse.csr_array(piece.matrix.astype(np.float64))
        self._system = System.of(matrix, piece.upper, -piece.lower)
        self._space, self._price = Space.over(self._system), np.ones(len(piece))
        self._near = Neighbourhoods(matrix, budget)
        self._cell = np.full(shape.polytope.forms, -1)
        moves = np.flatnonzero(shape.form >= 0)
        self._cell[shape.form[moves]] = moves

    def __call__(self, side: int, need: float) -> Iterator[tuple[Integers, Floats]]:
        """Points that may take a side so far: first a box, then what small programs find."""
        cell = int(self._cell[side // 2])
        divisor = float(self._shape.divisor[cell])
        by = (1 - 2 * (side % 2)) * need / divisor
        box = cheapest_box(self._system, self._space, cell, 1 if by > 0 else -1, abs(by), self._price)
        if box is not None:
            yield self._in_columns(*box)
        before = 0
        for most in SIZES:
            near = self._near.around(cell, most)
            if len(near.cells) > before:
                lower, upper = self._piece.lower[near.cells], self._piece.upper[near.cells]
                try:
                    values = self._near.shortest(near, cell, by, lower, upper)
                except OutOfTime:
                    return
                if values is not None:
                    yield self._in_columns(near.cells, values)
            before = len(near.cells)

    def _in_columns(self, cells: Integers, values: Floats) -> tuple[Integers, Floats]:
        """A move of cells as a point: the columns that it moves."""
        form = self._shape.form[cells]
        moved = (form >= 0) & (form < self._shape.polytope.columns) & (np.abs(values) > 1e-9)
        columns, first = np.unique(form[moved], return_index=True)
        return columns, (values * self._shape.divisor[cells])[moved][first]
