"""Least changes of a table that keep it adding up: programs over the rise and the fall of each cell.

Every program has two columns per cell, how far it rises and how far it falls; the equations hold for the difference.
Amounts are in units of the table, costs per unit. Inside, both are scaled to about 1: a solver's tolerances are
absolute, and costs such as 1/value would drown in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Self

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tablesafe.core.equations import Floats, Integers, Mask
from tablesafe.core.errors import OutOfTime, SolverFailure
from tablesafe.solve.exact.elimination import echelon
from tablesafe.solve.program import SolveStatus
from tablesafe.solve.solver import new_solver
from tablesafe.solve.stopping import Stoppable, watch

TIGHT = 1e-10
"""The smallest tolerance that HiGHS takes: costs five orders below the middle one still count."""
WORTH = 1e3
"""What an objective should be at least, so that absolute tolerances are small beside it."""
GAP = 1e-7
ELIMINATION = 60
"""Dependent equations are looked for while that takes no more than this many times the entries there are."""
HAS_POINT = 2
LONG = 2_000
"""Equations from which on an interior point is quicker than the simplex method from nothing or from far away."""
NEAR = 64
"""Bounds that may differ from those of the last answer for it to be near."""
PIVOTS = 3_000
"""Simplex iterations after which an answer that seemed near is looked for by an interior point."""


@dataclass(frozen=True, eq=False)
class Box:
    """How far each cell may, and must, rise and fall."""

    rise_least: Floats
    rise_most: Floats
    fall_least: Floats
    fall_most: Floats

    @classmethod
    def free(cls, up: Floats, down: Floats) -> Self:
        """Nothing must move; everything may, this far."""
        return cls(np.zeros(len(up)), up.copy(), np.zeros(len(down)), down.copy())

    @property
    def least(self) -> Floats:
        """Lower bounds of the columns: rises, then falls."""
        return np.concatenate([self.rise_least, self.fall_least])

    @property
    def most(self) -> Floats:
        """Upper bounds of the columns: rises, then falls."""
        return np.concatenate([self.rise_most, self.fall_most])


@dataclass(frozen=True, slots=True)
class Scale:
    """`step` units of the table are 1 in the solver, and cost 1 is `price` there."""

    step: float
    price: float

    @classmethod
    def of(cls, cost: Floats, amounts: Floats, *, objective: float | None = None) -> Self:
        """The middle amount becomes about 1, and so does the middle, in orders of magnitude, of the costs.

        With a known `objective` costs are scaled up further where it would be small.
        """
        typical = float(np.median(amounts)) if amounts.size else 1.0
        step = _power_of_two(max(typical, 1.0))
        positive = cost[cost > 0]
        middle = float(np.sqrt(positive.min()) * np.sqrt(positive.max())) if positive.size else 1.0
        price = 1.0 / middle
        if objective is not None and objective > 0:
            price = max(price, WORTH * step / objective)
        return cls(step, _power_of_two(price))

    def original(self, objective: float) -> float:
        """An objective of the solver in costs and units of the table."""
        return objective * self.step / self.price


@dataclass(frozen=True, slots=True)
class Change:
    """How every cell moves at least cost, what that costs, and what each equation's last unit is worth."""

    moves: Floats
    cost: float
    prices: Floats


