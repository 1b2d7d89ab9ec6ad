"""One whole, nonnegative answer to linear equations: any that there is."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import OutOfTime
from tablesafe.solve.solver import new_solver


def whole_answer(matrix: sparse.csr_array, rhs: Integers, most: Floats, time_limit_s: float) -> Integers | None:
    """Whole numbers from 0 to `most` with `matrix @ x = rhs`, checked in whole numbers; None if there are none.

    The linear program may have a whole vertex, which saves the integer one.
    """
    for whole in (False, True):
        solver = _solver(matrix, rhs, most, time_limit_s, whole=whole)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        values = np.array(solver.getSolution().col_value)
        if len(values) == len(most):
            point: Integers = np.rint(values).astype(np.int64)
            inside = bool(((point >= 0) & (point <= most)).all())
            if inside and bool((matrix.astype(np.int64) @ point == rhs).all()):
                return point
    raise OutOfTime(f"No whole numbers that satisfy all equations were found in {time_limit_s:g} s.")


def _solver(matrix: sparse.csr_array, rhs: Integers, most: Floats, time_limit_s: float, *, whole: bool) -> Any:
    solver: Any = new_solver(mip_feasibility_tolerance=1e-9, time_limit=float(time_limit_s))
    rows, columns = matrix.shape
    model: Any = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns, rows
    model.col_cost_, model.col_lower_, model.col_upper_ = np.zeros(columns), np.zeros(columns), most
    model.row_lower_ = model.row_upper_ = rhs.astype(np.float64)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data.astype(np.float64)
    if whole:
        model.integrality_ = [highspy.HighsVarType.kInteger] * columns
    solver.passModel(model)
    return solver
