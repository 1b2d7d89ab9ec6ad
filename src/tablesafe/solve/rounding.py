"""Whole steps at least cost that repair every sum: first as a linear program, and only if that is fractional as MILP.

For two-dimensional tables, also with one hierarchy, every vertex of the linear program is whole (it is a network flow).
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tablesafe.equations import Floats, Integers, Mask
from tablesafe.errors import SolverFailure
from tablesafe.solve.program import SolveStatus

WHOLE = 1e-6
"""How near to a whole number the solver's answer must be; the sums are then checked in whole numbers."""
LEAST_S = 0.2


@dataclass(frozen=True, slots=True)
class Steps:
    """How many steps each column takes, if there is an answer, and a cost that no answer is below."""

    status: SolveStatus
    taken: Integers | None
    bound: float


@dataclass(frozen=True, eq=False)
class StepProgram:
    """Minimise `cost @ z + offset` over `matrix @ z = rhs`, `0 <= z <= most`, z whole where `whole` says so."""

    matrix: sparse.csr_array
    rhs: Integers
    cost: Floats
    most: Floats
    whole: Mask
    offset: float = 0.0

    def solve(self, *, time_limit_s: float) -> Steps:
        """The best steps within the time limit: proven, merely found, or none."""
        if not len(self.cost):  # nothing can move: all sums hold already, or never will
            possible = not self.rhs.any()
            status = SolveStatus.OPTIMAL if possible else SolveStatus.INFEASIBLE
            return Steps(status, np.zeros(0, np.int64) if possible else None, self.offset)
        begin = monotonic()
        scale = float(np.mean(np.abs(self.cost[self.cost != 0]))) if self.cost.any() else 1.0
        solver = self._solver(scale)
        solver.setOptionValue("time_limit", max(time_limit_s, LEAST_S))
        solver.run()
        relaxed = solver.getModelStatus()
        if relaxed == highspy.HighsModelStatus.kInfeasible:
            return Steps(SolveStatus.INFEASIBLE, None, np.inf)
        bound = -np.inf
        if relaxed == highspy.HighsModelStatus.kOptimal:
            bound = float(solver.getInfo().objective_function_value) * scale
            taken = self._checked(solver)
            if taken is not None:
                return Steps(SolveStatus.OPTIMAL, taken, bound)
        whole = np.flatnonzero(self.whole).astype(np.int32)
        solver = self._solver(scale)
        solver.changeColsIntegrality(len(whole), whole, np.ones(len(whole), dtype=np.uint8))
        solver.setOptionValue("time_limit", max(time_limit_s - (monotonic() - begin), LEAST_S))
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Steps(SolveStatus.INFEASIBLE, None, np.inf)
        bound = max(bound, float(solver.getInfo().mip_dual_bound) * scale)
        taken = self._checked(solver)
        if taken is None:
            return Steps(SolveStatus.FAILED, None, bound)
        optimal = status == highspy.HighsModelStatus.kOptimal
        return Steps(SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE, taken, bound)

    def _solver(self, scale: float) -> Any:
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in (
            ("output_flag", False), ("threads", 1), ("random_seed", 0), ("solver", "simplex"),
            ("mip_rel_gap", 1e-6), ("mip_feasibility_tolerance", WHOLE),
        ):  # fmt: skip
            if solver.setOptionValue(option, value) != highspy.HighsStatus.kOk:
                raise SolverFailure(f"HiGHS does not accept {option}={value!r}.")
        model: Any = highspy.HighsLp()
        model.num_row_, model.num_col_ = self.matrix.shape
        model.col_cost_, model.offset_ = self.cost / scale, self.offset / scale
        model.col_lower_, model.col_upper_ = np.zeros(len(self.cost)), self.most
        model.row_lower_ = model.row_upper_ = self.rhs.astype(np.float64)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.matrix.indptr, self.matrix.indices
        model.a_matrix_.value_ = self.matrix.data.astype(np.float64)
        solver.passModel(model)
        return solver

    def _checked(self, solver: Any) -> Integers | None:
        """The solver's point, if it is whole where it must be, within bounds, and every sum holds."""
        z = np.array(solver.getSolution().col_value)
        if len(z) != len(self.cost) or not solver.getSolution().value_valid:
            return None
        taken: Floats = np.rint(z)
        if (np.abs(z - taken) > WHOLE)[self.whole].any() or ((taken < 0) | (taken > self.most))[self.whole].any():
            return None
        missing = self.rhs - np.asarray(self.matrix @ np.where(self.whole, taken, z))
        exactly = np.asarray(abs(self.matrix)[:, ~self.whole].sum(axis=1)) == 0
        if missing[exactly].any() or (np.abs(missing) > WHOLE * (1 + np.abs(self.rhs))).any():
            return None
        return taken.astype(np.int64)
