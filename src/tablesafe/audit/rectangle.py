"""The ends of every cell of a rectangle with known margins, in closed form.

In a rectangle all of whose cells are unknown, a cell with row sum r, column sum c and total N lies between
max(0, r + c − N) and min(r, c), and reaches both (Fréchet 1940; Dobra & Fienberg, PNAS 97 (2000), 11885–11892). Here
sums are counted from the lower bounds of the cells, and no upper bound may be tighter than the margins are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.propagate import EXACT


def rectangle_ends(matrix: sparse.csr_array, lower: Floats, upper: Floats) -> tuple[Integers, Integers] | None:
    """The least and the greatest of each unknown of `matrix @ x = 0`; None if it is no rectangle, or bounds interfere.

    Bounds are whole numbers, or infinite.
    """
    sides = _sides(matrix)
    if sides is None or not bool((np.abs(lower).sum() < EXACT) and np.isfinite(lower).all()):
        return None
    row, column = sides
    r, c, total = np.bincount(row, -lower)[row], np.bincount(column, -lower)[column], -float(lower.sum())
    least, most = np.maximum(0.0, r + c - total), np.minimum(r, c)
    if bool((upper - lower < most).any()):
        return None
    return (lower + least).astype(np.int64), (lower + most).astype(np.int64)


def _sides(matrix: sparse.csr_array) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """For each unknown its row and its column in the rectangle; None if the equations are not those of one."""
    columns = matrix.tocsc()
    m, n = columns.shape
    if n == 0 or m < 2 or not bool((np.diff(columns.indptr) == 2).all() and (columns.data == columns.data[0]).all()):
        return None
    if abs(int(columns.data[0])) != 1:
        return None
    one, other = columns.indices[::2], columns.indices[1::2]
    is_row = np.zeros(m, dtype=np.bool_)  # the equations that share an unknown with the first unknown's second one
    crossing = (one == other[0]) | (other == other[0])
    is_row[np.where(one[crossing] == other[0], other[crossing], one[crossing])] = True
    row, column = np.where(is_row[one], one, other), np.where(is_row[one], other, one)
    rows = int(is_row.sum())
    if bool((is_row[one] == is_row[other]).any()) or rows * (m - rows) != n or len(np.unique(row * m + column)) != n:
        return None
    return row.astype(np.intp), column.astype(np.intp)