class LeastChange:
    """The least change within a box; only the box varies from call to call, so each starts from the last answer.

    Where there is none, or the box is far from the last one, a large program is solved by an interior point and a
    crossover: from linked tables with costs over many orders of magnitude the dual simplex method took twenty times as
    long, which was mistaken for a table too large to be solved at all.
    """

    def __init__(self, matrix: sparse.csc_array, rise_cost: Floats, fall_cost: Floats, scale: Scale) -> None:
        self._scale, self._cells = scale, matrix.shape[1]
        self._matrix = matrix
        self._cost = np.concatenate([rise_cost, fall_cost])
        self._running = _solver(simplex_strategy=1, **_TOLERANCES)
        self._solver = self._running.solver
        self._least = self._most = np.zeros(0)

    def solve(self, box: Box, *, better_than: float | None = None, seconds: float = np.inf) -> Change | None:
        """The least change, or None when there is none, or none `better_than` a cost; OutOfTime after so long."""
        least, most = box.least / self._scale.step, box.most / self._scale.step
        near = False
        if self._least.size:
            changed = np.flatnonzero((least != self._least) | (most != self._most)).astype(np.int32)
            self._solver.changeColsBounds(len(changed), changed, least[changed], most[changed])
            near = len(changed) <= NEAR
        else:
            both = sparse.hstack([self._matrix, -self._matrix], format="csc")
            rows = np.zeros(both.shape[0])
            self._solver.passModel(program_of(both, self._cost * self._scale.price, least, most, rows, rows))
        self._least, self._most = least, most
        self._running.set(objective_bound=self._worth(better_than))
        return self._answer(monotonic() + seconds, near=near or self._matrix.shape[0] < LONG)

    def _worth(self, cost: float | None) -> float:
        return np.inf if cost is None else cost * self._scale.price / self._scale.step

    def _answer(self, until: float, *, near: bool) -> Change | None:
        status = self._near(until) if near else None
        if status not in _ANSWER:
            status = self._far(until)
        if status in _NO_ANSWER:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverFailure(f"The solver stopped without an answer ({self._solver.modelStatusToString(status)}).")
        solution = self._solver.getSolution()
        amounts = np.array(solution.col_value) * self._scale.step
        prices = np.array(solution.row_dual) / self._scale.price
        if not (np.isfinite(amounts).all() and np.isfinite(prices).all()):
            raise SolverFailure("The solver calls something its best answer that is no number.")
        moves = amounts[: self._cells] - amounts[self._cells :]
        return Change(moves, float(self._cost @ amounts), prices)

    def _near(self, until: float) -> Any:
        """Run from the last answer where there is one; a large program not beyond what an interior point would take."""
        long = self._matrix.shape[0] >= LONG
        self._running.set(solver="simplex", simplex_iteration_limit=PIVOTS if long else highspy.kHighsIInf)
        status = self._status(until)
        self._running.set(presolve="off")
        return status

    def _far(self, until: float) -> Any:
        """Run from nothing; what an interior point leaves undecided the simplex method decides."""
        for solver in ("ipm", "simplex") if self._matrix.shape[0] >= LONG else ("simplex",):
            self._solver.clearSolver()
            self._running.set(solver=solver, presolve="on", objective_bound=np.inf)
            self._running.set(simplex_iteration_limit=highspy.kHighsIInf)
            status = self._status(until)
            if status in _ANSWER:
                break
        self._running.set(presolve="off")
        return status

    def _status(self, until: float) -> Any:
        self._running.run_or_stop(until - monotonic())
        status = self._solver.getModelStatus()
        if status in _STOPPED:
            raise OutOfTime("The time given was too short for an answer.\n\nHint: raise time_limit_s.")
        return status


@dataclass(frozen=True, eq=False)
class Switches:
    """Cells that must either rise by `above` or fall by `below`, or more."""

    cells: NDArray[np.intp]
    above: Floats
    below: Floats


@dataclass(frozen=True, eq=False)
class Choice:
    """What a mixed-integer program found: a point or none, and a cost that no point undercuts."""

    status: SolveStatus
    bound: float
    moves: Floats | None = None
    rise: Mask | None = None
    """Per switch, whether the cell rises."""
    interrupted: bool = False
    """Whether the user stopped it."""


