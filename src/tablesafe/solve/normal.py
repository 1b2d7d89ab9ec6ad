"""Systems `A D Aᵀ x = b` with a diagonal D that varies: factorised where A is small, else by conjugate gradients.

The factors of a table of three dimensions fill up: at 10,000 cells one takes seconds, at 100,000 it does not fit. The
products with A and Aᵀ cost next to nothing at any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse.linalg import splu

from tablesafe.equations import Floats, Integers

FEW_ROWS = 2_000
"""Equations up to which the matrix is factorised."""
TINY = 1e-13
MOST = 4_000
"""Steps of conjugate gradients before an answer is taken as it is."""

Solve = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Normal:
    """One matrix A, by rows and by columns."""

    a: sparse.csc_array = field(repr=False)

    @property
    def exact(self) -> bool:
        """Whether systems are solved as exactly as floats allow."""
        return int(self.a.shape[0]) <= FEW_ROWS

    def at(self, diagonal: Floats, tolerance: float) -> Solve | None:
        """What solves `A D Aᵀ x = b`, by iterations up to a residual of `tolerance`; None if it is singular."""
        return self._factorised(diagonal) if self.exact else self._iterated(diagonal, tolerance)

    def _factorised(self, diagonal: Floats) -> Solve | None:
        normal = sparse.csc_array(self.a @ sparse.diags_array(diagonal) @ self.a.T)
        try:
            factor = splu(sparse.csc_array(normal + TINY * sparse.eye_array(self.a.shape[0])), diag_pivot_thresh=0.0)
        except RuntimeError:
            return None
        return lambda right: np.asarray(factor.solve(right))

    def _iterated(self, diagonal: Floats, tolerance: float) -> Solve:
        rows, columns = self._by_rows, self.a
        inverse = 1.0 / np.maximum(_diagonal(rows.indptr, rows.indices, rows.data, diagonal), np.finfo(np.float64).tiny)

        def solve(right: Floats) -> Floats:
            return _gradients(
                rows.indptr, rows.indices, rows.data, columns.indptr, columns.indices, columns.data,
                diagonal, inverse, right, tolerance, MOST,
            )  # fmt: skip

        return solve

    @cached_property
    def _by_rows(self) -> sparse.csr_array:
        return sparse.csr_array(self.a)


@njit(cache=True)
def _diagonal(start: Integers, column: Integers, entry: Floats, diagonal: Floats) -> Floats:
    """The diagonal of `A D Aᵀ`."""
    found = np.zeros(len(start) - 1)
    for i in range(len(found)):
        for k in range(start[i], start[i + 1]):
            found[i] += entry[k] * entry[k] * diagonal[column[k]]
    return found


@njit(cache=True)
def _times(start: Integers, other: Integers, entry: Floats, x: Floats, out: Floats) -> None:
    """A sparse matrix by lines times a vector, one thread: the lines are short."""
    for i in range(len(out)):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += entry[k] * x[other[k]]
        out[i] = total


@njit(cache=True)
def _gradients(
    row_start: Integers, row_column: Integers, row_entry: Floats, column_start: Integers, column_row: Integers,
    column_entry: Floats, diagonal: Floats, inverse: Floats, right: Floats, tolerance: float, most: int,
) -> Floats:  # fmt: skip
    """Conjugate gradients with the diagonal as preconditioner, until no residual is above the tolerance."""
    count = len(right)
    x, residual, product, between = np.zeros(count), right.copy(), np.empty(count), np.empty(len(diagonal))
    ahead = residual * inverse
    worth = 0.0
    for i in range(count):
        worth += residual[i] * ahead[i]
    for _ in range(most):
        if worth <= 0.0 or np.abs(residual).max() <= tolerance:
            break
        _times(column_start, column_row, column_entry, ahead, between)
        for j in range(len(diagonal)):
            between[j] *= diagonal[j]
        _times(row_start, row_column, row_entry, between, product)
        curve = 0.0
        for i in range(count):
            curve += ahead[i] * product[i]
        if curve <= 0.0:
            break
        far, after = worth / curve, 0.0
        for i in range(count):
            x[i] += far * ahead[i]
            residual[i] -= far * product[i]
            after += residual[i] * residual[i] * inverse[i]
        for i in range(count):
            ahead[i] = residual[i] * inverse[i] + after / worth * ahead[i]
        worth = after
    return x
