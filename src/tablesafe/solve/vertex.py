"""One linear program, asked once, with bounds on rows and columns: its answer at a corner, or amid all answers."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve.solver import new_solver
from tablesafe.work.budget import ENDLESS, Budget

TOLERANCE = 1e-9
COMFORTABLE = 2.0**24
"""HiGHS's tolerances are absolute: larger bounds are scaled down to about this, by a power of two."""
SIMPLEX = {"solver": "simplex"}
INTERIOR = {"solver": "ipm", "run_crossover": "off"}


def vertex(
    cost: Floats, matrix: sparse.csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats,
    *, budget: Budget = ENDLESS,
) -> Floats:  # fmt: skip
    """A vertex of least cost with `row_lower <= matrix @ x <= row_upper` and `lower <= x <= upper`.

    There must be a point and a least cost; anything else is a failure of the solver.
    """
    return _answer(cost, matrix, row_lower, row_upper, lower, upper, methods=(SIMPLEX,), budget=budget)


def amid(
    cost: Floats, matrix: sparse.csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats,
    *, budget: Budget = ENDLESS,
) -> Floats:  # fmt: skip
    """The same, but amid all points of least cost where there are many: by an interior-point method.

    Much faster where many bounds meet. Should it fail, a vertex serves.
    """
    return _answer(cost, matrix, row_lower, row_upper, lower, upper, methods=(INTERIOR, SIMPLEX), budget=budget)


def _answer(
    cost: Floats, matrix: sparse.csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats,
    *, methods: tuple[dict[str, str], ...], budget: Budget,
) -> Floats:  # fmt: skip
    """The first method's answer, or else the next one's."""
    scale = _scale(row_lower, row_upper, lower, upper)
    model: Any = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower / scale, upper / scale
    model.row_lower_, model.row_upper_ = row_lower / scale, row_upper / scale
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data.astype(np.float64)
    said = ""
    for options in methods:
        solver = new_solver(
            primal_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE,
            time_limit=budget.left,
            **options,
        )
        solver.passModel(model)
        solver.run()
        info = solver.getInfo()
        budget.program(matrix.nnz, info.simplex_iteration_count, info.ipm_iteration_count)
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            return np.array(solver.getSolution().col_value) * scale
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise OutOfTime("The solver had too little time for an answer.")
        said = solver.modelStatusToString(status)
    raise SolverFailure(f"The solver stopped without an answer ({said}).")


def _scale(*bounds: Floats) -> float:
    largest = max((float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0)) for b in bounds), default=1.0)
    return float(2.0 ** np.ceil(np.log2(max(largest / COMFORTABLE, 1.0))))