@dataclass(frozen=True, eq=False)
class Directions:
    """The least change when the direction of some cells is open: a binary per switch.

    `rise ≤ most · b`, `rise ≥ above · b`, and the same for the fall with 1 − b: for one cell this is the convex hull,
    and it is the tighter the smaller `most` is. So the box should hold proven bounds.
    """

    matrix: sparse.csc_array = field(repr=False)
    cost: Floats = field(repr=False)
    box: Box = field(repr=False)
    switches: Switches = field(repr=False)
    scale: Scale
    sums: Floats | None = field(default=None, repr=False)
    """What the moves add up to in each equation, where that is not 0: other cells, not part of this, have moved."""

    def relaxed(self, *, time_limit_s: float = np.inf) -> tuple[float, Floats]:
        """A proven bound on the cost of every choice, and how much each switch leans to rising (0 to 1)."""
        model = self._model()
        long = self.matrix.shape[0] >= LONG
        options = {"solver": "ipm", "run_crossover": "off"} if long else {"solver": "simplex"}
        running = _solver(**options, **_TOLERANCES)
        solver = running.solver
        solver.passModel(program_of(*model))
        running.run_or_stop(time_limit_s)
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return 0.0, np.full(len(self.switches.cells), 0.5)
        solution = solver.getSolution()
        bound = self.scale.original(_lagrangian(model, np.array(solution.row_dual)))
        return bound, np.array(solution.col_value)[2 * len(self.cost) :]

    def choose(
        self,
        *,
        time_limit_s: float,
        start: tuple[Floats, Mask] | None = None,
        whole: bool = False,
        first: bool = False,
        gap: float = GAP,
        report: Callable[[float, float], None] | None = None,
    ) -> Choice:
        """The best directions found in the time; `start` is an answer known already, as moves and rises.

        With `whole` every move is a whole number; with `first` the first answer will do; `gap` says how near to the
        best is near enough. `report` hears of the cost and the proven bound while it goes on.
        """
        program = self if not whole else replace(self, scale=replace(self.scale, step=1.0))
        cells, switched = len(self.cost), len(self.switches.cells)
        model = program._model()
        running = _solver(
            mip_rel_gap=gap, mip_abs_gap=0.0, mip_feasibility_tolerance=1e-9,
            mip_max_improving_sols=1 if first else highspy.kHighsIInf,
        )  # fmt: skip
        solver = running.solver
        kinds = np.zeros(2 * cells + switched, dtype=np.uint8)
        kinds[2 * cells :] = 1
        kinds[: 2 * cells] = int(whole)
        solver.passModel(program_of(*model))
        solver.changeColsIntegrality(len(kinds), np.arange(len(kinds), dtype=np.int32), kinds)
        if start is not None:
            begin_at(solver, np.concatenate([_sides(start[0]) / program.scale.step, start[1].astype(np.float64)]))
        if report is not None:
            watch(solver, lambda cost, bound: report(program.scale.original(cost), program.scale.original(bound)))
        interrupted = running.run(time_limit_s)
        return replace(program._choice(solver), interrupted=interrupted)

    def _choice(self, solver: Any) -> Choice:
        cells, status, info = len(self.cost), solver.getModelStatus(), solver.getInfo()
        if status in _NO_ANSWER:
            return Choice(SolveStatus.INFEASIBLE, np.inf)
        bound = float(info.mip_dual_bound)
        bound = self.scale.original(bound) if np.isfinite(bound) and bound > 0 else 0.0
        if info.primal_solution_status != HAS_POINT:
            return Choice(SolveStatus.FAILED, bound)
        x = np.array(solver.getSolution().col_value)
        moves = (x[:cells] - x[cells : 2 * cells]) * self.scale.step
        optimal = status == highspy.HighsModelStatus.kOptimal
        return Choice(SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE, bound, moves, x[2 * cells :] > 0.5)

    def _model(self) -> Model:
        """Columns: rises, falls, switches. Rows: the equations, then four per switch."""
        step, cells, s = self.scale.step, len(self.cost), self.switches
        count, box = len(s.cells), self.box
        pick = sparse.csc_array((np.ones(count), (np.arange(count), s.cells)), shape=(count, cells))
        most_rise, most_fall = box.rise_most[s.cells] / step, box.fall_most[s.cells] / step
        above, below = s.above / step, s.below / step
        matrix = sparse.block_array(
            [
                [self.matrix, -self.matrix, None],
                [pick, None, -sparse.diags_array(most_rise)],
                [pick, None, -sparse.diags_array(above)],
                [None, pick, sparse.diags_array(most_fall)],
                [None, pick, sparse.diags_array(below)],
            ],
            format="csc",
        ) if count else sparse.hstack([self.matrix, -self.matrix], format="csc")  # fmt: skip
        zero, free = np.zeros(count), np.full(count, np.inf)
        equations = np.zeros(self.matrix.shape[0]) if self.sums is None else self.sums / step
        return (
            sparse.csc_array(matrix),
            np.concatenate([self.cost, self.cost, zero]) * np.r_[np.full(2 * cells, self.scale.price), zero],
            np.concatenate([box.least / step, zero]),
            np.concatenate([box.most / step, np.ones(count)]),
            np.concatenate([equations, -free, zero, -free, below]),
            np.concatenate([equations, zero, free, most_fall, free]),
        )


