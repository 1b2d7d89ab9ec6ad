"""A polytope around the truth, in whole numbers: bounds on coordinates and on sums of them.

Coordinate 0 of everything is the truth, so the origin always lies inside. A *form* is anything whose range is asked
for: the coordinates (columns) come first, then the sums (rows), numbered together. Coefficients and bounds are whole
numbers, held in floats where those are exact, so that an answer can be proved by integer arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.highs import DUAL, PRIMAL, SIMPLEX, Model
from tablesafe.solve.program import Program, Scale

TOLERANCE = 1e-9
"""Of the simplex algorithm in floats: its answers are proved, or corrected, in fractions."""
UPPER, LOWER = 0, 1
"""The two sides of a form; side s of form f has the number 2·f + s."""


class Polytope(NamedTuple):
    """`lower <= (t, rows @ t) <= upper`, stored by row and by column for compiled loops."""

    row_start: Integers
    row_column: Integers
    row_value: Floats
    column_start: Integers
    column_row: Integers
    column_value: Floats
    lower: Floats
    upper: Floats
    weight: Floats
    """How far a unit step along a column moves everything, inverted: makes columns comparable."""
    reach: float
    """The largest sum of absolute coefficients of a row."""
    extent: float
    """The largest bound that is not infinite."""

    @classmethod
    def of(cls, rows: sparse.csr_array, lower: Floats, upper: Floats) -> Polytope:
        """The polytope with these rows; the bounds are those of the columns, then those of the rows."""
        by_row = sparse.csr_array(rows)
        by_column = by_row.tocsc()
        square = np.bincount(by_row.indices, weights=by_row.data.astype(np.float64) ** 2, minlength=by_row.shape[1])
        absolute = np.abs(by_row).sum(axis=1)
        bounds = np.abs(np.concatenate([lower, upper]))
        return cls(
            by_row.indptr.astype(np.int64), by_row.indices.astype(np.int64), by_row.data.astype(np.float64),
            by_column.indptr.astype(np.int64), by_column.indices.astype(np.int64), by_column.data.astype(np.float64),
            np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64),
            1.0 / np.sqrt(1.0 + square), float(np.max(absolute, initial=1)),
            float(np.max(bounds[np.isfinite(bounds)], initial=1.0)),
        )  # fmt: skip

    @property
    def columns(self) -> int:
        """How many coordinates there are."""
        return len(self.column_start) - 1

    @property
    def forms(self) -> int:
        """How many coordinates and sums there are."""
        return len(self.lower)

    @property
    def rows(self) -> sparse.csr_array:
        """The sums as a sparse matrix over the coordinates."""
        shape = (self.forms - self.columns, self.columns)
        return sparse.csr_array((self.row_value, self.row_column, self.row_start), shape=shape)

    def restricted(self, forms: NDArray[np.intp]) -> Polytope:
        """The part over some forms (in order): with a row must come all its columns, and with a column all its rows."""
        columns, rows = forms[forms < self.columns], forms[forms >= self.columns] - self.columns
        part = self.rows[rows].tocsc()[:, columns].tocsr()
        return Polytope.of(part, self.lower[forms], self.upper[forms])

    def directions(self) -> Polytope:
        """The polytope of unbounded directions, cut off at length 1: in it, what can move can move without end."""
        lower = np.where(np.isinf(self.lower), -1.0, 0.0)
        upper = np.where(np.isinf(self.upper), 1.0, 0.0)
        k = self.columns
        return Polytope.of(
            self.rows, np.r_[lower[:k], lower[k:] * self.reach], np.r_[upper[:k], upper[k:] * self.reach]
        )

    def objective(self, form: int) -> tuple[NDArray[Any], Floats]:
        """The columns and coefficients of a form."""
        if form < self.columns:
            return np.array([form]), np.ones(1)
        span = slice(self.row_start[form - self.columns], self.row_start[form - self.columns + 1])
        return self.row_column[span], self.row_value[span]

    def program(self) -> Program:
        """The polytope as a linear program with nothing to minimise."""
        k = self.columns
        matrix = sparse.csc_array((self.column_value, self.column_row, self.column_start), shape=(self.forms - k, k))
        return Program(np.zeros(k), matrix, self.lower[k:], self.upper[k:], self.lower[:k], self.upper[:k])

    def simplex(self, *, scaled: bool = True, tolerance: float = TOLERANCE) -> Model:
        """The simplex method over it, for many objectives.

        The first run is dual, from scratch; the later ones primal, from the last vertex: only the objective changes.
        """
        model = Model(
            self.program(), scale=None if scaled else Scale(), simplex_strategy=DUAL, later=PRIMAL,
            primal_feasibility_tolerance=tolerance, dual_feasibility_tolerance=tolerance, **SIMPLEX,
        )  # fmt: skip
        model.run()
        return model
