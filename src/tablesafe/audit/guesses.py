"""Moves that are likely to take a cell of a large piece as far as it must go: a box, or the shortest move around it.

In tables of four dimensions and more, a search from the truth and a program over the whole piece both take long, while
what protects a cell is mostly a box of other withheld cells. A guess counts only once it is proved.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from tablesafe.audit.nearby import SIZES, Nearby
from tablesafe.audit.pieces import Piece, Shape
from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.boxes import Space, System, cheapest_box


class Guesses:
    """Guesses for the sides of the forms of a piece."""

    def __init__(self, piece: Piece, shape: Shape) -> None:
        self._piece, self._shape = piece, shape
        matrix = sparse.csr_array(piece.matrix.astype(np.float64))
        self._system = System.of(matrix, piece.upper, -piece.lower)
        self._space, self._price = Space.over(self._system), np.ones(len(piece))
        self._near = Nearby(matrix)
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
                values = self._near.shortest(near, cell, by, lower, upper)
                if values is not None:
                    yield self._in_columns(near.cells, values)
            before = len(near.cells)

    def _in_columns(self, cells: Integers, values: Floats) -> tuple[Integers, Floats]:
        """A move of cells as a point: the columns that it moves."""
        form = self._shape.form[cells]
        moved = (form >= 0) & (form < self._shape.polytope.columns) & (np.abs(values) > 1e-9)
        columns, first = np.unique(form[moved], return_index=True)
        return columns, (values * self._shape.divisor[cells])[moved][first]