def independent_rows(matrix: sparse.csc_array) -> sparse.csc_array:
    """The same equations without those that follow from others: smaller programs, and far better mixed-integer ones.

    Found modulo a prime, so that none is kept in vain; one lost by bad luck would show in the check of every answer.
    """
    rows = sparse.csr_array(matrix)
    if not rows.nnz or (rows.data != np.rint(rows.data)).any():
        return matrix
    found = echelon(rows, ELIMINATION * rows.nnz)
    return sparse.csc_array(rows[np.sort(found.pivot_row)]) if found.fits else matrix


def whole_moves(
    matrix: sparse.csc_array, target: Integers, cost: Floats, lower: Floats, upper: Floats, *, time_limit_s: float
) -> Integers | None:
    """Whole numbers x of little cost with `matrix @ x = target` and `lower ≤ x ≤ upper`, checked; None without any."""
    largest = float(np.abs(cost).max(initial=0.0))
    scaled = cost / largest * WORTH if largest > 0 else cost
    running = _solver(mip_rel_gap=1e-4, mip_feasibility_tolerance=1e-9)
    solver = running.solver
    rows, columns = target.astype(np.float64), matrix.shape[1]
    solver.passModel(program_of(matrix, scaled, lower, upper, rows, rows))
    solver.changeColsIntegrality(columns, np.arange(columns, dtype=np.int32), np.ones(columns, dtype=np.uint8))
    running.run_or_stop(time_limit_s)
    if solver.getInfo().primal_solution_status != HAS_POINT:
        return None
    x = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    good = not np.asarray(matrix.astype(np.int64) @ x - target).any() and bool(((x >= lower) & (x <= upper)).all())
    return x if good else None


Model = tuple[sparse.csc_array, Floats, Floats, Floats, Floats, Floats]
"""Matrix, costs, bounds of the columns, bounds of the rows."""

_TOLERANCES = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": TIGHT}

_STOPPED = {highspy.HighsModelStatus.kTimeLimit, highspy.HighsModelStatus.kInterrupt}
_NO_ANSWER = {
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
    highspy.HighsModelStatus.kObjectiveBound,
}
_ANSWER = _NO_ANSWER | {highspy.HighsModelStatus.kOptimal}


def _power_of_two(number: float) -> float:
    """The nearest power of two: scaling by it loses nothing."""
    return math.ldexp(1.0, round(math.log2(number)))


def _solver(**options: Any) -> Stoppable:
    return Stoppable(new_solver(**options))


def program_of(
    matrix: sparse.csc_array, cost: Floats, least: Floats, most: Floats, row_least: Floats, row_most: Floats
) -> Any:
    """A linear program in the solver's own form."""
    program: Any = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, least, most
    program.row_lower_, program.row_upper_ = row_least, row_most
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data.astype(np.float64)
    return program


def begin_at(solver: Any, point: Floats) -> None:
    """Tell the solver a point that is known already."""
    solution = highspy.HighsSolution()
    solution.col_value = point.tolist()
    solution.value_valid = True
    solver.setSolution(solution)


def _sides(moves: Floats) -> Floats:
    return np.concatenate([np.maximum(moves, 0.0), np.maximum(-moves, 0.0)])


def _lagrangian(model: Model, prices: Floats) -> float:
    """What the prices prove: no point within the bounds costs less, whatever the solver's tolerances were."""
    matrix, cost, least, most, row_least, row_most = model
    prices = np.where((prices > 0) & np.isinf(row_least) | (prices < 0) & np.isinf(row_most), 0.0, prices)
    reduced = cost - matrix.T @ prices
    with np.errstate(invalid="ignore"):
        rows = np.where(prices > 0, prices * row_least, np.where(prices < 0, prices * row_most, 0.0))
        columns = np.where(reduced > 0, reduced * least, np.where(reduced < 0, reduced * most, 0.0))
    return max(float(rows.sum() + columns.sum()), 0.0)
