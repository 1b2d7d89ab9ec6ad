"""One polytope, `matrix @ x = rhs` within bounds, and its corners in many directions.

Each question starts from the last corner: only the objective changes, so the primal simplex needs a few pivots.
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
_TOLERANCE = 1e-9
_COMFORTABLE = 2.0**24
"""The solver's tolerances are absolute: larger bounds are scaled down to about this, by a power of two."""


class Corners:
    """The simplex method over one polytope, which must have a point."""

    def __init__(self, matrix: sparse.csr_array, rhs: Floats, lower: Floats, upper: Floats) -> None:
        n = matrix.shape[1]
        finite = np.abs(np.concatenate([rhs, lower, upper]))
        largest = float(np.max(finite[np.isfinite(finite)], initial=1.0))
        self._scale = float(2.0 ** np.ceil(np.log2(max(largest / _COMFORTABLE, 1.0))))
        self._asked: NDArray[np.int32] = np.zeros(0, np.int32)
        self._solver: Any = new_solver(
            presolve="off",
            solver="simplex",
            primal_feasibility_tolerance=_TOLERANCE,
            dual_feasibility_tolerance=_TOLERANCE,
            simplex_strategy=_DUAL,
        )
        model: Any = highspy.HighsLp()
        model.num_row_, model.num_col_ = matrix.shape
        model.col_cost_, model.col_lower_, model.col_upper_ = np.zeros(n), lower / self._scale, upper / self._scale
        model.row_lower_ = model.row_upper_ = rhs / self._scale
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
        model.a_matrix_.value_ = matrix.data.astype(np.float64)
        self._solver.passModel(model)
        self.first = self._run()
        """The corner found when there is nothing to minimise."""
        set_options(self._solver, simplex_strategy=_PRIMAL)

    def least(self, columns: NDArray[np.intp], sign: float) -> Floats | None:
        """A corner in which `sign` times the sum of some columns is least; None when there is no least."""
        self._solver.changeColsCost(len(self._asked), self._asked, np.zeros(len(self._asked)))
        self._asked = columns.astype(np.int32)
        self._solver.changeColsCost(len(columns), self._asked, np.full(len(columns), sign))
        return self._run()

    def _run(self) -> Floats | None:
        self._solver.run()
        status = self._solver.getModelStatus()
        if status in {highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible}:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            self._solver.clearSolver()
            self._solver.run()
            status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverFailure(f"The solver stopped without an answer ({self._solver.modelStatusToString(status)}).")
        return np.array(self._solver.getSolution().col_value) * self._scale
