"""A linear program that stays where it stood: objective, bounds and rows change, and the next answer starts there."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from tablesafe.core.equations import Floats
from tablesafe.core.errors import SolverFailure
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.small import Columns
from tablesafe.solve.solver import new_solver
from tablesafe.work.budget import Budget

_DUAL, _PRIMAL = 1, 4
_BY_COLUMNS = int(highspy.MatrixFormat.kColwise)
_MINIMISE, _MAXIMISE = int(highspy.ObjSense.kMinimize), int(highspy.ObjSense.kMaximize)
PER_ROW = 20
"""Entries that make a pivot as slow as a row does."""
_STATUS = {
    highspy.HighsModelStatus.kOptimal: SolveStatus.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: SolveStatus.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: SolveStatus.UNBOUNDED,
    highspy.HighsModelStatus.kTimeLimit: SolveStatus.FEASIBLE,
}


class HotProgram:
    """One model of HiGHS. `primal` is for programs of which the objective changes, else bounds and rows do."""

    def __init__(self, work: Budget, *, primal: bool) -> None:
        self._work = work
        self._model: Any = new_solver(presolve="off", solver="simplex", simplex_strategy=_PRIMAL if primal else _DUAL)

    def load(
        self,
        cost: Floats,
        lower: Floats,
        upper: Floats,
        columns: Columns,
        *,
        least: Floats | None = None,
        maximise: bool = False,
    ) -> None:
        """Take a new model: `columns @ x = 0`, or `≥ least` where that is given."""
        n, low = len(cost), np.zeros(columns.rows) if least is None else least
        high = low if least is None else np.full(columns.rows, highspy.kHighsInf)
        self._model.passModel(
            n, columns.rows, len(columns.value), _BY_COLUMNS, _MAXIMISE if maximise else _MINIMISE, 0.0,
            cost, lower, upper, low, high, columns.start, columns.index, columns.value, np.zeros(n, dtype=np.int32),
        )  # fmt: skip

    def set_cost(self, column: int, cost: float) -> None:
        """Change the objective in one column."""
        self._model.changeColCost(column, cost)

    def set_costs(self, columns: NDArray[np.intp], cost: Floats) -> None:
        """Change the objective in some columns."""
        self._model.changeColsCost(len(columns), columns.astype(np.int32), cost)

    def bound(self, column: int, lower: float, upper: float) -> None:
        """Change the bounds of one column."""
        self._model.changeColBounds(column, lower, upper)

    def bounds(self, columns: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Change the bounds of some columns."""
        self._model.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)

    def free(self, column: int) -> None:
        """Take the bounds of one column away."""
        self._model.changeColBounds(column, -highspy.kHighsInf, highspy.kHighsInf)

    def add_rows(self, start: NDArray[np.intp], index: NDArray[np.intp], value: Floats, least: Floats) -> None:
        """Add rows `value · x[index] ≥ least`."""
        self._model.addRows(
            len(least), least, np.full(len(least), highspy.kHighsInf), len(index),
            start.astype(np.int32), index.astype(np.int32), value,
        )  # fmt: skip

    def run(self, seconds: float = float("inf")) -> SolveStatus:
        """Solve from where the last answer left it, or from scratch where that gets lost in rounding."""
        model = self._model
        if seconds < float("inf"):
            model.setOptionValue("time_limit", model.getRunTime() + max(seconds, 0.01))
        model.run()
        rows = model.getNumRow() + model.getNumNz() // PER_ROW
        self._work.hot(rows, model.getInfo().simplex_iteration_count)
        status = _STATUS.get(model.getModelStatus())
        if status is None:
            model.clearSolver()
            model.run()
            self._work.hot(rows, model.getInfo().simplex_iteration_count)
            status = _STATUS.get(model.getModelStatus(), SolveStatus.FAILED)
        return status

    def solve(self, seconds: float = float("inf")) -> None:
        """Solve what must have an answer."""
        status = self.run(seconds)
        if status not in {SolveStatus.OPTIMAL, SolveStatus.FEASIBLE}:
            raise SolverFailure(f"A linear program of the suppression problem was not solved ({status}).")

    def ray(self) -> Floats | None:
        """Prices that prove, if they are right, that no point fulfils all rows; after a run that found none."""
        answer = self._model.getDualRay()
        return np.asarray(answer[2]) if answer[1] else None

    @property
    def objective(self) -> float:
        """The value of the last answer."""
        return float(self._model.getObjectiveValue())

    def answer(self) -> tuple[Floats, Floats]:
        """The point of the last answer, and the price of every row; a status alone is never believed."""
        solution = self._model.getSolution()
        point, prices = np.asarray(solution.col_value), np.asarray(solution.row_dual)
        if not (np.isfinite(point).all() and np.isfinite(prices).all()):
            raise SolverFailure("The solver called an answer optimal that is no number.")
        return point, prices
