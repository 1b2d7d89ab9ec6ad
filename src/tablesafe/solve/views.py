"""Integer programs of linked views: the cheapest pattern, and a whole table that agrees with given margins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.solver import new_solver, set_options
from tablesafe.solve.stopping import Stoppable, watch

WHOLE = 1e-6
"""How near to a whole number a solver's answer must be to be taken for one."""
NEAR = 1e-6
"""How near two costs, relative to their size, are taken for equal."""
LEAST_S = 0.1


@dataclass(frozen=True, eq=False)
class MixedProgram:
    """Minimise `cost @ x` over `row_lower <= matrix @ x <= row_upper`, `lower <= x <= upper`, x whole where told."""

    cost: Floats = field(repr=False)
    matrix: sparse.csr_array = field(repr=False)
    row_lower: Floats = field(repr=False)
    row_upper: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    whole: Mask = field(repr=False)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape[0], self.matrix.shape[1]


@dataclass(frozen=True, slots=True)
class Answer:
    """A point, if there is one, and a cost that no point is below."""

    status: SolveStatus
    x: Floats | None
    bound: float
    seconds: float
    interrupted: bool = False


def solve_mixed(
    program: MixedProgram, *, time_limit_s: float, start: Floats | None = None,
    tell: Callable[[float, float], None] | None = None,
) -> Answer:  # fmt: skip
    """The cheapest point within a time limit; `start` is a point known already, of which the whole part is used.

    A tight program is often done with its linear relaxation: when that costs as much as the start, nothing is cheaper.
    `tell` hears now and then of the cost of the best point so far (infinite before there is one) and the bound. An
    interrupt ends the search; the answer is what was found until then, and says so.
    """
    begin = monotonic()
    scale = float(np.mean(program.cost[program.cost > 0])) if (program.cost > 0).any() else 1.0
    bound = -np.inf
    if start is not None:
        bound = _relaxed_bound(program, scale, time_limit_s)
        if bound >= float(program.cost @ start) - NEAR * scale:
            return Answer(SolveStatus.OPTIMAL, start, bound, monotonic() - begin)
        if tell is not None and np.isfinite(bound):
            tell(float(program.cost @ start), bound)
    solver = _solver(program, scale)
    _make_whole(solver, program)
    running = Stoppable(solver)
    if tell is not None:
        watch(solver, lambda cost, least: tell(cost * scale, max(least * scale, bound)))
    if start is not None:
        which = np.flatnonzero(program.whole).astype(np.int32)
        solver.setSolution(len(which), which, start[which])
    interrupted = running.run(max(time_limit_s - (monotonic() - begin), LEAST_S))
    status, info = solver.getModelStatus(), solver.getInfo()
    seconds = monotonic() - begin
    if status == highspy.HighsModelStatus.kInfeasible:
        return Answer(SolveStatus.INFEASIBLE, None, np.inf, seconds)
    bound = max(bound, float(info.mip_dual_bound) * scale)
    if info.primal_solution_status != 2:
        return Answer(SolveStatus.FAILED, None, bound, seconds, interrupted)
    x = np.array(solver.getSolution().col_value)
    x[program.whole] = np.rint(x[program.whole])
    optimal = status == highspy.HighsModelStatus.kOptimal
    return Answer(SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE, x, bound, seconds, interrupted)


def _relaxed_bound(program: MixedProgram, scale: float, time_limit_s: float) -> float:
    """What no point costs less than, by the linear relaxation; rounded up to the next cost that a point can have."""
    solver = _solver(program, scale)
    set_options(solver, presolve="off")
    set_options(solver, time_limit=max(time_limit_s / 4, LEAST_S))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return -np.inf
    found = float(solver.getInfo().objective_function_value) * scale
    if (program.cost[~program.whole] > 0).any() or (program.cost != np.rint(program.cost)).any():
        return found
    step = float(np.gcd.reduce(program.cost.astype(np.int64)))
    return float(np.ceil(found / step - NEAR) * step) if step else 0.0


def _solver(program: MixedProgram, scale: float) -> Any:
    solver: Any = new_solver(
        mip_rel_gap=1e-9, mip_abs_gap=1e-9, mip_feasibility_tolerance=1e-8, primal_feasibility_tolerance=1e-9
    )
    model: Any = highspy.HighsLp()
    model.num_row_, model.num_col_ = program.matrix.shape
    model.col_cost_ = program.cost / scale
    model.col_lower_, model.col_upper_ = program.lower, program.upper
    model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = program.matrix.indptr, program.matrix.indices
    model.a_matrix_.value_ = program.matrix.data.astype(np.float64)
    solver.passModel(model)
    return solver


def _make_whole(solver: Any, program: MixedProgram) -> None:
    whole = np.flatnonzero(program.whole).astype(np.int32)
    if len(whole):
        solver.changeColsIntegrality(len(whole), whole, np.ones(len(whole), dtype=np.uint8))


def whole_point(matrix: sparse.csr_array, rhs: Integers, *, time_limit_s: float) -> tuple[SolveStatus, Integers | None]:
    """A whole point of `matrix @ x = rhs`, x >= 0, checked in whole numbers; or that there is none, or none was found.

    The vertices of many such systems are whole by themselves, so a linear program is tried before an integer one.
    """
    n = matrix.shape[1]
    right = rhs.astype(np.float64)
    for whole in (np.zeros(n, np.bool_), np.ones(n, np.bool_)):
        program = MixedProgram(np.zeros(n), matrix, right, right, np.zeros(n), np.full(n, np.inf), whole)
        answer = solve_mixed(program, time_limit_s=time_limit_s)
        if answer.interrupted:
            raise KeyboardInterrupt
        if answer.status is SolveStatus.INFEASIBLE:
            return SolveStatus.INFEASIBLE, None
        if answer.x is not None and bool((np.abs(answer.x - np.rint(answer.x)) < WHOLE).all()):
            x: NDArray[np.int64] = np.rint(answer.x).astype(np.int64)
            if bool((x >= 0).all()) and np.array_equal(matrix.astype(np.int64) @ x, rhs):
                return SolveStatus.FEASIBLE, x
    return SolveStatus.FAILED, None
