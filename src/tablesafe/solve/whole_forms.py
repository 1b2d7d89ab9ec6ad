"""How small and how large sums of whole numbers can be under linear conditions: one integer program, asked often."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.solver import new_solver

NODES = 2_000
"""Branching stops here; the bound is then valid, but perhaps not reached. A count is the same on every machine."""
NOISE = 1e-6


class WholeForms:
    """`row_lower <= matrix @ x <= row_upper`, `lower <= x <= upper`, x whole and finite; some point must exist."""

    def __init__(
        self, matrix: sparse.csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats
    ) -> None:
        self._matrix, self._rows, self._columns = sparse.csr_array(matrix), (row_lower, row_upper), (lower, upper)
        self._solver: Any = new_solver(mip_rel_gap=0.0, mip_abs_gap=0.999, mip_max_nodes=NODES)
        self._solver.passModel(self._model())

    def most(self, form: Floats) -> tuple[float, Integers | None]:
        """A number that `form @ x` cannot exceed (form in whole numbers), and the best point found, if any."""
        n = len(form)
        self._solver.changeColsCost(n, np.arange(n, dtype=np.int32), -form)
        self._solver.run()
        bound = -float(self._solver.getInfo().mip_dual_bound)
        if self._solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible or not np.isfinite(bound):
            raise SolverFailure("An integer program that must have an answer was given none.")
        return float(np.floor(bound + NOISE)), self._checked()

    def _model(self) -> Any:
        model: Any = highspy.HighsLp()
        model.num_row_, model.num_col_ = self._matrix.shape
        model.col_cost_ = np.zeros(model.num_col_)
        model.col_lower_, model.col_upper_ = self._columns
        model.row_lower_, model.row_upper_ = self._rows
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = self._matrix.indptr
        model.a_matrix_.index_ = self._matrix.indices
        model.a_matrix_.value_ = self._matrix.data.astype(np.float64)
        model.integrality_ = [highspy.HighsVarType.kInteger] * model.num_col_
        return model

    def _checked(self) -> Integers | None:
        """The solver's point, if it is one in whole numbers."""
        values = np.array(self._solver.getSolution().col_value)
        if len(values) != self._matrix.shape[1]:
            return None
        point = np.rint(values).astype(np.int64)
        sums = self._matrix @ point
        inside = (point >= self._columns[0]) & (point <= self._columns[1])
        fits = (sums >= self._rows[0]) & (sums <= self._rows[1])
        return point if bool(inside.all() and fits.all()) else None
