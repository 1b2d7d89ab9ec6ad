"""Bounds from bounds: in `sum(coefficient · x) = 0`, what the others can be limits each one.

All bounds are whole numbers (in floats), and a bound that is not is rounded outwards, so nothing true is ever cut off.
Where the equations form a tree, the bounds that settle are exact.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.work.compiled import compiled

VISITS = 40
"""Visits to an equation, on average, before propagation stops: bounds may creep towards each other for ever."""
EXACT = 2.0**52
"""Sums of whole numbers up to here are exact in floats."""


def propagate(matrix: sparse.csr_array, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The bounds that `matrix @ x = 0` with whole coefficients implies; whole bounds in, whole bounds out."""
    lower, upper = lower.astype(np.float64, copy=True), upper.astype(np.float64, copy=True)
    rows, columns = sparse.csr_array(matrix), sparse.csc_array(matrix)
    _settle(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64),
        columns.indptr.astype(np.int64), columns.indices.astype(np.int64), lower, upper, VISITS * rows.shape[0],
    )  # fmt: skip
    return lower, upper


def are_points(matrix: sparse.csr_array, lower: Floats, upper: Floats) -> bool:
    """Whether all lower bounds together solve `matrix @ x = 0`, and all upper ones: then every bound is reached.

    So it is where values were changed one by one and added up: nothing but their own bounds ties them.
    """
    if not bool(np.isfinite(lower).all() and np.isfinite(upper).all()):
        return False
    if bool((np.abs(matrix) @ np.maximum(np.abs(lower), np.abs(upper)) >= EXACT).any()):
        return False
    return not bool((matrix @ lower).any() or (matrix @ upper).any())


@compiled
def _settle(
    row_start: Integers, row_column: Integers, row_value: Floats, column_start: Integers, column_row: Integers,
    lower: Floats, upper: Floats, visits: int,
) -> None:  # fmt: skip
    """Visit equations in turn; one whose bounds changed is visited again."""
    m = len(row_start) - 1
    queue, waiting, head, length = np.arange(m), np.ones(m, np.bool_), 0, m
    while length > 0 and visits > 0:
        r = queue[head]
        head, length, visits = (head + 1) % m, length - 1, visits - 1
        waiting[r] = False
        least, most, free_below, free_above, size = _activity(row_start, row_column, row_value, lower, upper, r)
        if (free_below > 1 and free_above > 1) or size >= EXACT:
            continue
        for z in range(row_start[r], row_start[r + 1]):
            c = row_column[z]
            if _tighten(c, row_value[z], least, most, free_below, free_above, lower, upper):
                for y in range(column_start[c], column_start[c + 1]):
                    if not waiting[column_row[y]]:
                        waiting[column_row[y]] = True
                        queue[(head + length) % m] = column_row[y]
                        length += 1


@compiled
def _activity(
    row_start: Integers, row_column: Integers, row_value: Floats, lower: Floats, upper: Floats, r: int
) -> tuple[float, float, int, int, float]:
    """The least and the most that an equation's sum can be, and how many terms are unbounded on either side."""
    least, most, free_below, free_above, size = 0.0, 0.0, 0, 0, 0.0
    for z in range(row_start[r], row_start[r + 1]):
        a = row_value[z]
        low, high = lower[row_column[z]], upper[row_column[z]]
        if a < 0.0:
            low, high = high, low
        if np.isinf(low):
            free_below += 1
        else:
            least += a * low
            size += abs(a * low)
        if np.isinf(high):
            free_above += 1
        else:
            most += a * high
            size += abs(a * high)
    return least, most, free_below, free_above, size


@compiled
def _tighten(
    c: int, a: float, least: float, most: float, free_below: int, free_above: int, lower: Floats, upper: Floats
) -> bool:
    """Narrow one unknown by what the rest of its equation leaves: `a·x = −(the rest)`."""
    low, high = (lower[c], upper[c]) if a > 0.0 else (upper[c], lower[c])
    top, bottom = np.inf, -np.inf  # of a·x
    if free_below == 0:
        top = a * low - least
    elif free_below == 1 and np.isinf(low):
        top = -least
    if free_above == 0:
        bottom = a * high - most
    elif free_above == 1 and np.isinf(high):
        bottom = -most
    if a < 0.0:
        top, bottom = -bottom, -top
    whole, changed = int(abs(a)), False
    if top < np.inf:
        ceiling = float(-(int(-top) // whole))
        if ceiling < upper[c]:
            upper[c], changed = ceiling, True
    if bottom > -np.inf:
        floor = float(int(bottom) // whole)
        if floor > lower[c]:
            lower[c], changed = floor, True
    return changed
