"""One linear program around the origin, asked again and again: for other columns, with other bounds on a few of them.

The solver goes on from where it stood. When only the objective changes the last point stays feasible, and the primal
simplex needs a few pivots; when bounds change too, it repairs the last basis first.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.solver import new_solver, set_options

_DUAL, _PRIMAL = 1, 4
_OPTIMAL, _UNBOUNDED = highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnbounded


class RepeatedProgram:
    """`matrix @ x = 0` and `lower <= x <= upper`, which the origin satisfies; the objective and some bounds vary.

    `scale` divides the bounds: the solver's tolerances are absolute, and made for numbers between 1 and a million.
    """

    def __init__(self, matrix: sparse.csr_array, lower: Floats, upper: Floats, *, scale: float = 1.0) -> None:
        self._lower, self._upper, self._scale = lower / scale, upper / scale, scale
        self._solver = new_solver(presolve="off", solver="simplex", simplex_strategy=_DUAL)
        self._solver.passModel(self._model(sparse.csr_array(matrix)))
        self._asked = 0

    def _model(self, matrix: sparse.csr_array) -> Any:
        rows, columns = matrix.shape
        model: Any = highspy.HighsLp()
        model.num_col_, model.num_row_ = columns, rows
        model.col_cost_, model.col_lower_, model.col_upper_ = np.zeros(columns), self._lower, self._upper
        model.row_lower_ = model.row_upper_ = np.zeros(rows)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = matrix.indptr
        model.a_matrix_.index_ = matrix.indices
        model.a_matrix_.value_ = matrix.data.astype(np.float64)
        return model

    def furthest(self, column: int, up: bool, columns: NDArray[np.intp], lower: Floats, upper: Floats) -> Floats | None:
        """A point in which one column is as large, or as small, as it can be, with other bounds on some columns.

        None when it can go on for ever. The origin is a point, so there is always an answer.
        """
        self._solver.changeColCost(self._asked, 0.0)
        self._solver.changeColCost(column, -1.0 if up else 1.0)
        self._asked = column
        self._set_bounds(columns, lower / self._scale, upper / self._scale)
        self._solver.run()
        if self._solver.getModelStatus() not in {_OPTIMAL, _UNBOUNDED}:
            self._solver.clearSolver()
            set_options(self._solver, simplex_strategy=_DUAL)
            self._solver.run()
        status = self._solver.getModelStatus()
        answer = np.array(self._solver.getSolution().col_value) * self._scale
        self._set_bounds(columns, self._lower[columns], self._upper[columns])
        set_options(self._solver, simplex_strategy=_PRIMAL)
        if status == _UNBOUNDED:
            return None
        if status != _OPTIMAL:
            raise SolverFailure(f"The solver stopped without an answer ({self._solver.modelStatusToString(status)}).")
        return answer

    def _set_bounds(self, columns: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        self._solver.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)
