"""HiGHS, kept warm: one model whose objective changes, so that each answer starts from the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from tablesafe.core.equations import Floats, Integers
from tablesafe.solve.exact.polytope import Polytope
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.solver import new_solver, set_options

DUAL, PRIMAL = 1, 4
COMFORTABLE = 2.0**24
"""HiGHS's tolerances are absolute: larger bounds are scaled down to about this, by a power of two."""
TOLERANCE = 1e-9

_STATUS = {
    highspy.HighsModelStatus.kOptimal: SolveStatus.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: SolveStatus.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: SolveStatus.UNBOUNDED,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: SolveStatus.UNBOUNDED,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What HiGHS says: a point, and the price of every row. To be proved before it is believed."""

    status: SolveStatus
    point: Floats
    prices: Floats


class WarmSimplex:
    """The simplex method over one polytope, for many objectives.

    The first run is dual, from scratch; the later ones primal, from the last vertex: only the objective changes.
    """

    def __init__(self, polytope: Polytope, *, scaled: bool = True, tolerance: float = TOLERANCE) -> None:
        k = polytope.columns
        finite = np.abs(np.concatenate([polytope.lower, polytope.upper]))
        largest = float(np.max(finite[np.isfinite(finite)], initial=1.0))
        self._scale = 2.0 ** np.ceil(np.log2(max(largest / COMFORTABLE, 1.0))) if scaled else 1.0
        self._columns = np.arange(k, dtype=np.int32)
        self._cost = np.zeros(k)
        self._model: Any = new_solver(
            presolve="off",
            solver="simplex",
            primal_feasibility_tolerance=tolerance,
            dual_feasibility_tolerance=tolerance,
            simplex_strategy=DUAL,
        )
        self._model.passModel(self._program(polytope))
        self._model.run()
        set_options(self._model, simplex_strategy=PRIMAL)

    def _program(self, p: Polytope) -> Any:
        k, forms = p.columns, p.forms
        program: Any = highspy.HighsLp()
        program.num_col_, program.num_row_ = k, forms - k
        program.col_cost_ = self._cost
        lower, upper = p.lower / self._scale, p.upper / self._scale
        program.col_lower_, program.col_upper_ = lower[:k], upper[:k]
        program.row_lower_, program.row_upper_ = lower[k:], upper[k:]
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = p.column_start
        program.a_matrix_.index_ = p.column_row
        program.a_matrix_.value_ = p.column_value
        return program

    def bound_rows(self, rows: Integers, lower: Floats, upper: Floats) -> None:
        """Replace the bounds of some rows."""
        which = rows.astype(np.int32)
        self._model.changeRowsBounds(len(which), which, lower / self._scale, upper / self._scale)

    def maximise(self, objective: Floats) -> Answer:
        """The point of the polytope where `objective @ t` is largest."""
        changed = np.flatnonzero(objective != self._cost).astype(np.int32)
        self._cost = objective
        self._model.changeColsCost(len(changed), changed, -objective[changed])
        self._model.run()
        if self._model.getModelStatus() not in _STATUS:  # lost in rounding: start again
            self._model.clearSolver()
            self._model.run()
        status = _STATUS.get(self._model.getModelStatus(), SolveStatus.FAILED)
        solution = self._model.getSolution()
        return Answer(status, np.array(solution.col_value) * self._scale, -np.array(solution.row_dual))
