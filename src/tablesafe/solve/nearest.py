"""The additive point nearest to one that does not add up, asked again and again for other points.

`estimate = point + above − below`, both at least 0, with the least weighted sum of the two: a linear program. From one
point to the next only right-hand sides and bounds change, so the dual simplex goes on from the last basis.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve.solver import new_solver, set_options
from tablesafe.work.budget import ENDLESS, Budget

_TOLERANCE = 1e-9
_COMFORTABLE = 2.0**24


class NearestPoint:
    """`matrix @ x = rhs` and `lower <= x <= upper`, which must have a point; `cost` of a unit of change."""

    def __init__(self, matrix: sparse.csr_array, rhs: Floats, lower: Floats, upper: Floats, cost: Floats) -> None:
        finite = np.abs(np.concatenate([rhs, lower, upper]))
        largest = float(np.max(finite[np.isfinite(finite)], initial=1.0))
        self._scale = float(2.0 ** np.ceil(np.log2(max(largest / _COMFORTABLE, 1.0))))
        self._matrix, self._rhs, self._lower, self._upper = matrix, rhs, lower, upper
        self._columns = np.arange(2 * matrix.shape[1], dtype=np.int32)
        self._rows = np.arange(matrix.shape[0], dtype=np.int32)
        self._solver: Any = new_solver(
            presolve="off", solver="simplex", primal_feasibility_tolerance=_TOLERANCE, simplex_strategy=1
        )
        both = sparse.hstack([matrix, -matrix], format="csr")
        model: Any = highspy.HighsLp()
        model.num_row_, model.num_col_ = both.shape
        model.col_cost_ = np.concatenate([cost, cost])
        model.col_lower_, model.col_upper_ = np.zeros(both.shape[1]), np.zeros(both.shape[1])
        model.row_lower_ = model.row_upper_ = np.zeros(both.shape[0])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_, model.a_matrix_.index_ = both.indptr, both.indices
        model.a_matrix_.value_ = both.data.astype(np.float64)
        self._solver.passModel(model)

    def to(self, point: Floats, *, budget: Budget = ENDLESS) -> Floats:
        """The additive point within the bounds that takes the least change from a point within the bounds."""
        missing = (self._rhs - np.asarray(self._matrix @ point)) / self._scale
        room = np.maximum(np.concatenate([self._upper - point, point - self._lower]), 0.0) / self._scale
        self._solver.changeRowsBounds(len(self._rows), self._rows, missing, missing)
        self._solver.changeColsBounds(len(self._columns), self._columns, np.zeros(len(room)), room)
        set_options(self._solver, time_limit=float(self._solver.getRunTime()) + budget.left)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise OutOfTime("The solver had too little time for an answer.")
        if status != highspy.HighsModelStatus.kOptimal:
            self._solver.clearSolver()
            self._solver.run()
            status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverFailure(f"The solver stopped without an answer ({self._solver.modelStatusToString(status)}).")
        change = np.array(self._solver.getSolution().col_value) * self._scale
        n = len(point)
        return np.clip(point + change[:n] - change[n:], self._lower, self._upper)
