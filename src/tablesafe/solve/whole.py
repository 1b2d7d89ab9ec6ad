"""How far a whole number can go: one integer program, asked for many of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.solver import new_solver, set_options

_LARGEST = 2.0**40
"""Beyond this a float solver cannot tell whole numbers from others."""


@dataclass(frozen=True, slots=True)
class Furthest:
    """The best point found, if any, and a value that no point exceeds."""

    point: Integers | None
    bound: float


class WholeProgram:
    """`matrix @ x = 0`, `lower <= x <= upper`, x whole; the origin is always a point."""

    def __init__(self, matrix: sparse.csr_array, lower: Floats, upper: Floats) -> None:
        self._matrix = sparse.csr_array(matrix).astype(np.int64)
        self._lower, self._upper = lower.copy(), upper.copy()
        self._solver: Any = new_solver(mip_rel_gap=0.0, mip_abs_gap=0.999, mip_feasibility_tolerance=1e-9)
        self._solver.passModel(self._model())
        self._asked = 0

    def _model(self) -> Any:
        rows, columns = self._matrix.shape
        model: Any = highspy.HighsLp()
        model.num_col_, model.num_row_ = columns, rows
        model.col_cost_ = np.zeros(columns)
        model.col_lower_, model.col_upper_ = self._lower, self._upper
        model.row_lower_ = model.row_upper_ = np.zeros(rows)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = self._matrix.indptr
        model.a_matrix_.index_ = self._matrix.indices
        model.a_matrix_.value_ = self._matrix.data.astype(np.float64)
        model.integrality_ = [highspy.HighsVarType.kInteger] * columns
        return model

    def narrow(self, columns: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Replace the bounds of some columns."""
        self._lower[columns], self._upper[columns] = lower, upper
        self._solver.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)

    def furthest(self, column: int, sign: int, time_limit_s: float) -> Furthest:
        """The largest value of `sign * x[column]`: a point that reaches it, checked in whole numbers, and a bound.

        When the two agree the value is exact. The bound is the solver's, rounded down to a whole number.
        """
        self._solver.changeColCost(self._asked, 0.0)
        self._solver.changeColCost(column, -float(sign))
        self._asked = column
        set_options(self._solver, time_limit=float(self._solver.getRunTime()) + max(time_limit_s, 0.01))
        self._solver.run()
        limit = self._upper[column] if sign > 0 else -self._lower[column]
        status = self._solver.getModelStatus()
        if status in {highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible}:
            return Furthest(None, np.inf)
        bound = -float(self._solver.getInfo().mip_dual_bound)
        bound = min(float(np.floor(bound + 1e-6)), limit) if np.isfinite(bound) and abs(bound) < _LARGEST else limit
        return Furthest(self._checked(), bound)

    def together(self, columns: NDArray[np.intp], sign: int, time_limit_s: float) -> Integers | None:
        """A point that takes many columns as far as they can go together; no single one need be at its end."""
        self._solver.changeColCost(self._asked, 0.0)
        where, cost = columns.astype(np.int32), np.full(len(columns), -float(sign))
        self._solver.changeColsCost(len(columns), where, cost)
        set_options(self._solver, time_limit=float(self._solver.getRunTime()) + max(time_limit_s, 0.01))
        self._solver.run()
        point = self._checked()
        self._solver.changeColsCost(len(columns), where, np.zeros(len(columns)))
        return point

    def _checked(self) -> Integers | None:
        """The solver's point, if it is one."""
        values = np.array(self._solver.getSolution().col_value)
        if len(values) != len(self._lower) or not bool((np.abs(values) < _LARGEST).all()):
            return None
        point = np.rint(values).astype(np.int64)
        inside = bool(((point >= self._lower) & (point <= self._upper)).all())
        return point if inside and not np.asarray(self._matrix @ point).any() else None
