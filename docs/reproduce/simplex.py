"""A primal simplex method as textbooks of the time have it: a full tableau, two phases, Dantzig's rule.

Dandekar's paper names its interior-point solver, but not how its simplex broke ties. This one takes the column with the
most negative reduced cost, the first row of the least ratio, and the cells in the order given; bounds are rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
EPSILON = 1e-9


class Tableau:
    """A feasible basis of `matrix @ x = rhs`, `x ≥ 0`; where there is none, an AssertionError."""

    def __init__(self, matrix: Array, rhs: Array) -> None:
        rows, self.columns = matrix.shape
        sign = np.where(rhs < 0, -1.0, 1.0)
        self.body = np.hstack([matrix * sign[:, None], np.eye(rows), (rhs * sign)[:, None]])
        self.basis = np.arange(self.columns, self.columns + rows)
        price = np.zeros(self.body.shape[1])
        price[self.columns : -1] = 1.0
        assert abs(self._least(price)[-1]) < 1e-6, "no table is possible"
        self._without_artificials()

    def least(self, cost: Array) -> Array:
        """A vertex of least cost, by a run of its own from the first feasible basis."""
        body, basis = self.body.copy(), self.basis.copy()
        self._least(np.append(cost, 0.0))
        found = self.point()
        self.body, self.basis = body, basis
        return found

    def point(self) -> Array:
        """The vertex of the basis."""
        x = np.zeros(self.columns)
        x[self.basis] = self.body[:, -1]
        return x

    def _least(self, cost: Array) -> Array:
        price = cost.copy()
        for row, column in enumerate(self.basis):
            price -= price[column] * self.body[row]
        while (price[: self.columns] < -EPSILON).any():
            column = int(np.argmin(price[: self.columns]))  # Dantzig: the most negative
            entries, right = self.body[:, column], self.body[:, -1]
            ratio = np.divide(right, entries, out=np.full(len(right), np.inf), where=entries > EPSILON)
            row = int(np.argmin(ratio))
            assert np.isfinite(ratio[row]), "no least"
            self._pivot(row, column)
            price -= price[column] * self.body[row]
        return price

    def _pivot(self, row: int, column: int) -> None:
        self.body[row] /= self.body[row, column]
        factor = self.body[:, column].copy()
        factor[row] = 0.0
        self.body -= np.outer(factor, self.body[row])
        self.basis[row] = column

    def _without_artificials(self) -> None:
        """Leave out what only the first phase needs: its columns, and the rows that say nothing new."""
        kept = []
        for row, column in enumerate(self.basis):
            if column >= self.columns:
                own = np.flatnonzero(np.abs(self.body[row, : self.columns]) > EPSILON)
                if not own.size:
                    continue
                self._pivot(row, int(own[0]))
            kept.append(row)
        self.body = np.hstack([self.body[kept, : self.columns], self.body[kept, -1:]])
        self.basis = self.basis[kept]


def mean_of_programs(matrix: Array, rhs: Array, most: float | None) -> Array:
    """The mean over each cell's least and largest and those of their sum; `most` bounds every cell, as a row."""
    cells = matrix.shape[1]
    if most is not None:
        matrix = np.block([[matrix, np.zeros((len(matrix), cells))], [np.eye(cells), np.eye(cells)]])
        rhs = np.append(rhs, np.full(cells, most))
    tableau = Tableau(matrix, rhs)
    aims = np.zeros((cells + 1, matrix.shape[1]))
    aims[:, :cells] = np.vstack([np.eye(cells), np.ones(cells)])
    found = [tableau.least(sign * aim)[:cells] for aim in aims for sign in (1.0, -1.0)]
    return np.asarray(np.mean(found, axis=0), dtype=np.float64)
