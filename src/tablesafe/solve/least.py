"""One linear program, asked once."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.solver import new_solver


def least(
    cost: Floats, matrix: sparse.csr_array, lower: Floats, upper: Floats, most: Floats | None = None
) -> Floats | None:
    """The point of least cost with `lower <= matrix @ x <= upper` and `0 <= x <= most`; None when there is no point.

    There must be a least. Numbers should be around 1: tolerances are absolute.
    """
    solver: Any = new_solver()
    model: Any = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_, model.col_lower_ = cost, np.zeros(len(cost))
    model.col_upper_ = np.full(len(cost), np.inf) if most is None else most
    model.row_lower_, model.row_upper_ = lower, upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data.astype(np.float64)
    solver.passModel(model)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    if status != highspy.HighsModelStatus.kOptimal:
        raise SolverFailure(f"The solver stopped without an answer ({solver.modelStatusToString(status)}).")
    return np.array(solver.getSolution().col_value)
