"""Whole steps at least cost that repair every sum: a linear program, and where that is fractional an integer one.

For two-dimensional tables, also with one hierarchy, every vertex of the linear program is whole (it is a network flow).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.solver import new_solver, set_options
from tablesafe.solve.stopping import interrupts, watch
from tablesafe.work.budget import Budget

WHOLE = 1e-6
"""How near to a whole number the solver's answer must be; the sums are then checked in whole numbers."""
EXACT = 1e-6
LEAST_S = 0.05
LARGE_COST = 1e5
CLOSE = 1e-9
"""Prices this far beyond what bounds allow are taken for rounding errors of the solver."""

_ENDED = {
    highspy.HighsModelStatus.kOptimal: SolveStatus.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: SolveStatus.INFEASIBLE,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """How a program ended: a point, if there is one, and a cost that no answer is below."""

    status: SolveStatus
    point: Floats | None = field(repr=False)
    bound: float
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class StepProgram:
    """Minimise `cost @ z + offset` over `matrix @ z = rhs`, `0 <= z <= most`, z whole where `whole` says so."""

    matrix: sparse.csr_array = field(repr=False)
    rhs: Integers = field(repr=False)
    cost: Floats = field(repr=False)
    most: Floats = field(repr=False)
    whole: Mask = field(repr=False)
    offset: float = 0.0

    @cached_property
    def _scale(self) -> float:
        """Costs are divided by this: the solver's tolerances are absolute. Whole costs prune best as they are."""
        if bool((self.cost == np.rint(self.cost)).all()) and float(np.abs(self.cost).max(initial=0.0)) < LARGE_COST:
            return 1.0
        return float(np.mean(np.abs(self.cost[self.cost != 0]))) if self.cost.any() else 1.0

    def relax(self, budget: Budget) -> Answer:
        """The linear program: its vertex, and a bound from the prices of its rows."""
        if not len(self.cost):
            return self._empty()
        solver = self._solver(budget)
        interrupted = _run(solver, budget)
        status = _ENDED.get(solver.getModelStatus(), SolveStatus.FAILED)
        if status == SolveStatus.INFEASIBLE:
            return Answer(status, None, np.inf, interrupted)
        prices = np.array(solver.getSolution().row_dual)
        bound = self.bound(prices * self._scale) if len(prices) == len(self.rhs) else -np.inf
        return Answer(status, self._point(solver) if status == SolveStatus.OPTIMAL else None, bound, interrupted)

    def solve(
        self, budget: Budget, start: Floats | None = None, *, gap: float = EXACT,
        tell: Callable[[float, float], None] | None = None,
    ) -> Answer:  # fmt: skip
        """The integer program: the best point within the time, or one within `gap` of the best, or none.

        `tell` hears now and then of the cost of the best point so far (infinite before there is one) and the bound.
        """
        if not len(self.cost):
            return self._empty()
        solver = self._solver(budget)
        set_options(solver, mip_rel_gap=gap)
        whole = np.flatnonzero(self.whole).astype(np.int32)
        solver.changeColsIntegrality(len(whole), whole, np.ones(len(whole), dtype=np.uint8))
        if start is not None:
            solver.setSolution(len(start), np.arange(len(start), dtype=np.int32), start)
        if tell is not None:
            watch(solver, lambda cost, bound: tell(cost * self._scale, bound * self._scale))
        interrupted = _run(solver, budget)
        status = _ENDED.get(solver.getModelStatus(), SolveStatus.FAILED)
        if status == SolveStatus.INFEASIBLE:
            return Answer(status, None, np.inf, interrupted)
        bound = float(solver.getInfo().mip_dual_bound) * self._scale
        point = self._point(solver) if solver.getInfo().primal_solution_status == 2 else None
        if status == SolveStatus.FAILED and point is not None:
            status = SolveStatus.FEASIBLE
        return Answer(status, point, bound if np.isfinite(bound) else -np.inf, interrupted)

    def bound(self, prices: Floats) -> float:
        """What no answer costs less than, by prices of the rows: right for any prices, best for the solver's."""
        reduced = self.cost - np.asarray(self.matrix.T @ prices)
        reduced = np.where(np.isinf(self.most) & (reduced > -CLOSE * self._scale), np.maximum(reduced, 0.0), reduced)
        with np.errstate(invalid="ignore"):
            saved = np.where(reduced < 0, reduced * self.most, 0.0)
        return self.offset + float(prices @ self.rhs) + float(saved.sum())

    def _empty(self) -> Answer:
        """Nothing can move: all sums hold already, or never will."""
        if self.rhs.any():
            return Answer(SolveStatus.INFEASIBLE, None, np.inf)
        return Answer(SolveStatus.OPTIMAL, np.zeros(0), self.offset)

    def _solver(self, budget: Budget) -> Any:
        solver: Any = new_solver(
            solver="simplex", mip_feasibility_tolerance=WHOLE, time_limit=max(budget.left, LEAST_S)
        )
        model: Any = highspy.HighsLp()
        model.num_row_, model.num_col_ = self.matrix.shape
        model.col_cost_, model.offset_ = self.cost / self._scale, self.offset / self._scale
        model.col_lower_, model.col_upper_ = np.zeros(len(self.cost)), self.most
        model.row_lower_ = model.row_upper_ = self.rhs.astype(np.float64)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.matrix.indptr, self.matrix.indices
        model.a_matrix_.value_ = self.matrix.data.astype(np.float64)
        solver.passModel(model)
        return solver

    def _point(self, solver: Any) -> Floats | None:
        point = np.array(solver.getSolution().col_value)
        return point if len(point) == len(self.cost) else None


def deciding(matrix: sparse.csr_array, totals: Integers) -> Mask:
    """The cells that, once whole, make all others whole: those that no sum of decided cells gives.

    Asking the solver for fewer whole columns spares it hours of modular arithmetic on structures that are no trees.
    """
    given = np.ones(matrix.shape[1], dtype=np.bool_)
    given[totals] = False
    chosen = given.copy()
    present = sparse.csr_array(matrix).astype(bool).astype(np.int32)
    own = np.abs(matrix.data) == 1
    while not given.all():
        open_rows = np.asarray(present @ (~given).astype(np.int32)) == 1
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        new = np.unique(matrix.indices[open_rows[row] & own & ~given[matrix.indices]])
        if not new.size:
            chosen |= ~given
            break
        given[new] = True
    return chosen


def _run(solver: Any, budget: Budget) -> bool:
    """Solve until the time is up or the user interrupts; whether the user did.

    The solver alone would go on past its time in places, and would hear of Ctrl-C only at its end.
    """
    with interrupts() as caught:
        solver.cbMipInterrupt += lambda event: event.interrupt() if caught or budget.over else None
        solver.cbSimplexInterrupt += lambda event: event.interrupt() if caught or budget.over else None
        solver.run()
        return bool(caught)
